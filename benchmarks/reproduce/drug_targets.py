"""Drugs and targets: pairs, new drugs and new targets, answered from similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from benchmarks.reproduce.nrlmf import IMPORTANCE, NEIGHBORS, neighbors, nrlmf
from benchmarks.shared.pages import dots, table
from benchmarks.shared.results import Results
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
CHARTED = {
    "weighted": "weighted",
    "nrlmf": "NRLMF",
    "graphs": "weighted, graphs",
    "mean": "means",
}
METRICS = {"auc": roc_auc_score, "aupr": average_precision_score}
N_FOLDS = 10
N_FITS = 5  # of the mean


def drugs(results: Results) -> None:
    """AUC and AUPR over ten folds, with similarities and without."""
    for name, n_seeds in SEEDS.items():
        data = load_drug_target(name)
        for setting in (*SETTINGS, ZEROS):
            for method in METHODS:
                if method in PAIRS and setting in ("CVS2", "CVS3"):
                    continue
                if setting == ZEROS and method not in IN_TWO_WAYS:
                    continue
                for seed in range(n_seeds):

                    def score(_, case=(data, setting, method, seed)):
                        return scores(*case)

                    key = f"drugs/{name}/{setting}/{method}/{seed}"
                    results.measure(key, None, score, None)


def scores(data: Any, setting: str, method: str, seed: int) -> dict[str, float]:
    """Means over the folds."""
    found: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for hidden in folds(data.data.shape, setting, seed):
        X = np.where(hidden, 0.0 if setting == ZEROS else np.nan, data.data)
        values = predicted(X, data, setting, method, seed)
        for metric, function in METRICS.items():
            found[metric].append(function(data.data[hidden], values[hidden]))
    return {metric: float(np.mean(each)) for metric, each in found.items()}


def folds(shape: tuple[int, int], setting: str, seed: int):
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


def fields(results: Results) -> dict[str, object]:
    """The fields of the page, from the records."""

    def shown(key: str) -> str:
        means = [results.mean(f"drugs/{key}", metric) for metric in METRICS]
        return "-" if None in means else ", ".join(f"{mean:.3f}" for mean in means)

    first = [method for method in METHODS if method not in ("five", "squared")]

    def compared(settings: dict[str, str], methods: Any) -> str:
        names = [METHODS[method] for method in methods]
        rows = [
            [f"{name}, {label}"]
            + [shown(f"{name}/{setting}/{method}") for method in methods]
            for name in SEEDS
            for setting, label in settings.items()
        ]
        return table(["", *names], rows)

    ways = {"CVS1": "missing", ZEROS: "zeros"}
    labels = {setting: f"{setting} ({of})" for setting, of in SETTINGS.items()}
    points = {
        f"{name}, {label}": {
            title: results.mean(f"drugs/{name}/{setting}/{method}", "aupr")
            for method, title in CHARTED.items()
        }
        for name in SEEDS
        for setting, label in SETTINGS.items()
    }
    gains = [
        row["weighted"] - row["NRLMF"]
        for row in points.values()
        if None not in row.values()
    ]
    return {
        "chart": dots("side-information", "AUPR, higher is better", points),
        "n_higher": sum(gain > 0 for gain in gains),
        "n_settings": len(gains),
        "gain": f"{np.mean(gains):+.3f}" if gains else "-",
        "importance": IMPORTANCE,
        "neighbors": NEIGHBORS,
        "n_fits": N_FITS,
        "drugs": compared(labels, first),
        "drugs_as_zeros": compared(ways, IN_TWO_WAYS),
    }
