"""Thirteen patterns: ``python -m benchmarks.quality.missing_patterns [page | WORDS]``.

The patterns of missing cells are those of MissBench (Feitelberg, Saha, Choi, Ahmad,
Agarwal, Dwivedi, TabImpute, arXiv 2510.02625), made from their names and parameters;
what these leave open is decided here. ``page`` writes ``missing-patterns.md`` alone;
other words choose cases: ``missing_patterns MCAR iris``. It measures what is not in
``docs/reproduction/records/missing-patterns.json`` yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata

from benchmarks.quality.auto import SINGLES, TABLES, auto, geometric
from benchmarks.shared.pages import best, chart, table, write_page
from benchmarks.shared.results import TOO_SLOW, Results
from skmc import patterns

SHARE = 0.4  # of cells, where a pattern has a parameter for it
MAX_ROWS = 300
SHOWN = 7  # methods in the table
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


def case(pattern: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A standardized table and its hidden cells; no column is hidden as a whole."""
    truth = TABLES[name]().astype(float)
    truth = truth[~np.isnan(truth).any(1)]
    truth = np.random.RandomState(0).permutation(truth)[:MAX_ROWS]
    truth = truth[:, truth.std(0) > 0]
    truth = (truth - truth.mean(0)) / truth.std(0)
    hidden = PATTERNS[pattern](truth, np.random.RandomState(1)).copy()
    hidden[:2, hidden[2:].all(0)] = False
    return truth, hidden


def measure(results: Results, words: list[str]) -> None:
    for pattern in PATTERNS:
        for name in NAMES:
            truth, hidden = case(pattern, name)

            def score(completer, truth=truth, hidden=hidden):
                X = np.where(hidden, np.nan, truth)
                off = np.asarray(completer.fit_transform(X))[hidden] - truth[hidden]
                return {"rmse": float(np.sqrt(np.square(off).mean()))}

            for method in METHODS:
                key = f"{pattern}/{name}/{method}/0"
                if key in results.records or not all(word in key for word in words):
                    continue
                try:
                    if method == "auto":
                        auto(results, key, score)
                    else:
                        completer = SINGLES[method]()
                        results.measure(key, completer, score, TOO_SLOW)
                except ImportError:
                    continue
                except Exception as failure:
                    results.keep(key, {"error": repr(failure)[:200]})


def relative(results: Results, pattern: str, method: str) -> list[float]:
    """Errors over those of column means, for tables that all methods completed."""

    def error(name: str, who: str) -> float:
        return results.records.get(f"{pattern}/{name}/{who}/0", {}).get("rmse", np.nan)

    ratios = [
        [
            error(name, who) / error(name, "means")
            for who in (*compared(results), method)
        ]
        for name in NAMES
    ]
    return [row[-1] for row in ratios if np.isfinite(row).all()]


def compared(results: Results) -> list[str]:
    """The methods that were measured; packages may not be installed."""
    keys = "\n".join(results.records)
    return [m for m in METHODS if m != "means" and f"/{m}/0" in keys]


def page(results: Results) -> None:
    ours = {"auto": "AutoCompleter", "Gaussian": "GaussianCompleter"}
    ours |= {"trees": "TreesCompleter", "chained, donors": "ChainedCompleter"}
    names = [ours.get(method, method) for method in compared(results)]
    rows, every = [], {name: [] for name in names}
    for pattern in PATTERNS:
        found = [relative(results, pattern, m) for m in compared(results)]
        if not found[0]:
            continue
        means = [f"{geometric(ratios):.3f}" for ratios in found]
        rows.append(dict(zip(("", *names), (pattern, *best(means)), strict=True)))
        for name, ratios in zip(names, found, strict=True):
            every[name] += ratios
    overall = {name: geometric(ratios) for name, ratios in every.items()}
    columns = ["", *sorted(overall, key=overall.get)[:SHOWN]]
    late = ("hyperimpute" in k and "too_slow" in v for k, v in results.records.items())
    fields = {
        "first": sum(row["AutoCompleter"].startswith("**") for row in rows),
        "patterns": len(rows),
        "mean": f"{overall['AutoCompleter']:.3f}",
        "next": f"{min(v for m, v in overall.items() if 'Completer' not in m):.3f}",
        "chart": chart("missing-patterns", "Error / error of column means", overall),
        "rows": MAX_ROWS,
        "cases": len(every["AutoCompleter"]),
        "late": sum(late),
        "shown": SHOWN,
        "table": table(columns, [[row[c] for c in columns] for row in rows]),
    }
    write_page("missing-patterns", fields)


if __name__ == "__main__":
    results = Results("missing-patterns")
    if sys.argv[1:] != ["page"]:
        measure(results, sys.argv[1:])
    page(results)
