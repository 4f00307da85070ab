"""Gaps in series: ``python -m benchmarks.quality.series [page | FOLDER]``.

Completes the traffic of Hangzhou, Birmingham and New York with the masks of the
notebooks of transdim (Chen and others, https://github.com/xinychen/transdim). It
measures what is not in ``docs/reproduction/records/series.json`` yet and writes
``series.md``. FOLDER has ``hangzhou.npz`` and ``birmingham.npz``, each with ``values``
of shape (series, days, slots), and ``nyc.mat``, the file ``tensor.mat`` of the
repository's folder ``datasets/NYC-data-set``. Without an argument, it is ``series`` in
the folder ``SKMC_DATA``.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from scipy.io import loadmat

from benchmarks.shared.pages import chart, table, write_page
from benchmarks.shared.results import Results
from skmc import BayesianFactorizationCompleter, GaussianCompleter, SeriesCompleter

Complete = Callable[[np.ndarray], np.ndarray]  # of (n_series, n_days, n_slots)
MASKS = {"cells": 0.4, "days": 0.4, "blocks": 0.3}
OURS, LINE = "`SeriesCompleter()`", "linear interpolation (pandas)"


def load(path: Path) -> np.ndarray:
    if path.suffix == ".npz":
        with np.load(path) as file:
            return file["values"].astype(float)
    pairs = loadmat(path)["tensor"].astype(float)  # origins x destinations x hours
    return pairs.reshape(len(pairs) ** 2, -1, 24)


FILES = {
    "Hangzhou": "hangzhou.npz",
    "Birmingham": "birmingham.npz",
    "New York": "nyc.mat",
}


def observed(shape: tuple[int, ...], kind: str) -> np.ndarray:
    """The masks of the notebooks, exactly."""
    rng, share = np.random.RandomState(1000), MASKS[kind]
    if kind == "cells":
        lot = rng.rand(*shape)
    elif kind == "days":
        lot = np.broadcast_to(rng.rand(*shape[:2])[:, :, None], shape)
    else:  # six slots of all series
        windows = np.repeat(rng.rand(shape[1] * shape[2] // 6), 6)
        lot = np.broadcast_to(windows.reshape(shape[1:]), shape)
    return np.round(lot + 0.5 - share) > 0


def ours(scaling: str | None) -> Complete:
    def complete(cells: np.ndarray) -> np.ndarray:
        by_time = cells.reshape(len(cells), -1).T
        completer = SeriesCompleter(scaling=scaling, random_state=0)
        return completer.fit_transform(by_time).T.reshape(cells.shape)

    return complete


def line(cells: np.ndarray) -> np.ndarray:
    """Linear interpolation of pandas."""
    pd = importlib.import_module("pandas")
    by_time = pd.DataFrame(cells.reshape(len(cells), -1).T)
    found = by_time.interpolate(limit_direction="both")
    return found.to_numpy().T.reshape(cells.shape)


def slot_means(cells: np.ndarray) -> np.ndarray:
    """The mean of the same slot of all days; of all slots where that has none."""
    means = np.nanmean(cells, 1, keepdims=True)
    means = np.where(np.isnan(means), np.nanmean(cells, (1, 2), keepdims=True), means)
    return np.where(np.isnan(cells), means, cells)


def gaussian(axes: tuple[int, int, int], n_row_axes: int) -> Complete:
    """`GaussianCompleter` of a matrix whose rows are the first axes of some order."""

    def complete(cells: np.ndarray) -> np.ndarray:
        turned = cells.transpose(axes)
        n_rows = int(np.prod(turned.shape[:n_row_axes]))
        matrix = turned.reshape(n_rows, -1)
        found = GaussianCompleter(random_state=0).fit_transform(matrix)
        return found.reshape(turned.shape).transpose(np.argsort(axes))

    return complete


def factors(cells: np.ndarray) -> np.ndarray:
    """`BayesianFactorizationCompleter` of series by times."""
    matrix = cells.reshape(len(cells), -1)
    found = BayesianFactorizationCompleter(random_state=0).fit_transform(matrix)
    return found.reshape(cells.shape)


METHODS: dict[str, Complete] = {
    OURS: ours("auto"),
    "`SeriesCompleter(scaling=None)`": ours(None),
    "`GaussianCompleter()`, rows (sensor, day)": gaussian((0, 1, 2), 2),
    "`GaussianCompleter()`, rows (sensor, slot)": gaussian((0, 2, 1), 2),
    "`GaussianCompleter()`, rows times": gaussian((1, 2, 0), 2),
    "`BayesianFactorizationCompleter()`, rows series": factors,
    LINE: line,
    "mean of the slot": slot_means,
}
# As printed by the authors, on the same masks: Chen, Sun, Bayesian temporal
# factorization (2022), and, for blocks, the best of 20 settings of LATC's notebook,
# chosen on the cells that are scored.
PUBLISHED = {
    "BTMF, published": {("Hangzhou", "cells"): 30.0, ("Hangzhou", "days"): 46.0},
    "TRMF, published": {("Hangzhou", "cells"): 36.6, ("Hangzhou", "days"): 37.9},
    "HaLRTC, published": {("Hangzhou", "cells"): 31.8, ("Hangzhou", "days"): 53.1},
    "LATC, published, best of 20 settings": {("Hangzhou", "blocks"): 28.6},
}


def score(complete: Complete, whole: np.ndarray, kind: str) -> dict[str, float]:
    """Errors over hidden cells that are not zero, as zeros stand for missing cells."""
    kept = observed(whole.shape, kind)
    known, scored = kept & (whole != 0), ~kept & (whole != 0)
    alive = known.sum((1, 2)) > 1
    cells = np.where(known, whole, np.nan)[alive]
    truth, scored = whole[alive], scored[alive]
    start = time.perf_counter()
    squares = np.where(scored, np.square(complete(cells) - truth), 0.0)
    wall = time.perf_counter() - start
    by_day = squares.sum(2)
    worst = np.unravel_index(by_day.argmax(), by_day.shape)
    rest = scored.sum() - scored[worst].sum()
    return {
        "rmse": float(np.sqrt(squares.sum() / scored.sum())),
        "without the worst day": float(np.sqrt((squares.sum() - by_day.max()) / rest)),
        "series": int(alive.sum()),
        "wall": wall,
    }


def run(results: Results, folder: Path) -> None:
    for name, file in FILES.items():
        if not (folder / file).is_file():
            print(f"{folder / file} does not exist, skipped", flush=True)
            continue
        whole = load(folder / file)
        for kind in MASKS:
            for method, complete in METHODS.items():
                results.measure(
                    f"{name}, {kind}/{method}/0",
                    None,
                    lambda _, c=complete, k=kind, w=whole: score(c, w, k),
                    None,
                )


def errors(results: Results, name: str) -> str:
    rows = []
    for method in [*METHODS, *PUBLISHED]:
        cells = []
        for kind in MASKS:
            record = results.records.get(f"{name}, {kind}/{method}/0")
            printed = PUBLISHED.get(method, {}).get((name, kind))
            value = printed if record is None else record["rmse"]
            cells.append("" if value is None else f"{value:.3g}")
        if any(cells):
            rows.append([method, *cells])
    return table(["method", *MASKS], rows)


def relative(results: Results) -> dict[str, list[float]]:
    """Errors over those of `OURS` in each case, by method."""

    def error(method: str, name: str, kind: str) -> float:
        return results.records[f"{name}, {kind}/{method}/0"]["rmse"]

    cases = [(name, kind) for name in FILES for kind in MASKS]
    return {m: [error(m, *c) / error(OURS, *c) for c in cases] for m in METHODS}


def page(results: Results) -> None:
    ratios = relative(results)
    means = {method: geometric_mean(found) for method, found in ratios.items()}
    others = np.min([r for m, r in ratios.items() if "SeriesCompleter" not in m], 0)
    fields: dict[str, object] = {
        "n_cases": len(others),
        "n_lowest": int((others > 1).sum()),
        "line": f"{means[LINE]:.2f}",
        "chart": chart("series", "RMSE / RMSE of SeriesCompleter", means),
    }
    own = {
        (name, kind): results.records[f"{name}, {kind}/{OURS}/0"]
        for name in FILES
        for kind in MASKS
    }
    for name in FILES:
        fields[name.lower().replace(" ", "_")] = errors(results, name)
    fields["seconds"] = table(
        ["", *MASKS],
        [
            [name, *(f"{own[name, kind]['seconds']:.0f}" for kind in MASKS)]
            for name in FILES
        ],
    )
    fields["without"] = table(
        ["", *MASKS],
        [
            [name, *(f"{own[name, k]['without the worst day']:.3g}" for k in MASKS)]
            for name in FILES
        ],
    )
    write_page("series", fields)


def main() -> None:
    warnings.simplefilter("ignore")
    results = Results("series")
    given = sys.argv[1] if len(sys.argv) > 1 else None
    if given != "page":
        home = os.environ.get("SKMC_DATA") or "~/skmc_data"
        folder = Path(given or Path(home, "series")).expanduser()
        if not folder.is_dir():
            sys.exit(f"{folder} does not exist; pass the folder of hangzhou.npz.")
        run(results, folder)
    page(results)


if __name__ == "__main__":
    main()
