"""`AutoCompleter` against every single method, on pictures, matrices and tables.

``python -m benchmarks.auto [singles|auto|page] [CASE ...]`` fits what is not in
``docs/reproduction/auto.json`` yet and writes ``auto.md`` beside it. Everything has its
defaults; the truth is for scores alone.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.reproduce.air import PAGES, PAPER, hide, matrix
from benchmarks.reproduce.low_rank import PICTURES, picture
from benchmarks.reproduce.results import Results
from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    BayesianFactorizationCompleter,
    DMFCompleter,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    LinkedFactorizationCompleter,
    MeanCompleter,
    NCARLCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
    candidates,
)
from skmc.completers.auto import AutoCompleter
from skmc.datasets import load_table
from skmc.metrics import nmae, rmse

TOO_SLOW = 120  # processor seconds of a single method
TABLES = {
    "wine": "wine",
    "concrete": "concrete",
    "breast cancer": "breast_cancer_wisconsin",
    "airfoil": "airfoil",
    "energy": "energy_efficiency",
    "letter": "letter",
    "spambase": "spambase",
}

SINGLES = {
    "means": MeanCompleter,
    "KNN": KNNCompleter,
    "KNN, k=10, by distance": lambda: KNNCompleter(10, weights="distance"),
    "SVD": lambda: SVDCompleter(random_state=0),
    "IALM": IALMCompleter,
    "NCARL": lambda: NCARLCompleter(random_state=0),
    "Soft-Impute": lambda: SoftImputeCompleter(random_state=0),
    "AIR": lambda: AIRCompleter(random_state=0),
    "DMF": lambda: DMFCompleter(random_state=0),
    "RDMF": lambda: DMFCompleter("tv", random_state=0),
    "IterativeImputer, linear": lambda: IterativeImputer(random_state=0),
    "IterativeImputer, trees": lambda: IterativeImputer(
        ExtraTreesRegressor(50, min_samples_leaf=2, random_state=0),
        max_iter=5,
        random_state=0,
    ),
    "IterativeImputer, few trees": lambda: IterativeImputer(
        ExtraTreesRegressor(10, min_samples_leaf=2, random_state=0),
        max_iter=2,
        random_state=0,
    ),
    "patch CNN": lambda: PatchCNNCompleter(random_state=0),
    "TNNR": lambda: TNNRCompleter(random_state=0),
    "SNN": lambda: SNNCompleter(random_state=0),
    "Bayesian": lambda: BayesianFactorizationCompleter(random_state=0),
    "linked": lambda: LinkedFactorizationCompleter(random_state=0),
    "Factorization": lambda: FactorizationCompleter(random_state=0),
    "autoencoder": lambda: AutoencoderCompleter(random_state=0),
    "NSR": lambda: NSRCompleter(random_state=0),
    "SVT": SVTCompleter,
}


def table(file: str) -> np.ndarray:
    """Complete rows, columns standardised."""
    X = load_table(file).data.astype(float)[:5000]
    X = X[~np.isnan(X).any(1)]
    return (X - X.mean(0)) / X.std(0)


def case(name: str) -> tuple[np.ma.MaskedArray, np.ndarray, str]:
    """What is to be completed, the truth, and the error that counts."""
    part, _, rest = name.partition("/")
    if part == "table":
        truth = table(TABLES[rest])
        hidden = np.random.default_rng(1).random(truth.shape) < 0.2
        return np.ma.masked_array(truth, hidden), truth, "rmse"
    data, pattern = rest.split(", ")
    truth = picture(data) if data in PICTURES else matrix(data)[0]
    return hide(truth, pattern, 0), truth, "nmae"


CASES = [
    *(f"Table 1/{data}, {pattern}" for data, pattern in PAPER),
    *(f"picture/{data}, random 50 %" for data in PICTURES),
    *(f"table/{name}" for name in TABLES),
]


def score_of(X: np.ma.MaskedArray, truth: np.ndarray, error: str):
    measure = {"nmae": nmae, "rmse": rmse}[error]

    def score(completer) -> dict[str, float]:
        sklearn = isinstance(completer, IterativeImputer)
        completed = completer.fit_transform(X.filled(np.nan) if sklearn else X)
        return {error: float(measure(completed, truth, X.mask))}

    return score


def singles(results: Results, cases: list[str]) -> None:
    for method, make in SINGLES.items():
        for name in cases:
            X, truth, error = case(name)
            if method.startswith("Iterative") and X.shape[1] > 60:
                continue  # minutes, and hours with trees
            key = f"{name}/{method}/0"
            try:
                results.measure(key, make(), score_of(X, truth, error), TOO_SLOW)
            except Exception as failure:
                results._keep(key, {"error": repr(failure)[:200]})


class Clock:
    """Processor seconds, as other programs run beside this one."""

    perf_counter = staticmethod(time.process_time)


def auto(results: Results, cases: list[str]) -> None:
    candidates.time = Clock
    for name in cases:
        X, truth, error = case(name)
        key = f"{name}/auto/0"
        completer = AutoCompleter(
            metric="mae" if error == "nmae" else error, random_state=0
        )
        if key in results.records:
            continue
        results.measure(key, completer, score_of(X, truth, error), None)
        print(completer.leaderboard_.drop(columns="warnings").round(5).to_string())
        board = completer.leaderboard_[["candidate", "status", "error", "seconds"]]
        more = {
            "weights": completer.weights_,
            "verdict": completer.verdict_,
            "tried": board[board["error"].notna()].round(5).values.tolist(),
        }
        results._keep(key, {**results.records[key], **more})


def run(what: str, *names: str) -> None:
    results = Results(PAGES / "auto.json")
    cases = [name for name in CASES if not names or any(n in name for n in names)]
    if what == "singles":
        singles(results, cases)
    if what == "auto":
        auto(results, cases)


if __name__ == "__main__":
    run(*(sys.argv[1:] or ["all"]))
