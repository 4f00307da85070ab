"""Tables of numbers: `AutoCompleter`, single methods and other packages.

``auto`` has twelve tables with cells missing in three ways, six pictures and the
ratings of MovieLens-100K. ``patterns`` has the patterns of MissBench (Feitelberg, Saha,
Choi, Ahmad, Agarwal, Dwivedi, TabImpute, arXiv 2510.02625) in ten tables, made from
their names and parameters; what these leave open is decided here. All methods have
their defaults, and the truth is used for scores only. ``over_time`` gives methods less
and more time, in the tables that were set aside.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from common import TOO_SLOW, Results, run
from problems import PICTURES, hide, matrix
from scipy.ndimage import uniform_filter
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata
from sklearn import datasets, linear_model
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from skmc import (
    AIRCompleter,
    AutoCompleter,
    AutoencoderCompleter,
    BayesianFactorizationCompleter,
    ChainedCompleter,
    DMFCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    IALMCompleter,
    KNNCompleter,
    LinkedFactorizationCompleter,
    MeanCompleter,
    NCARLCompleter,
    NonlocalCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
    TreesCompleter,
    patterns,
)
from skmc.datasets import load_movielens, load_table

MAX_ROWS = 1000
vars(np).setdefault("round_", np.round)  # gcimpute 0.0.4 was written for NumPy 1
# The first five were set aside: nothing was decided by looking at them.
SET_ASIDE = ("airfoil", "energy", "diabetes", "breast cancer, diagnostic", "letter")
TABLES: dict[str, Callable[[], np.ndarray]] = {
    "airfoil": lambda: load_table("airfoil").data,
    "energy": lambda: load_table("energy_efficiency").data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "breast cancer, diagnostic": lambda: datasets.load_breast_cancer().data,
    "letter": lambda: load_table("letter").data,
    "wine": lambda: load_table("wine").data,
    "concrete": lambda: load_table("concrete").data,
    "breast cancer": lambda: load_table("breast_cancer_wisconsin").data,
    "iris": lambda: datasets.load_iris().data,
    "linnerud": lambda: datasets.load_linnerud().data,
    "digits": lambda: datasets.load_digits().data,
    "spambase": lambda: load_table("spambase").data,
}
# Completers that keep ratings sparse, and the baseline.
PACKAGES = ("gcimpute", "miceforest", "hyperimpute")  # may not be installed
BY_COLUMN = ("boosting", "chained, donors", *PACKAGES)
RATINGS = ("auto", "means", "Factorization", "Bayesian", "Bayesian, implicit")
MECHANISMS = {
    "MCAR 20 %": lambda X: patterns.random(X, 0.2, random_state=1),
    "MCAR 40 %": lambda X: patterns.random(X, 0.4, random_state=1),
    "MAR": lambda X: patterns.mar(X, 0.3, random_state=1),
}
IN_ORDER = " in file order"
CASES = [
    *((name, how) for how in MECHANISMS for name in TABLES),
    *((f"{name}{IN_ORDER}", how) for how in MECHANISMS for name in SET_ASIDE),
    *((name, "random 50 %") for name in PICTURES),
    ("MovieLens", "u1"),
]


def others(module: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    """Make an estimator of a package that may not be installed."""
    return lambda: make(importlib.import_module(module))


class Forest:
    """miceforest's mean of five completions."""

    def __init__(self, module: Any, rounds: int = 5):
        self.module, self.rounds = module, rounds

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(X).rename(columns=str)
        kernel = self.module.ImputationKernel(
            frame, num_datasets=5, random_state=0, mean_match_candidates=0
        )
        kernel.mice(self.rounds)
        return np.mean([kernel.complete_data(k) for k in range(5)], 0)


class Hyper:
    """hyperimpute's own plugin.

    It passes `multi_class="auto"` to logistic regressions. scikit-learn has removed
    this argument, and computes what it asked for.
    """

    def __init__(self, module: Any, **params: Any):
        self.module, self.params = module, {"random_state": 0, **params}

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        whole = linear_model.LogisticRegression

        def without(multi_class: str = "auto", **others: Any) -> Any:
            return whole(**others)

        with mock.patch.object(linear_model, "LogisticRegression", without):
            plugin = self.module.Imputers().get("hyperimpute", **self.params)
            return plugin.fit_transform(X.copy()).to_numpy()


SEED = {"random_state": 0}
SINGLES: dict[str, Callable[[], Any]] = {
    "IterativeImputer": lambda: IterativeImputer(**SEED),
    "IterativeImputer, trees": lambda: IterativeImputer(
        ExtraTreesRegressor(50, min_samples_leaf=2, **SEED), max_iter=5, **SEED
    ),
    "KNNImputer, 5": lambda: KNNImputer(n_neighbors=5),
    "KNNImputer, 10": lambda: KNNImputer(n_neighbors=10),
    "gcimpute": others("gcimpute.gaussian_copula", lambda m: m.GaussianCopula()),
    "miceforest": others("miceforest", Forest),
    "hyperimpute": others("hyperimpute.plugins.imputers", Hyper),
    "means": MeanCompleter,
    "KNN": KNNCompleter,
    "SVD": lambda: SVDCompleter(**SEED),
    "IALM": IALMCompleter,
    "NCARL": lambda: NCARLCompleter(**SEED),
    "TNNR": lambda: TNNRCompleter(**SEED),
    "Gaussian": lambda: GaussianCompleter(**SEED),
    "copula": lambda: GaussianCompleter(marginals="copula", **SEED),
    "Bayesian": lambda: BayesianFactorizationCompleter(**SEED),
    "Bayesian, implicit": lambda: BayesianFactorizationCompleter(
        implicit=True, heteroscedastic=True, **SEED
    ),
    "Factorization": lambda: FactorizationCompleter(**SEED),
    "trees": lambda: TreesCompleter(**SEED),
    "trees, linear": lambda: TreesCompleter(linear=True, **SEED),
    "boosting": lambda: TreesCompleter("boosting", **SEED),
    "trees, 3 rounds": lambda: TreesCompleter(max_iter=3, **SEED),
    "chained, donors": lambda: ChainedCompleter(**SEED),
    "AIR": lambda: AIRCompleter(**SEED),
    "nonlocal": lambda: NonlocalCompleter(**SEED),
    "DMF, TV": lambda: DMFCompleter("tv", **SEED),
    "Soft-Impute": lambda: SoftImputeCompleter(**SEED),
    "patch CNN": lambda: PatchCNNCompleter(**SEED),
    "DMF": lambda: DMFCompleter(**SEED),
    "SNN": lambda: SNNCompleter(**SEED),
    "SVT": SVTCompleter,
    "linked": lambda: LinkedFactorizationCompleter(**SEED),
    "autoencoder": lambda: AutoencoderCompleter(**SEED),
    "NSR": lambda: NSRCompleter(**SEED),
}


@cache
def case(data: str, how: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix to complete, the truth, and the hidden cells."""
    if data in PICTURES:
        X = hide(matrix(data)[0], how, 0)
        return X.filled(np.nan), X.data, X.mask
    if data == "MovieLens":
        ratings = load_movielens("100k")
        truth = ratings.entries.to_cells()
        hidden = ~np.isnan(ratings.entries[ratings.splits["u1"]].to_cells())
    else:
        name = data.removesuffix(IN_ORDER)
        truth = TABLES[name]().astype(float)
        truth = truth[~np.isnan(truth).any(1)]
        if name == data:
            truth = np.random.RandomState(0).permutation(truth)
        truth = truth[:MAX_ROWS]
        truth = truth[:, truth.std(0) > 0]
        truth = (truth - truth.mean(0)) / truth.std(0)
        hidden = MECHANISMS[how](truth)
    return np.where(hidden, np.nan, truth), truth, hidden


def score_of(data: str, how: str, method: str) -> dict[str, Any]:
    X, truth, hidden = case(data, how)

    def score(completer: Any) -> dict[str, float]:
        if hasattr(completer, "predict_entries"):
            guess = completer.fit(Entries(X)).predict_entries(*np.nonzero(hidden))
        else:
            guess = np.asarray(completer.fit_transform(X))[hidden]
        return {"rmse": float(np.sqrt(np.square(guess - truth[hidden]).mean()))}

    return auto_or_single(method, score)


def auto_or_single(
    method: str, score: Callable[[Any], dict], max_time: float = 60
) -> dict[str, Any]:
    if method != "auto":
        return score(SINGLES[method]())
    completer = AutoCompleter(max_time=max_time, random_state=0)
    # Its budget of time is counted in processor seconds, because other programs run on
    # the same machine.
    with mock.patch("time.perf_counter", time.process_time):
        found = score(completer)
    return {**found, "verdict": completer.verdict_}


def applies(method: str, data: str) -> bool:
    """Whether a fit takes minutes, not hours."""
    if data == "MovieLens":
        return method in RATINGS
    by_column = "Imputer" in method or "trees" in method or method in BY_COLUMN
    return not (data in PICTURES and by_column) or method == "auto"


def auto(results: Results) -> None:
    for method in ("auto", *SINGLES):
        for data, how in CASES:
            if applies(method, data):
                key = ("auto", data, how, method)
                limit = None if method == "auto" else TOO_SLOW
                results.measure(key, score_of, data, how, method, limit=limit)


# -------------------------------------------------- thirteen patterns of missing cells

MAX_ROWS_OF_PATTERNS = 300
SHARE = 0.4  # of cells, where a pattern has a parameter for it
NAMES = tuple(name for name in TABLES if name not in ("linnerud", "breast cancer"))
OURS = ("auto", "Gaussian", "trees", "chained, donors")
PEERS = (
    "hyperimpute",
    "IterativeImputer, trees",
    "IterativeImputer",
    "KNNImputer, 5",
)
METHODS = (*OURS, *PEERS, "means")
Draw = Callable[[np.ndarray, np.random.RandomState], np.ndarray]


def by_logit(logit: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Hide cells with probability ``expit(logit + a)``, whose mean is `SHARE`."""
    shift = brentq(lambda a: expit(logit + a).mean() - SHARE, -1e3, 1e3)
    return rng.random_sample(logit.shape) < expit(logit + shift)


def network(inputs: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Standardized output of a random network with two hidden layers of ReLUs."""
    hidden = inputs
    for _ in range(2):
        weights = rng.randn(hidden.shape[-1], 100) / np.sqrt(hidden.shape[-1])
        hidden = np.maximum(hidden @ weights, 0)
    out = hidden @ rng.randn(100)
    return (out - out.mean()) / (out.std() or 1.0)


def neural(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A network of five random cells of the row and five of the column."""
    n_rows, n_cols = Z.shape
    across = Z[:, rng.randint(n_cols, size=(n_cols, 5))]
    down = Z[rng.randint(n_rows, size=(n_rows, 5))].transpose(0, 2, 1)
    return by_logit(network(np.concatenate([across, down], -1), rng), rng)


def block_neural(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A network of the means of 10 x 10 blocks and of the blocks around them."""
    rows, cols = (np.arange(size) * min(10, size) // size for size in Z.shape)
    sums = np.zeros((rows[-1] + 1, cols[-1] + 1))
    counts = sums.copy()
    np.add.at(sums, np.ix_(rows, cols), Z)
    np.add.at(counts, np.ix_(rows, cols), 1)
    means = sums / counts
    around = np.stack([means, uniform_filter(means, 3)], -1)
    return by_logit(network(around, rng)[np.ix_(rows, cols)], rng)


def bandit(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Each row observes the columns with the largest means so far, or random ones."""
    n_rows, n_cols = Z.shape
    n_kept, epsilon = max(1, round((1 - SHARE) * n_cols)), 0.4
    sums, counts = np.zeros(n_cols), np.zeros(n_cols)
    hidden = np.ones(Z.shape, bool)
    for i in range(n_rows):
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
        random = rng.random_sample() < epsilon or not counts.any()
        kept = (rng.random_sample(n_cols) if random else -means).argsort()[:n_kept]
        hidden[i, kept] = False
        sums[kept] += Z[i, kept]
        counts[kept] += 1
        epsilon *= 0.99
    return hidden


def panel(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Each row ends at a random column."""
    ends = rng.randint(1, Z.shape[1] + 1, size=(len(Z), 1))
    return np.arange(Z.shape[1]) >= ends


def levels(Z: np.ndarray) -> np.ndarray:
    """Ranks in the column, scaled to (0, 1)."""
    return rankdata(Z, axis=0) / (len(Z) + 1)


def polarization(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """The middle half of each column is hidden."""
    return np.abs(levels(Z) - 0.5) < 0.25


def soft_polarization(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A cell is observed with probability ``.05 + .95 |2 level - 1|**2.5``."""
    kept = 0.05 + 0.95 * np.abs(2 * levels(Z) - 1) ** 2.5
    return rng.random_sample(Z.shape) > kept


def latent(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A product of normal factors of rank 1 to 5."""
    rank = rng.randint(1, 6)
    return by_logit(rng.randn(len(Z), rank) @ rng.randn(rank, Z.shape[1]), rng)


def clusters(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Normal effects of five clusters of rows and four of columns."""
    rows, cols = rng.randint(5, size=len(Z)), rng.randint(4, size=Z.shape[1])
    return by_logit(rng.randn(5)[rows][:, None] + rng.randn(4)[cols], rng)


def two_phase(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Four tenths of the columns are cheap; they decide which rows get the others."""
    n_cols = Z.shape[1]
    cheap = rng.permutation(n_cols)[: max(1, round(0.4 * n_cols))]
    score = Z[:, cheap] @ rng.randn(len(cheap))
    score /= score.std() or 1.0
    hidden = np.broadcast_to(by_logit(2.5 * score, rng)[:, None], Z.shape).copy()
    hidden[:, cheap] = False
    return hidden


def censoring(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """The lowest or the highest tenth of each column is hidden."""
    low = rng.random_sample(Z.shape[1]) < 0.5
    return np.where(low, levels(Z) < 0.1, levels(Z) > 0.9)


PATTERNS: dict[str, Draw] = {
    "MCAR": lambda Z, rng: patterns.random(Z, SHARE, random_state=rng),
    "columns, MAR": lambda Z, rng: patterns.mar(Z, SHARE, random_state=rng),
    "own value": lambda Z, rng: patterns.mnar(Z, SHARE, random_state=rng),
    "neural": neural,
    "neural, blocks": block_neural,
    "sequential": bandit,
    "panel": panel,
    "polarization": polarization,
    "soft polarization": soft_polarization,
    "latent factors": latent,
    "clusters": clusters,
    "two phases": two_phase,
    "censoring": censoring,
}


@cache
def patterned(pattern: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A standardized table and its hidden cells; no column is hidden as a whole."""
    truth = TABLES[name]().astype(float)
    truth = truth[~np.isnan(truth).any(1)]
    truth = np.random.RandomState(0).permutation(truth)[:MAX_ROWS_OF_PATTERNS]
    truth = truth[:, truth.std(0) > 0]
    truth = (truth - truth.mean(0)) / truth.std(0)
    hidden = PATTERNS[pattern](truth, np.random.RandomState(1)).copy()
    hidden[:2, hidden[2:].all(0)] = False
    return truth, hidden


def patterned_score(pattern: str, name: str, method: str) -> dict[str, Any]:
    truth, hidden = patterned(pattern, name)

    def score(completer: Any) -> dict[str, float]:
        X = np.where(hidden, np.nan, truth)
        off = np.asarray(completer.fit_transform(X))[hidden] - truth[hidden]
        return {"rmse": float(np.sqrt(np.square(off).mean()))}

    return auto_or_single(method, score)


def thirteen_patterns(results: Results) -> None:
    for pattern in PATTERNS:
        for name in NAMES:
            for method in METHODS:
                key = ("patterns", name, pattern, method)
                limit = None if method == "auto" else TOO_SLOW
                results.measure(
                    key, patterned_score, pattern, name, method, limit=limit
                )


# ------------------------------------------------------------ the error after some time


def imputer(rounds: int) -> IterativeImputer:
    return IterativeImputer(max_iter=rounds, tol=0, **SEED)


def imputer_with_trees(rounds: int) -> IterativeImputer:
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, **SEED)
    return IterativeImputer(forest, max_iter=rounds, tol=0, **SEED)


def forests(rounds: int) -> Forest:
    return Forest(importlib.import_module("miceforest"), rounds)


def hyper(rounds: int) -> Hyper:
    module = importlib.import_module("hyperimpute.plugins.imputers")
    return Hyper(module, n_inner_iter=rounds)


# What is given: seconds, or rounds over all columns.
STEPS: dict[str, tuple[Callable[[int], Any] | None, tuple[float, ...]]] = {
    "AutoCompleter": (None, (0.5, 1, 2, 4, 8, 16, 60)),
    "IterativeImputer": (imputer, (1, 2, 5, 10, 20)),
    "IterativeImputer, trees": (imputer_with_trees, (1, 2, 3, 5, 10)),
    "miceforest": (forests, (1, 2, 5, 10)),
    "hyperimpute": (hyper, (1, 2, 5, 10, 40)),
}
TIMED = [(name, how) for name in SET_ASIDE for how in ("MCAR 20 %", "MAR")]


def error_after(data: str, how: str, method: str, amount: float) -> dict[str, Any]:
    X, truth, hidden = case(data, how)

    def score(completer: Any) -> dict[str, float]:
        guess = np.asarray(completer.fit_transform(X))[hidden]
        return {"rmse": float(np.sqrt(np.square(guess - truth[hidden]).mean()))}

    make, _ = STEPS[method]
    if make is None:
        return auto_or_single("auto", score, amount)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of one round have not converged
        return score(make(int(amount)))


def over_time(results: Results) -> None:
    for data, how in TIMED:
        for method, (_, amounts) in STEPS.items():
            for amount in amounts:
                key = ("over time", data, how, f"{method}, {amount:g}")
                args = data, how, method, amount
                results.measure(key, error_after, *args, limit=TOO_SLOW)


if __name__ == "__main__":
    run(__doc__, auto, thirteen_patterns, over_time)
