"""`AutoCompleter` compared with single methods and with other packages.

``python -m benchmarks.quality.auto [auto|singles|page] [CASE ...]`` fits what is not
in ``docs/reproduction/records/auto.json`` yet and writes ``auto.md``. All methods have
their defaults; the truth is used for scores only. Packages that are not installed are
left out.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from sklearn import datasets, linear_model
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from benchmarks.shared.pages import chart, folded, table, write_page
from benchmarks.shared.problems import PICTURES, hide, matrix
from benchmarks.shared.results import TOO_SLOW, Results
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
LOSS = 1.01  # ratio of errors
SHOWN = 12  # methods in the chart
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
KINDS = {
    "set_aside": [f"{name}/{how}" for how in MECHANISMS for name in SET_ASIDE],
    "other_tables": [
        f"{name}/{how}"
        for how in MECHANISMS
        for name in TABLES
        if name not in SET_ASIDE
    ],
    "in_order": [f"{name}{IN_ORDER}/{how}" for how in MECHANISMS for name in SET_ASIDE],
    "others": [*(f"{name}/random 50 %" for name in PICTURES), "MovieLens/u1"],
}
CASES = [name for cases in KINDS.values() for name in cases]


def others(module: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    """Make an estimator of a package that may not be installed."""
    return lambda: make(importlib.import_module(module))


class Forest:
    """miceforest's mean of five completions."""

    def __init__(self, module: Any):
        self.module = module

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(X).rename(columns=str)
        kernel = self.module.ImputationKernel(
            frame, num_datasets=5, random_state=0, mean_match_candidates=0
        )
        kernel.mice(5)
        return np.mean([kernel.complete_data(k) for k in range(5)], 0)


class Hyper:
    """hyperimpute's own plugin.

    It passes `multi_class="auto"` to logistic regressions. scikit-learn has removed
    this argument, and computes what it asked for.
    """

    def __init__(self, module: Any):
        self.module = module

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        whole = linear_model.LogisticRegression

        def without(multi_class: str = "auto", **others: Any) -> Any:
            return whole(**others)

        with mock.patch.object(linear_model, "LogisticRegression", without):
            plugin = self.module.Imputers().get("hyperimpute", random_state=0)
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


def case(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix to complete, the truth, and the hidden cells."""
    data, how = name.split("/")
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


def score_of(name: str) -> Callable[[Any], dict[str, float]]:
    X, truth, hidden = case(name)

    def score(completer: Any) -> dict[str, float]:
        if hasattr(completer, "predict_entries"):
            guess = completer.fit(Entries(X)).predict_entries(*np.nonzero(hidden))
        else:
            guess = np.asarray(completer.fit_transform(X))[hidden]
        return {"rmse": float(np.sqrt(np.square(guess - truth[hidden]).mean()))}

    return score


def applies(method: str, name: str) -> bool:
    """Whether a fit takes minutes, not hours."""
    if name.startswith("MovieLens"):
        return method in RATINGS
    by_column = "Imputer" in method or "trees" in method or method in BY_COLUMN
    return not (name.startswith(PICTURES) and by_column) or method == "auto"


def measure(results: Results, cases: list[str], methods: list[str]) -> None:
    for method in methods:
        for name in cases:
            key = f"{name}/{method}/0"
            if key in results.records or not applies(method, name):
                continue
            try:
                if method == "auto":
                    auto(results, key, score_of(name))
                else:
                    results.measure(key, SINGLES[method](), score_of(name), TOO_SLOW)
            except ImportError:
                break
            except Exception as failure:
                results.keep(key, {"error": repr(failure)[:200]})


def auto(results: Results, key: str, score: Callable[[Any], dict[str, float]]) -> None:
    completer = AutoCompleter(random_state=0)
    # Its budget of time is counted in processor seconds, because other programs run on
    # the same machine.
    with mock.patch("time.perf_counter", time.process_time):
        results.measure(key, completer, score, None)
    board = completer.leaderboard_[["candidate", "error", "cells", "seconds"]]
    more = {
        "verdict": completer.verdict_,
        "tried": board[board["error"].notna()].round(5).values.tolist(),
    }
    results.keep(key, {**results.records[key], **more})


def best_of(results: Results, name: str) -> tuple[str, dict] | None:
    """The method with the lowest error by the truth, once all were tried."""
    needed = [m for m in SINGLES if m not in PACKAGES and applies(m, name)]
    if any(f"{name}/{m}/0" not in results.records for m in needed):
        return None
    found = {m: results.records.get(f"{name}/{m}/0", {}) for m in SINGLES}
    ended = [(m, r) for m, r in found.items() if "rmse" in r]
    return min(ended, key=lambda pair: pair[1]["rmse"], default=None)


def ratio(results: Results, name: str, method: str = "auto") -> float:
    """The error over that of the best single method; NaN where one is missing."""
    best, own = best_of(results, name), results.records.get(f"{name}/{method}/0", {})
    return own["rmse"] / best[1]["rmse"] if best and "rmse" in own else np.nan


def geometric(ratios: list[float]) -> float:
    return float(np.exp(np.log(ratios).mean())) if ratios else np.nan


def compared(results: Results, name: str) -> str:
    if not np.isfinite(ratio(results, name)):
        return "-"
    method, best = best_of(results, name)
    return f"{ratio(results, name):.3f} ({method}, {best['rmse']:.3f})"


def summary(results: Results, cases: list[str]) -> str:
    ratios = [r for name in cases if np.isfinite(r := ratio(results, name))]
    losses = sum(r > LOSS for r in ratios)
    return (
        f"{geometric(ratios):.3f} times that of the best method (geometric mean of "
        f"{len(ratios)} cases; lower in {sum(r < 1 for r in ratios)}, more than one "
        f"percent higher in {losses}, at most {max(ratios, default=np.nan):.3f} times)"
    )


def rows_of(results: Results, cases: list[str]) -> list[list[str]]:
    """One row for each table, with a cell for each mechanism."""
    data = dict.fromkeys(name.split("/")[0] for name in cases)
    body = []
    for d in data:
        cells = [compared(results, f"{d}/{how}") for how in MECHANISMS]
        if set(cells) != {"-"}:
            body.append([d.removesuffix(IN_ORDER), *cells])
    return body


def methods(results: Results, cases: list[str]) -> dict[str, list[str]]:
    """Errors and seconds of each method, over the cases in which all were measured."""
    cases = [name for name in cases if np.isfinite(ratio(results, name))]
    rows = {}
    for method in ("auto", *SINGLES):
        found = [(ratio(results, name, method), name) for name in cases]
        found = [pair for pair in found if np.isfinite(pair[0])]
        if found:
            ratios, names = zip(*found, strict=True)
            records = [results.records[f"{name}/{method}/0"] for name in names]
            seconds = float(np.median([record["seconds"] for record in records]))
            mean, worst = geometric(list(ratios)), max(ratios)
            n = f"{len(ratios)} of {len(cases)}"
            rows[method] = [f"{mean:.3f}", f"{worst:.2f}", f"{seconds:.2g}", n]
    return dict(sorted(rows.items(), key=lambda row: float(row[1][0])))


def page(results: Results) -> None:
    head = ["", *MECHANISMS]
    shuffled = KINDS["set_aside"] + KINDS["other_tables"]
    every = methods(results, shuffled)
    named = {"auto": "AutoCompleter"}
    means = {named.get(m, m): float(row[0]) for m, row in [*every.items()][:SHOWN]}
    fields = {
        "rows": MAX_ROWS,
        "chart": chart("auto", "Error / error of the best method", means),
        "shown": SHOWN,
        "summary": summary(results, shuffled),
        "summary_set_aside": summary(results, KINDS["set_aside"]),
        "summary_in_order": summary(results, KINDS["in_order"]),
        "others": table(
            ["", "ratio (best method, its error)"],
            [[name, compared(results, name)] for name in KINDS["others"]],
        ),
        "methods": folded(
            f"All {len(every)} methods",
            table(
                ["", "mean", "worst", "seconds", "cases"],
                [[method, *row] for method, row in every.items()],
            ),
        ),
    }
    for kind in ("set_aside", "other_tables", "in_order"):
        fields[kind] = table(head, rows_of(results, KINDS[kind]))
    write_page("auto", fields)


def run(what: str = "all", *names: str) -> None:
    results = Results("auto")
    cases = [name for name in CASES if not names or any(n in name for n in names)]
    if what in ("auto", "all"):
        measure(results, cases, ["auto"])
    if what in ("singles", "all"):
        measure(results, cases, list(SINGLES))
    page(results)


if __name__ == "__main__":
    run(*sys.argv[1:])
