"""Tables and figures of Li, Sun, Wang, Wang: AIR, 2022.

Protocol: pictures are 240 x 240 in [0, 1], "random" hides cells where
``RandomState(20210909 + seed).random_sample(shape) <= rate``, the other patterns are
fixed. NMAE is over hidden cells. Every figure is the mean of three seeds (of random
masks and of starts). Nothing is chosen by the hidden cells.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.reproduce.papers import AIR_METHODS, AIR_TABLE1, AIR_TABLE2
from benchmarks.shared.pages import hardware, table, write_page
from benchmarks.shared.problems import hide, matrix
from benchmarks.shared.timing import seconds_per_step, solver_of
from skmc import (
    AIRCompleter,
    DMFCompleter,
    KNNCompleter,
    NonlocalCompleter,
    SVDCompleter,
    patterns,
)
from skmc.metrics import nmae

SEEDS = range(3)


class Page:
    """A table that is printed row by row and written at the end."""

    def __init__(self, name: str, header: list[str], **fields: object):
        self.name, self.header, self.fields = name, header, fields
        self.rows: list[list[str]] = []
        print(name)
        print(" | ".join(header), flush=True)

    def row(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])
        print(" | ".join(self.rows[-1]), flush=True)

    def write(self) -> None:
        write_page(self.name, {"rows": table(self.header, self.rows), **self.fields})


# What AIR chooses from, on a held-out tenth of the observed cells.
CHOICES = [
    {},
    {"max_iter": 6000},
    {"max_iter": 6000, "init_scale": 0.1},
    {"max_iter": 20_000, "init_scale": 0.1},
]


def chosen_air(X: np.ma.MaskedArray, seed: int) -> tuple[AIRCompleter, dict]:
    """AIR with the parameters that complete held-out observed cells best."""
    held_out = patterns.random(X, 0.1, spare=True, random_state=seed)
    train = np.ma.masked_array(X.data, X.mask | held_out)
    errors = [
        nmae(AIRCompleter(random_state=seed, **p).fit_transform(train), X, held_out)
        for p in CHOICES
    ]
    best = CHOICES[int(np.argmin(errors))]
    return AIRCompleter(random_state=seed, **best), best


def completers(graphs: dict, seed: int) -> dict[str, Any]:
    made = {
        "KNN": KNNCompleter(),
        "SVD": SVDCompleter(random_state=seed),
        "DMF": DMFCompleter(random_state=seed),
        "AIR": AIRCompleter(random_state=seed),
    }
    if graphs:
        made["DMF+DE"] = DMFCompleter("dirichlet", random_state=seed)
    else:
        made["RDMF"] = DMFCompleter("tv", random_state=seed)
    return made


def table1() -> None:
    """Table 1: NMAE; AIR with its defaults, and chosen on held-out cells."""
    header = ["data", "hidden"]
    header += [f"{m} (paper)" for m in AIR_METHODS]
    header += ["AIR, chosen", "AIR / paper", "chosen / paper", "AIR, s"]
    choices = ", ".join(f"`{p or 'the defaults'}`" for p in CHOICES)
    page = Page("air-table1", header, choices=choices)
    for (name, pattern), paper in AIR_TABLE1.items():
        truth, graphs = matrix(name)
        ours: dict[str, list[float]] = {}
        seconds = []
        for seed in SEEDS:
            X = hide(truth, pattern, seed)
            for method, completer in completers(graphs, seed).items():
                start = time.perf_counter()
                known = graphs if method == "DMF+DE" else {}
                completed = completer.fit_transform(X, **known)
                if method == "AIR":
                    seconds.append(time.perf_counter() - start)
                ours.setdefault(method, []).append(nmae(completed, truth, X.mask))
            if pattern.startswith("random"):
                best, _ = chosen_air(X, seed)
                error = nmae(best.fit_transform(X), truth, X.mask)
                ours.setdefault("chosen", []).append(error)
        mean = {method: float(np.mean(values)) for method, values in ours.items()}
        cells = [
            f"{mean[m]:.4f} ({p if p is not None else '-'})" if m in mean else "-"
            for m, p in zip(AIR_METHODS, paper, strict=True)
        ]
        chosen = mean.get("chosen", mean["AIR"])
        page.row(
            name,
            pattern,
            *cells,
            f"{chosen:.5f}",
            f"{mean['AIR'] / paper[-1]:.2f}",
            f"{chosen / paper[-1]:.2f}",
            f"{np.median(seconds):.1f}",
        )
    page.write()


def nonlocal_rows() -> None:
    """The pictures of Table 1 by `NonlocalCompleter`, which is not in the paper."""
    header = ["data", "hidden", "AIR, paper", "ours: NonlocalCompleter", "ratio", "s"]
    page = Page("air-nonlocal", header, n_seeds=len(SEEDS))
    for (name, pattern), paper in AIR_TABLE1.items():
        truth, graphs = matrix(name)
        if graphs:
            continue
        errors, start = [], time.process_time()
        for seed in SEEDS:
            X = hide(truth, pattern, seed)
            completed = NonlocalCompleter(random_state=seed).fit_transform(X)
            errors.append(nmae(completed, truth, X.mask))
        seconds = (time.process_time() - start) / len(errors)
        error = float(np.mean(errors))
        page.row(
            name,
            pattern,
            paper[-1],
            f"{error:.4f}",
            f"{error / paper[-1]:.2f}",
            f"{seconds:.1f}",
        )
    page.write()


def table2(n_iter: int = 200, repeats: int = 5) -> None:
    """Table 2: time per iteration of AIR over that of DMF, interleaved, medians."""
    header = [
        "m",
        "L",
        "DMF, ms",
        "RDMF, ms",
        "AIR, ms",
        "AIR / DMF",
        "paper",
        "RDMF / DMF",
    ]
    header += ["paper"]
    fields = {"repeats": repeats, "n_iter": n_iter, "hardware": hardware()}
    page = Page("air-table2", header, **fields)
    barbara, _ = matrix("Barbara")
    for (m, depth), paper in AIR_TABLE2.items():
        picture = barbara[:m, :m]
        X = hide(picture, "random 30 %", 0)
        solvers = [
            solver_of(X, DMFCompleter(depth=depth, random_state=0)),
            solver_of(X, DMFCompleter("tv", depth=depth, random_state=0)),
            solver_of(X, AIRCompleter(depth=depth, random_state=0)),
        ]
        runs = [
            [seconds_per_step(*pair, n_iter) for pair in solvers]
            for _ in range(repeats)
        ]
        dmf, rdmf, air = np.median(runs, axis=0)
        page.row(
            m,
            depth,
            *(f"{1e3 * t:.3f}" for t in (dmf, rdmf, air)),
            f"{air / dmf:.2f}",
            f"{paper[2] / paper[0]:.2f}",
            f"{rdmf / dmf:.2f}",
            f"{paper[1] / paper[0]:.2f}",
        )
    page.write()


ABLATION = {
    "default": {},
    "Laplacians learn at every step (the papers)": {"laplacian_every": 1},
    "Laplacians learn at every 10th step": {"laplacian_every": 10},
    "depth 3 (the papers)": {"depth": 3},
    "learning rate 0.02": {"lr": 0.02},
    "learning rate 0.08": {"lr": 0.08},
    "factors start at 0.1": {"init_scale": 0.1},
    "columns standardised": {"scaling": "columns"},
    "no scaling": {"scaling": None},
    "weights 0.1": {"lambda_row": 0.1, "lambda_col": 0.1},
    "weights 0.5": {"lambda_row": 0.5, "lambda_col": 0.5},
    "weights 1": {"lambda_row": 1.0, "lambda_col": 1.0},
    "softmax over all cells": {"adjacency": "global"},
    "rows only": {"lambda_col": 0.0},
    "columns only": {"lambda_row": 0.0},
    "with blocks of 8 x 8": {"blocks": {8: 0.25}},
    "with blocks of 4 x 4": {"blocks": {4: 0.25}},
    "early stopping": {"early_stopping": True},
    "1000 iterations": {"max_iter": 1000},
    "the paper's way": {
        "laplacian_every": 1,
        "depth": 3,
        "lr": 1e-3,
        "max_iter": 10_000,
        "scaling": None,
        "init_scale": 10**-2.5,
        "lambda_row": 2.88,
        "lambda_col": 2.88,
    },
}
ABLATED = [
    ("Barbara", "random 30 %"),
    ("Barbara", "texture"),
    ("Barbara", "patch"),
    ("Baboon", "random 30 %"),
    ("IC", "random 20 %"),
    ("GPCR", "random 20 %"),
]


def ablation() -> None:
    """The effect of each change to the papers, on held-out cells and on the truth."""
    header = ["change"]
    for name, pattern in ABLATED:
        header += [f"{name}, {pattern}: held out", "truth"]
    page = Page("air-ablation", [*header, "s"], hardware=hardware())
    for change, params in ABLATION.items():
        cells, seconds = [], 0.0
        for name, pattern in ABLATED:
            small = "blocks" in params and name not in ("Barbara", "Baboon")
            if small:
                cells += ["-", "-"]
                continue
            truth, _ = matrix(name)
            X = hide(truth, pattern, 0)
            held_out = patterns.random(X, 0.1, spare=True, random_state=0)
            train = np.ma.masked_array(X.data, X.mask | held_out)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                completer = AIRCompleter(random_state=0, **params)
                guess = completer.fit_transform(train)
                start = time.perf_counter()
                completed = completer.fit_transform(X)
            if not seconds:
                seconds = time.perf_counter() - start
            cells.append(f"{nmae(guess, X, held_out):.4f}")
            cells.append(f"{nmae(completed, truth, X.mask):.4f}")
        page.row(change, *cells, f"{seconds:.1f}")
    page.write()
