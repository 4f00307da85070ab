"""Does completion help the model after it?

``python -m benchmarks.quality.pipeline [page]``

Cross-validated scores of models of scikit-learn behind each way to fill the holes, on
three of scikit-learn's tables of which 30 % of the cells are hidden at random. It fits
what is not in ``docs/reproduction/records/pipeline.json`` yet and writes
``pipeline.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.shared.pages import RECORDS, table, write_page
from benchmarks.shared.results import Results
from skmc import (
    BayesianFactorizationCompleter,
    GaussianCompleter,
    SVDCompleter,
    TreesCompleter,
    patterns,
)

TABLES = {
    "diabetes": load_diabetes,
    "breast cancer": load_breast_cancer,
    "wine": load_wine,
}
MODELS: dict[str, dict[str, Any]] = {
    "regression": {
        "Ridge": Ridge(),
        "boosted trees": HistGradientBoostingRegressor(random_state=0),
    },
    "classification": {
        "logistic": LogisticRegression(max_iter=1000),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
    },
}
FILLED: dict[str, Any] = {
    "SimpleImputer": SimpleImputer(),
    "SimpleImputer, indicators": SimpleImputer(add_indicator=True),
    "KNNImputer": KNNImputer(),
    "IterativeImputer": IterativeImputer(random_state=0),
    "SVDCompleter": SVDCompleter(random_state=0),
    "BayesianFactorizationCompleter": BayesianFactorizationCompleter(random_state=0),
    "GaussianCompleter": GaussianCompleter(random_state=0),
    "GaussianCompleter, copula": GaussianCompleter(marginals="copula", random_state=0),
    "TreesCompleter": TreesCompleter(random_state=0),
}
WHOLE, KEPT = "nothing hidden", "holes left to the booster"
MASKS, FOLDS, HIDDEN = 3, 5, 0.3


def cases() -> Iterator[tuple[str, str, str]]:
    for name in TABLES:
        kind = "regression" if name == "diabetes" else "classification"
        for model in MODELS[kind]:
            fills = [WHOLE, *FILLED]
            if model == "boosted trees":
                fills.append(KEPT)
            for fill in fills:
                yield name, model, fill


def scores(name: str, model: str, fill: str, seed: int) -> list[float]:
    """The score of each fold: R^2 or accuracy. Folds and masks depend on the seed."""
    X, y = TABLES[name](return_X_y=True)
    kind = "regression" if name == "diabetes" else "classification"
    folds = KFold if kind == "regression" else StratifiedKFold
    splitter = folds(FOLDS, shuffle=True, random_state=seed)
    if fill != WHOLE:
        X = np.where(patterns.random(X, HIDDEN, random_state=seed), np.nan, X)
    steps = [StandardScaler(), clone(MODELS[kind][model])]
    if fill in FILLED:
        steps.insert(1, clone(FILLED[fill]))
    return list(cross_val_score(make_pipeline(*steps), X, y, cv=splitter))


def run(results: Results) -> None:
    for name, model, fill in cases():
        for seed in range(MASKS):

            def score(_: Any, case: Any = (name, model, fill, seed)) -> dict[str, Any]:
                return {"scores": [round(s, 4) for s in scores(*case)]}

            results.measure(f"{name}/{model}/{fill}/{seed}", None, score, None)


def page(results: Results) -> None:
    columns = list(dict.fromkeys((name, model) for name, model, _ in cases()))
    rows = []
    for fill in (WHOLE, KEPT, *FILLED):
        row = [fill]
        for name, model in columns:
            found = _folds(results, name, model, fill)
            base = _folds(results, name, model, "SimpleImputer")
            if not len(found):
                row.append("")
                continue
            text = f"{found.mean():.3f}"
            if fill not in (WHOLE, "SimpleImputer"):
                off = found - base
                error = off.std(ddof=1) / len(off) ** 0.5
                text += f" ({off.mean():+.3f} ± {error:.3f})"
            row.append(text)
        rows.append(row)
    fields = {
        "folds": FOLDS,
        "masks": MASKS,
        "hidden": f"{HIDDEN:.0%}",
        "scores": table(["", *(f"{n}, {m}" for n, m in columns)], rows),
    }
    write_page("pipeline", fields)


def _folds(results: Results, name: str, model: str, fill: str) -> np.ndarray:
    return np.array(results.values(f"{name}/{model}/{fill}", "scores")).ravel()


def main() -> None:
    warnings.simplefilter("ignore")
    results = Results(RECORDS / "pipeline.json")
    if "page" not in sys.argv[1:]:
        run(results)
    page(results)


if __name__ == "__main__":
    main()
