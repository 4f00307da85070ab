"""Defaults of all completers on twelve kinds of matrices, away from what each is for.

    python benchmarks/defaults.py results/defaults.csv [--seeds 3] [--only AIR DMF]

A row for each completer, kind and seed: the root mean squared error of the hidden cells
over that of the column means, in deviations of the columns. Rows that the file has are
kept, so that a run that was ended goes on. Prints the medians over the seeds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from skmc.checks import all_completers

FIELDS = ["completer", "kind", "seed", "error", "seconds"]
FIRST = 10  # seed; smaller ones were used to set defaults
SLOW = {"MixedCompleter", "SeriesCompleter", "GroupedCompleter", "MeanCompleter"}


def low_rank(
    rng: np.random.RandomState, m: int, n: int, rank: int, noise: float = 0.0
) -> np.ndarray:
    X = rng.randn(m, rank) @ rng.randn(rank, n) / np.sqrt(rank)
    return X + noise * rng.randn(m, n)


def problems(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, truth and hidden cells of each kind."""
    rng = np.random.RandomState(1000 + seed)

    def hidden(X: np.ndarray, share: float) -> np.ndarray:
        return rng.uniform(size=X.shape) < share

    for m, n, rank, share in ((80, 60, 3, 0.5), (30, 20, 2, 0.3), (200, 100, 5, 0.5)):
        X = low_rank(rng, m, n, rank)
        yield f"exact {m} x {n}, rank {rank}", X, hidden(X, share)
    X = low_rank(rng, 150, 80, 5, 0.3)
    yield "noisy", X, hidden(X, 0.5)
    X = low_rank(rng, 150, 20, 3, 0.4) * 10 ** rng.uniform(-1, 1, 20)
    X += 10 * rng.randn(20)
    yield "means and units", X, hidden(X, 0.3)
    i, j = np.mgrid[:50, :60]
    bump = np.exp(-((i - 25) ** 2 + (j - 30) ** 2) / 300)
    X = np.sin(i / 9 + seed) * np.cos(j / 11) + bump
    yield "smooth", X, hidden(X, 0.5)
    days = np.arange(200)[:, None]
    X = np.sin(2 * np.pi * days / 7 + 6 * rng.rand(20)) * (0.5 + rng.rand(20))
    X = X + rng.randn(200, 20).cumsum(0) / 15 + 0.2 * rng.randn(200, 20)
    yield "daily", X, hidden(X, 0.3)
    X = rng.randn(4, 15)[rng.randint(0, 4, 200)] + 0.5 * rng.randn(200, 15)
    yield "clusters", X, hidden(X, 0.3)
    z = rng.uniform(-2, 2, (200, 1))
    X = np.sin(z * np.linspace(0.5, 2, 15) + rng.rand(15)) + 0.1 * rng.randn(200, 15)
    yield "nonlinear", X, hidden(X, 0.3)
    X = 3.5 + 0.4 * rng.randn(200, 1) + low_rank(rng, 200, 100, 4, 0.7) * 0.7
    X = X.round().clip(1, 5)
    yield "ratings", X, hidden(X, 0.85)
    X = rng.poisson(np.exp(0.8 * low_rank(rng, 150, 30, 3))).astype(float)
    yield "counts", X, hidden(X, 0.3)
    X = np.exp(low_rank(rng, 150, 20, 3, 0.4))
    yield "skewed", X, hidden(X, 0.3)
    X = rng.randn(150, 10)
    yield "independent", X, hidden(X, 0.3)


def relative_error(found: np.ndarray, truth: np.ndarray, hidden: np.ndarray) -> float:
    """Error over that of the column means, in deviations of the observed columns."""
    seen = np.where(hidden, np.nan, truth)
    scale = np.nanstd(seen, 0)
    errors = ((found - truth) / scale)[hidden]
    of_means = ((np.nanmean(seen, 0) - truth) / scale)[hidden]
    return float(np.sqrt((errors**2).mean() / (of_means**2).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    done = set()
    if options.file.exists():
        table = pd.read_csv(options.file)
        done = set(zip(table.completer, table.kind, table.seed, strict=True))
    else:
        options.file.write_text(",".join(FIELDS) + "\n")
    classes = [
        cls
        for cls in all_completers()
        if cls.__name__ not in SLOW
        and (not options.only or cls.__name__.removesuffix("Completer") in options.only)
    ]
    for seed in range(FIRST, FIRST + options.seeds):
        for kind, truth, hidden in problems(seed):
            for cls in classes:
                name = cls.__name__.removesuffix("Completer")
                if (name, kind, seed) in done:
                    continue
                known = cls().get_params()
                completer = cls(
                    **({"random_state": 0} if "random_state" in known else {})
                )
                start, error = time.process_time(), np.nan
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        X = np.where(hidden, np.nan, truth)
                        error = relative_error(
                            completer.fit_transform(X), truth, hidden
                        )
                    except ValueError as refused:
                        print(f"{name} on {kind}: {refused}")
                seconds = time.process_time() - start
                with options.file.open("a", newline="") as target:
                    csv.writer(target).writerow(
                        [name, kind, seed, f"{error:.3g}", f"{seconds:.2f}"]
                    )
    table = pd.read_csv(options.file)
    kinds = list(dict.fromkeys(table.kind))
    medians = table.pivot_table("error", "completer", "kind", "median")[kinds]
    print(medians.round(3).to_string())


if __name__ == "__main__":
    main()
