"""Drugs and targets: pairs, new drugs and new targets, answered from similarities.

AUC and AUPR over ten folds, beside neighborhood regularized logistic matrix
factorization (NRLMF), with similarities and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Results, run
from scipy.special import expit
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from skmc import BayesianFactorizationCompleter, FactorizationCompleter
from skmc.datasets import load_drug_target

SEEDS = {"nuclear_receptor": 5, "gpcr": 1, "ion_channel": 1}  # divisions into folds
SETTINGS = {"CVS1": "pairs", "CVS2": "new drugs", "CVS3": "new targets"}
ZEROS = "CVS1 as zeros"
METHODS = {
    "als": "least squares",
    "weighted": "least squares, weighted",
    "graphs": "weighted, graphs",
    "five": "weighted, graphs, mean of five",
    "features": "Bayesian",
    "none": "Bayesian, no features",
    "nrlmf": "NRLMF",
    "squared": "NRLMF, squared errors",
    "mean": "means",
}
IN_TWO_WAYS = ("als", "weighted", "graphs", "five", "nrlmf", "squared")
PAIRS = ("five", "none", "squared")  # methods that are not measured on new items
METRICS = {"auc": roc_auc_score, "aupr": average_precision_score}
N_FOLDS = 10
N_FITS = 5  # of the mean


def drugs(results: Results) -> None:
    for name, n_seeds in SEEDS.items():
        data = load_drug_target(name)
        for setting, of in {**SETTINGS, ZEROS: "pairs, zeros"}.items():
            for method, title in METHODS.items():
                if method in PAIRS and setting in ("CVS2", "CVS3"):
                    continue
                if setting == ZEROS and method not in IN_TWO_WAYS:
                    continue
                for seed in range(n_seeds):
                    key = ("drugs", name, of, title, seed)
                    results.measure(
                        key, scores, data, setting, method, seed, limit=None
                    )


def scores(data: Any, setting: str, method: str, seed: int) -> dict[str, float]:
    """Means over the folds."""
    found: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for hidden in folds(data.data.shape, setting, seed):
        X = np.where(hidden, 0.0 if setting == ZEROS else np.nan, data.data)
        values = predicted(X, data, setting, method, seed)
        for metric, function in METRICS.items():
            found[metric].append(function(data.data[hidden], values[hidden]))
    return {metric: float(np.mean(each)) for metric, each in found.items()}


def folds(shape: tuple[int, int], setting: str, seed: int) -> Iterator[np.ndarray]:
    """Cells to hide: random pairs, whole rows or whole columns."""
    m, n = shape
    items = {"CVS2": m, "CVS3": n}.get(setting, m * n)
    parts = KFold(N_FOLDS, shuffle=True, random_state=seed)
    for _, part in parts.split(np.arange(items)):
        hidden = np.zeros(shape, bool)
        if setting == "CVS2":
            hidden[part] = True
        elif setting == "CVS3":
            hidden[:, part] = True
        else:
            hidden.flat[part] = True
        yield hidden


def predicted(
    X: np.ndarray, data: Any, setting: str, method: str, seed: int
) -> np.ndarray:
    """Values of all pairs."""
    similarities = data.row_graph, data.col_graph
    if method == "mean":
        axis = 1 if setting == "CVS3" else 0
        return np.broadcast_to(np.nanmean(X, axis, keepdims=True), X.shape)
    if method in ("nrlmf", "squared"):
        logistic = method == "nrlmf"
        return nrlmf(np.nan_to_num(X), ~np.isnan(X), similarities, seed, logistic)
    if method == "five":
        draws = range(N_FITS * seed, N_FITS * (seed + 1))
        fits = [predicted(X, data, setting, "graphs", draw) for draw in draws]
        return np.mean(fits, axis=0)
    given = dict(zip(("row_features", "col_features"), similarities, strict=True))
    completer: Any = BayesianFactorizationCompleter(scaling="global", random_state=seed)
    if method in ("als", "weighted", "graphs"):
        completer = FactorizationCompleter(random_state=seed)
    if method in ("weighted", "graphs"):
        given["cell_weight"] = weights(X)
    if method == "graphs":
        graphs = map(neighbors, similarities)
        given |= dict(zip(("row_graph", "col_graph"), graphs, strict=True))
    elif method == "none":
        given = {}
    return completer.fit(X, **given).reconstruction_


def weights(X: np.ndarray) -> np.ndarray:
    """Ones count five times; zeros of a drug or target without a one do not count."""
    ones = X == 1
    known = ones.any(1)[:, None] & ones.any(0)
    return np.where(ones, IMPORTANCE, known)


# -------------------------------------------------------------------------- NRLMF
# Liu, Wu, Miao, Zhao, Li. PLOS Computational Biology 12 (2016), in plain NumPy, with
# the parameters that its authors' program has by default.

IMPORTANCE = 5  # of a one, in cells
NEIGHBORS = 5
RANK = 50
RIDGE = 0.125  # of drugs and of targets
GRAPH = (0.25, 0.125)
STEP, MAX_ITER, TOL = 0.5, 100, 1e-5


def nrlmf(
    ones: np.ndarray,
    observed: np.ndarray,
    similarities: tuple[np.ndarray, np.ndarray],
    seed: int,
    logistic: bool = True,
) -> np.ndarray:
    """Log-odds of all pairs, from the pairs that are known to be ones.

    Pairs that are ``observed`` and not ones are zeros. In the authors' program, all
    pairs are observed. If not ``logistic``, the loss is half the squared error, and
    the values of pairs are returned.
    """
    rng = np.random.RandomState(seed)
    ones = ones * observed
    weights = np.where(ones > 0, IMPORTANCE, observed)
    factors = [rng.normal(scale=RANK**-0.5, size=(size, RANK)) for size in ones.shape]
    squares = [np.zeros_like(W) for W in factors]
    laplacians = [laplacian(S) for S in similarities]
    last = None
    for _ in range(MAX_ITER):
        for k in (0, 1):
            values = factors[0] @ factors[1].T
            off = weights * (ones - (expit(values) if logistic else values))
            pull = RIDGE * factors[k] + GRAPH[k] * laplacians[k] @ factors[k]
            slope = (off.T if k else off) @ factors[1 - k] - pull
            squares[k] += slope**2
            factors[k] = factors[k] + STEP * slope / np.sqrt(squares[k])
        values = factors[0] @ factors[1].T
        loss = (values - ones) ** 2 / 2
        if logistic:
            loss = np.logaddexp(0, values) - ones * values
        objective = (weights * loss).sum()
        for k, W in enumerate(factors):
            objective += RIDGE * (W**2).sum() / 2
            objective += GRAPH[k] * (W * (laplacians[k] @ W)).sum() / 2
        if last is not None and abs(objective - last) < TOL * last:
            break
        last = objective
    known = ones.any(1), ones.any(0)
    left, right = map(smoothed, factors, known, similarities)
    return left @ right.T


def laplacian(similarity: np.ndarray) -> np.ndarray:
    """The Laplacian of the graph of nearest neighbors."""
    graph = neighbors(similarity)
    return np.diag(graph.sum(1)) - graph


def neighbors(similarity: np.ndarray) -> np.ndarray:
    """The graph of nearest neighbors, made symmetric."""
    others = similarity - np.diag(np.diag(similarity))
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :NEIGHBORS]
    graph = np.zeros_like(others)
    np.put_along_axis(graph, nearest, np.take_along_axis(others, nearest, 1), 1)
    return (graph + graph.T) / 2


def smoothed(W: np.ndarray, known: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Factors, with means of the nearest known items for those without a one."""
    W, items = W.copy(), np.flatnonzero(known)
    for i in np.flatnonzero(~known):
        nearest = items[np.argsort(-similarity[i, items], kind="stable")[:NEIGHBORS]]
        W[i] = np.average(W[nearest], axis=0, weights=similarity[i, nearest])
    return W


if __name__ == "__main__":
    run(__doc__, drugs)
