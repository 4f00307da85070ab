"""Time and memory of every completer: ``python -m benchmarks.speed.growth [NAME ...]``.

Squares and tables of twenty columns, from a thousand to ten million cells, one thread.
Each completer gets a process for each of the two shapes; it is ended when a size takes
more than ``CAP`` seconds, so the whole takes about half an hour. Completers that are
already in ``docs/reproduction/records/speed-growth.json`` are run again only if they
are named.
``page`` writes the page and the figure alone, ``costs`` prints what ``cost`` of each
class would be by least squares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from benchmarks.shared import made
from benchmarks.shared.pages import (
    dots,
    hardware,
    record,
    save_figure,
    table,
    write_page,
)
from benchmarks.shared.timing import peak_memory
from skmc.checks import all_completers
from skmc.completers import Cost, Size

CAP = 25  # seconds of one size, all calls together
N_COLS = 20  # of the tables
CELLS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
HIDDEN = 0.2
SHOWN = 100_000  # cells of the chart
LONG = 0.03  # seconds; exponents are fitted to longer times
NAME = "speed-growth"
SHAPES = {
    "square": [(round(n**0.5), round(n**0.5)) for n in CELLS],
    "table": [(n // N_COLS, N_COLS) for n in CELLS],
}
# The others choose among these, within a time limit of their own.
COSTS = {cls.__name__: cls.cost for cls in all_completers() if hasattr(cls, "cost")}


def problem(n_rows: int, n_cols: int) -> np.ndarray:
    """Rank 5 with a tenth of noise, a fifth of the cells missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_cols))
    X += 0.1 * np.sqrt(5) * rng.normal(size=X.shape)
    X[rng.random(X.shape) < HIDDEN] = np.nan
    return X


def measured(name: str, shape: str) -> Iterator[dict[str, Any]]:
    """Times and memory of one completer for larger and larger matrices."""
    (cls,) = (cls for cls in all_completers() if cls.__name__ == name)
    cls().fit_transform(problem(30, 10))  # imports
    base = peak_memory()
    for n_rows, n_cols in SHAPES[shape]:
        X = problem(2 * n_rows, n_cols)
        completer = cls()
        if "random_state" in completer.get_params():
            completer.set_params(random_state=0)
        row: dict[str, Any] = {"rows": n_rows, "columns": n_cols}
        for what, rows in (("fit_transform", X[:n_rows]), ("transform", X[n_rows:])):
            start = time.process_time()
            getattr(completer, what)(rows)
            row[what] = time.process_time() - start
            row["GB"] = (peak_memory() - base) / 1e9
            yield row


def run(name: str, shape: str) -> list[dict[str, Any]]:
    """`measured` in a child process, which gets ``CAP`` seconds for each line."""
    command = [sys.executable, "-m", "benchmarks.speed.growth", "child", name, shape]
    one = {f"{lib}_NUM_THREADS": "1" for lib in ("OMP", "MKL", "OPENBLAS")}
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | one,
    )
    assert child.stdout is not None
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    timer = threading.Timer(2 * CAP, child.kill)  # with the time of the imports
    timer.start()
    for line in child.stdout:
        row = json.loads(line)
        rows[row["rows"], row["columns"]] = row
        if "transform" in row:
            timer.cancel()
            timer = threading.Timer(CAP, child.kill)
            timer.start()
    timer.cancel()
    child.wait()
    return list(rows.values())


def exponent(cells: list[int], values: list[float]) -> float | None:
    """The slope of the values that are long enough, on logarithmic axes."""
    long = [(c, v) for c, v in zip(cells, values, strict=True) if v >= LONG]
    if len(long) < 2:
        return None
    x, y = np.log(np.array(long, float)).T
    return float(np.polyfit(x, y, 1)[0])


def expected(name: str, sizes: list[tuple[int, int]]) -> float | None:
    """The slope of the estimate of `skmc methods --shape`, without its constant."""
    if len(sizes) < 2:
        return None
    cost = COSTS[name]
    found = [
        (np.log(m * n), np.log(cost(Size(m, n, int(0.8 * m * n))) - cost.fixed))
        for m, n in sizes
    ]
    (x, a), (y, b) = found[-2:]
    return float((b - a) / (y - x))


def suggested(name: str, shapes: Mapping[str, Any]) -> Cost:
    """The cost whose logarithms have the smallest errors, as sums of squares."""
    rows = [row for shape in shapes.values() for row in shape]
    times = np.array([max(row["fit_transform"], 1e-3) for row in rows])
    shape = [(row["rows"], row["columns"]) for row in rows]
    sizes = [Size(m, n, int((1 - HIDDEN) * m * n)) for m, n in shape]
    cost = COSTS[name]
    parts = np.array(
        [[1.0, *(getattr(s, unit) for unit in cost.seconds)] for s in sizes]
    )
    start = np.log([max(cost.fixed, 1e-3), *cost.seconds.values()])
    found = least_squares(lambda x: np.log(parts @ np.exp(x) / times), start).x
    fixed, *seconds = (float(f"{value:.1g}") for value in np.exp(found))
    return Cost(fixed, **dict(zip(cost.seconds, seconds, strict=True)))


def print_costs() -> None:
    """Print a cost for each completer of the record."""
    known = made.known(NAME)
    for name in (name for name in sorted(known) if name in COSTS):
        cost = suggested(name, known[name])
        seconds = "".join(f", {unit}={s:g}" for unit, s in cost.seconds.items())
        print(f"{name}: Cost({cost.fixed:g}{seconds})")


def rows_of(known: Mapping[str, Any], shape: str) -> Iterator[list[str]]:
    """A line of the table for each completer."""
    for name, shapes in sorted(known.items()):
        rows = shapes.get(shape, [])
        if not rows:
            yield [f"`{name}`", *["-"] * 7]
            continue
        cells = [r["rows"] * r["columns"] for r in rows]
        sizes = [(r["rows"], r["columns"]) for r in rows]
        fits = [r["fit_transform"] for r in rows]
        news = [r["transform"] for r in rows if "transform" in r]
        slope = exponent(cells, fits)
        long = [s for s, t in zip(sizes, fits, strict=True) if t >= LONG]
        theory = expected(name, long)
        new = exponent(cells[: len(news)], news)
        memory = exponent(cells, [r["GB"] for r in rows])
        guess = COSTS[name](Size(*sizes[-1], int(0.8 * cells[-1])))
        yield [
            f"`{name}`",
            f"{sizes[-1][0]} x {sizes[-1][1]}",
            f"{fits[-1]:.2g}",
            f"{guess:.2g}",
            *("-" if s is None else f"{s:.2f}" for s in (slope, theory, new)),
            f"{rows[-1]['GB']:.2g}" + ("" if memory is None else f" ({memory:.2f})"),
        ]


def at(cells: int, shapes: Mapping[str, Any]) -> dict[str, float | None]:
    """Seconds of the fits to matrices of about a number of cells."""
    found = {}
    for shape, rows in shapes.items():
        m, n = SHAPES[shape][CELLS.index(cells)]
        own = [r["fit_transform"] for r in rows if (r["rows"], r["columns"]) == (m, n)]
        found[f"{m} x {n}"] = own[0] if own else None
    return found


def page() -> None:
    """Write the page and the figure from the record."""
    import matplotlib.pyplot as plt

    known = made.known(NAME)
    found = {name: known[name] for name in known if name in COSTS}
    figure, axes = plt.subplots(
        2, 1, figsize=(5.6, 10), sharex=True, layout="constrained"
    )
    styles = ["-", "--", ":", "-."]
    for ax, shape in zip(axes, SHAPES, strict=True):
        for k, (name, shapes) in enumerate(sorted(found.items())):
            rows = shapes.get(shape, [])
            ax.loglog(
                [r["rows"] * r["columns"] for r in rows],
                [r["fit_transform"] for r in rows],
                marker=".",
                color=f"C{k % 10}",
                linestyle=styles[k // 10],
                label=name.removesuffix("Completer"),
            )
        ax.set(ylabel="processor seconds", title=TITLES[shape])
        ax.grid(alpha=0.3)
    axes[1].set_xlabel("cells")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    save_figure(figure, NAME, 115)
    header = [
        "",
        "largest",
        "s",
        "estimate, s",
        "exponent",
        "in theory",
        "new rows",
        "GB (exponent)",
    ]
    hundred = {name: at(SHOWN, shapes) for name, shapes in sorted(found.items())}
    measure = f"Processor seconds for {SHOWN:,} cells".replace(",", " ")
    seconds = [s or np.inf for row in hundred.values() for s in row.values()]
    n_million = sum(any(at(10**6, shapes).values()) for shapes in found.values())
    fields = {
        "figure": f"{NAME}.png",
        "n_methods": len(found),
        "n_million": n_million,
        "median": f"{np.median(seconds):.2g}",
        "chart": dots("growth", measure, hundred, log=True),
        "cap": CAP,
        "long": LONG,
        "hardware": known["hardware"],
        **{shape: table(header, rows_of(found, shape)) for shape in SHAPES},
    }
    write_page("growth", fields)


TITLES = {"square": "Square matrices", "table": f"Tables of {N_COLS} columns"}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["child"]:
        warnings.simplefilter("ignore")
        for row in measured(*arguments[1:]):
            print(json.dumps(row), flush=True)
        return
    if arguments == ["costs"]:
        print_costs()
        return
    if arguments != ["page"]:
        for cls in all_completers():
            name = cls.__name__
            known = made.known(NAME)
            if name not in COSTS or (name not in arguments and name in known):
                continue
            if not arguments or name in arguments:
                record(NAME, {name: {shape: run(name, shape) for shape in SHAPES}})
        record(NAME, {"hardware": hardware()})
    page()


if __name__ == "__main__":
    main(sys.argv[1:])
