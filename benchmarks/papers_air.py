"""Tables and figures of Li, Sun, Wang, Wang: AIR, 2022, beside the published ones.

Pictures are 240 x 240 in [0, 1], "random" hides cells where
``RandomState(20210909 + seed).random_sample(shape) <= rate``, the other patterns are
fixed. NMAE is over hidden cells; a seed is one of the random mask and of the start.
Nothing is chosen by the hidden cells, except "least" in ``limit``, which says so.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from common import Results, run
from problems import hide, matrix
from scipy.sparse import csgraph, csr_array
from scipy.sparse.linalg import LinearOperator, cg
from timing import prepared, seconds_per_step, solver_of

from skmc import (
    AIRCompleter,
    DMFCompleter,
    KNNCompleter,
    NonlocalCompleter,
    SVDCompleter,
    patterns,
)
from skmc.loop import solve
from skmc.metrics import nmae

SEEDS = range(3)
N_ITER, REPEATS = 200, 5  # of Table 2
# Table 1: NMAE, and the order of its columns.
AIR_METHODS = ("KNN", "SVD", "DMF", "RDMF", "DMF+DE", "AIR")
AIR_TABLE1 = {
    ("Barbara", "random 30 %"): (0.083, 0.0621, 0.0613, 0.0494, None, 0.0471),
    ("Barbara", "patch"): (0.1563, 0.2324, 0.7664, 0.3025, None, 0.1195),
    ("Barbara", "texture"): (0.0712, 0.1331, 0.3885, 0.1864, None, 0.0692),
    ("Baboon", "random 30 %"): (0.0831, 0.1631, 0.2134, 0.0926, None, 0.0814),
    ("Baboon", "patch"): (0.1195, 0.1571, 0.8133, 0.2111, None, 0.1316),
    ("Baboon", "texture"): (0.1237, 0.1815, 0.5835, 0.2818, None, 0.1208),
    ("Syn-Netflix", "random 70 %"): (0.0032, 0.0376, 0.0003, None, 0.0008, 0.0002),
    ("Syn-Netflix", "random 75 %"): (0.0046, 0.0378, 0.0004, None, 0.0009, 0.0003),
    ("Syn-Netflix", "random 80 %"): (0.0092, 0.0414, 0.0014, None, 0.0012, 0.0007),
    ("IC", "random 20 %"): (0.0169, 0.0547, 0.0773, None, 0.0151, 0.0134),
    ("GPCR", "random 20 %"): (0.0409, 0.0565, 0.1513, None, 0.0245, 0.0271),
}
# Table 2: (m, L) -> seconds for 10 000 iterations of DMF, RDMF, AIR on a V100.
AIR_TABLE2 = {
    (100, 2): (31.55, 44.24, 59.53),
    (100, 3): (33.93, 46.81, 61.53),
    (100, 4): (36.52, 49.16, 61.59),
    (170, 2): (35.15, 47.67, 65.81),
    (170, 3): (37.97, 51.47, 67.97),
    (170, 4): (41.38, 55.11, 70.86),
    (240, 2): (43.57, 53.36, 82.21),
    (240, 3): (46.5, 59.89, 83.32),
    (240, 4): (52.24, 61.89, 88.34),
}
# What AIR chooses from, on a held-out tenth of the observed cells.
CHOICES = [
    {},
    {"max_iter": 6000},
    {"max_iter": 6000, "init_scale": 0.1},
    {"max_iter": 20_000, "init_scale": 0.1},
]


def chosen_air(X: np.ma.MaskedArray, seed: int) -> AIRCompleter:
    """AIR with the parameters that complete held-out observed cells best."""
    held_out = patterns.random(X, 0.1, spare=True, random_state=seed)
    train = np.ma.masked_array(X.data, X.mask | held_out)
    errors = [
        nmae(
            AIRCompleter(scaling="global", random_state=seed, **p).fit_transform(train),
            X,
            held_out,
        )
        for p in CHOICES
    ]
    best = CHOICES[int(np.argmin(errors))]
    return AIRCompleter(scaling="global", random_state=seed, **best)


def completers(graphs: dict, seed: int) -> dict[str, Any]:
    made = {
        "KNN": KNNCompleter(),
        "SVD": SVDCompleter(random_state=seed),
        "DMF": DMFCompleter(random_state=seed),
        "AIR": AIRCompleter(scaling="global", random_state=seed),
    }
    if graphs:
        made["DMF+DE"] = DMFCompleter("dirichlet", random_state=seed)
    else:
        made["RDMF"] = DMFCompleter("tv", random_state=seed)
    return made


def table1_error(name: str, pattern: str, method: str, seed: int) -> dict[str, Any]:
    truth, graphs = matrix(name)
    X = hide(truth, pattern, seed)
    if method == "Nonlocal":  # not in the paper
        completer = NonlocalCompleter(random_state=seed)
    elif method == "AIR, chosen":
        completer = chosen_air(X, seed)
    else:
        completer = completers(graphs, seed)[method]
    known = graphs if method == "DMF+DE" else {}
    return {"nmae": nmae(completer.fit_transform(X, **known), truth, X.mask)}


def table1(results: Results) -> None:
    """Table 1: AIR with its defaults, and chosen on held-out cells."""
    for (name, pattern), printed in AIR_TABLE1.items():
        graphs = name in ("Syn-Netflix", "IC", "GPCR")
        methods = [*completers({"row_graph": None} if graphs else {}, 0)]
        methods += ["AIR, chosen"] * pattern.startswith("random")
        methods += ["Nonlocal"] * (not graphs)
        for method, seed in product(methods, SEEDS):
            case = name, pattern, method, seed
            results.measure(("table 1", *case), table1_error, *case, limit=None)
        published = dict(zip(AIR_METHODS, printed, strict=True))
        results.published("table 1", name, pattern, "nmae", published)


def milliseconds(m: int, depth: int) -> dict[str, float]:
    """Medians of steps of AIR, RDMF and DMF that take turns."""
    X = hide(matrix("Barbara")[0][:m, :m], "random 30 %", 0)
    solvers = [
        solver_of(X, DMFCompleter(depth=depth, random_state=0)),
        solver_of(X, DMFCompleter("tv", depth=depth, random_state=0)),
        solver_of(X, AIRCompleter(depth=depth, random_state=0)),
    ]
    runs = [
        [seconds_per_step(*pair, N_ITER) for pair in solvers] for _ in range(REPEATS)
    ]
    names = "DMF, ms", "RDMF, ms", "AIR, ms"
    return dict(zip(names, 1e3 * np.median(runs, axis=0), strict=True))


def table2(results: Results) -> None:
    """Table 2: time of an iteration."""
    for (m, depth), printed in AIR_TABLE2.items():
        case = ("table 2", f"Barbara, {m} x {m}", f"depth {depth}")
        results.measure((*case, "a step"), milliseconds, m, depth, limit=None)
        seconds = dict(zip(("DMF", "RDMF", "AIR"), printed, strict=True))
        results.published(*case, "seconds of 10 000 steps on a V100", seconds)


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


def ablated(name: str, pattern: str, params: dict[str, Any]) -> dict[str, float]:
    """Errors of held-out cells, and of the truth."""
    truth, _ = matrix(name)
    X = hide(truth, pattern, 0)
    train, held_out = divided(X, 0)
    completer = AIRCompleter(**{"scaling": "global", "random_state": 0, **params})
    return {
        "nmae, held out": nmae(completer.fit_transform(train), X, held_out),
        "nmae": nmae(completer.fit_transform(X), truth, X.mask),
    }


def ablation(results: Results) -> None:
    """The effect of each change to the papers."""
    for change, params in ABLATION.items():
        for name, pattern in ABLATED:
            if "blocks" in params and name not in ("Barbara", "Baboon"):
                continue  # too small
            key = ("ablation", name, pattern, change)
            results.measure(key, ablated, name, pattern, params, limit=None)


# ------------------------------------------ KNN and DMF+DE, chosen on held-out cells

BOUNDED = ("IC", "random 20 %"), ("GPCR", "random 20 %")
NEIGHBORS, RATIOS = (1, 2, 3, 5), tuple(10.0 ** np.arange(-4, 3))


def nearest(graph: np.ndarray, k: int) -> np.ndarray:
    """The graph with the largest ``k`` weights of each vertex, symmetric."""
    weights = graph - np.diag(np.diag(graph))
    kept = np.argsort(-weights, axis=1)[:, :k]
    sparse = np.zeros_like(weights)
    np.put_along_axis(sparse, kept, np.take_along_axis(weights, kept, 1), 1)
    return np.maximum(sparse, sparse.T)


KNN = {
    f"k={k}, {weights}": KNNCompleter(k, weights=weights)
    for k in (1, 2, 3, 5, 10, 20)
    for weights in ("uniform", "distance")
}


class DirichletChoice(NamedTuple):
    """What DMF+DE chooses: scaling, weights, and neighbors in the graphs."""

    scaling: str | None
    lambda_row: float
    lambda_col: float
    k: int

    def __str__(self) -> str:
        return (
            f"lambda {self.lambda_row:g} and {self.lambda_col:g}, "
            f"scaling {self.scaling}, k={self.k}"
        )

    def complete(self, X: np.ma.MaskedArray, graphs: dict, seed: int) -> np.ndarray:
        completer = DMFCompleter(
            "dirichlet",
            self.lambda_row,
            self.lambda_col,
            scaling=self.scaling,
            max_iter=6000,
            early_stopping=False,
            random_state=seed,
        )
        known = {name: nearest(graph, self.k) for name, graph in graphs.items()}
        return completer.fit_transform(X, **known)

    def refined(self) -> list[DirichletChoice]:
        """Other numbers of neighbors, and a larger weight of rows or of columns."""
        return [
            self._replace(
                k=k, lambda_row=a * self.lambda_row, lambda_col=b * self.lambda_col
            )
            for k in (self.k, 1)
            for a, b in ((1, 1), (10, 1), (1, 10))
        ]


EQUAL_WEIGHTS = [
    DirichletChoice(scaling, weight, weight, 3)
    for scaling in (None, "global")
    for weight in (1e-4, 1e-3, 1e-2)
]


def divided(X: np.ma.MaskedArray, seed: int) -> tuple[np.ma.MaskedArray, np.ndarray]:
    """Hide a tenth of the observed cells, and return where."""
    held_out = patterns.random(X, 0.1, spare=True, random_state=seed)
    return np.ma.masked_array(X.data, X.mask | held_out), held_out


def chosen(name: str, pattern: str, method: str, seed: int) -> dict[str, Any]:
    """KNN or DMF+DE that completes a held-out tenth of the observed cells best."""
    truth, graphs = matrix(name)
    X = hide(truth, pattern, seed)
    train, held_out = divided(X, seed)

    def error(completed: np.ndarray) -> float:
        return nmae(completed, X, held_out)

    @cache
    def of_dmf(choice: DirichletChoice) -> float:
        return error(choice.complete(train, graphs, seed))

    if method == "KNN":
        label = min(KNN, key=lambda label: error(KNN[label].fit_transform(train)))
        completed = KNN[label].fit_transform(X)
    else:
        best = min(min(EQUAL_WEIGHTS, key=of_dmf).refined(), key=of_dmf)
        label, completed = str(best), best.complete(X, graphs, seed)
    return {"nmae": nmae(completed, truth, X.mask), "chosen": label}


def harmonic(X: np.ma.MaskedArray, L_row: csr_array, L_col: csr_array) -> np.ndarray:
    """The completion with the least sum of Dirichlet energies."""
    Z, hidden = X.filled(0).astype(float), np.ma.getmaskarray(X)

    def of_hidden(z: np.ndarray) -> np.ndarray:
        cells = np.zeros(X.shape)
        cells[hidden] = z
        return (L_row @ cells + cells @ L_col)[hidden]

    n = int(hidden.sum())
    energy = LinearOperator((n, n), of_hidden, dtype=float)
    Z[hidden], _ = cg(energy, -(L_row @ Z + Z @ L_col)[hidden], rtol=1e-6)
    return Z


def limit(name: str, pattern: str, seed: int) -> dict[str, Any]:
    """Where DMF+DE tends to with small weights: chosen on held-out cells, and least.

    The least is found by the truth, as a bound of what any choice could reach.
    """
    truth, graphs = matrix(name)
    laplacians = {}
    for side, k in product(graphs, NEIGHBORS):
        graph = nearest(graphs[side], k)
        degree = graph.sum() / len(graph)
        laplacians[side, k] = csr_array(csgraph.laplacian(graph / degree))
    X = hide(truth, pattern, seed)
    train, held_out = divided(X, seed)
    errors = []
    for rows, columns, ratio in product(NEIGHBORS, NEIGHBORS, RATIOS):
        L = ratio * laplacians["row_graph", rows], laplacians["col_graph", columns]
        found = nmae(harmonic(train, *L), X, held_out)
        label = f"k={rows} and {columns}, ratio {ratio:g}"
        errors.append((found, nmae(harmonic(X, *L), truth, X.mask), label))
    _, error, label = min(errors)
    least = min(error for _, error, _ in errors)
    return {"nmae": error, "chosen": label, "least": least}


def chosen_table1(results: Results) -> None:
    for (name, pattern), seed in product(BOUNDED, SEEDS):
        key = ("chosen", name, pattern, "limit of DMF+DE", seed)
        results.measure(key, limit, name, pattern, seed, limit=None)
    for name, pattern in AIR_TABLE1:
        if name in ("Syn-Netflix", "IC", "GPCR"):
            for seed, method in product(SEEDS, ("KNN", "DMF+DE")):
                case = name, pattern, method, seed
                results.measure(("chosen", *case), chosen, *case, limit=None)


# -------------------------------------------------------------------------- figures

CURVES = [
    ("Cameraman", "random 30 %"),
    ("Cameraman", "texture"),
    ("Cameraman", "patch"),
    ("Syn-Netflix", "random 70 %"),
    ("IC", "random 20 %"),
    ("GPCR", "random 20 %"),
]
FOLLOWED = {
    "DMF": lambda: DMFCompleter(random_state=0),
    "AIR": lambda: AIRCompleter(scaling="global", random_state=0, max_iter=2000),
}


def follow(completer: Any, X: np.ma.MaskedArray, look: Any) -> None:
    """Run a completer's solver; call ``look(progress, completion)`` at each check."""
    solver, data = solver_of(X, completer)
    scaling = prepared(X, completer).scaling

    def callback(progress):
        completion = scaling.undo(progress.state.X).numpy()
        look(progress, completion)

    solve(
        solver, data, max_iter=completer.max_iter, callbacks=[callback], check_every=10
    )


def curve(name: str, pattern: str, method: str) -> dict[str, float]:
    """NMAE of the best step and of the last: DMF's rises again, AIR's does not."""
    truth, _ = matrix(name)
    X = hide(truth, pattern, 0)
    errors: dict[int, float] = {}

    def look(progress: Any, completion: np.ndarray) -> None:
        errors[progress.n_iter] = nmae(completion, truth, X.mask)

    follow(FOLLOWED[method](), X, look)
    best = min(errors, key=errors.__getitem__)
    return {"nmae, least": errors[best], "step": best, "nmae": errors[max(errors)]}


def fixed(pattern: str) -> dict[str, float]:
    """NMAE with Laplacians that are fixed as they were after some steps."""
    truth, _ = matrix("Baboon")
    X = hide(truth, pattern, 0)
    found: dict[str, Any] = {"adaptive": None}
    errors: list[float] = []

    def keep(progress: Any, completion: np.ndarray) -> None:
        if progress.n_iter in (50, 100, 200):
            learned = progress.result.laplacians
            fixed = {name: L.numpy().copy() for name, L in learned.items()}
            found[f"fixed at step {progress.n_iter}"] = fixed

    def look(progress: Any, completion: np.ndarray) -> None:
        errors.append(nmae(completion, truth, X.mask))

    follow(AIRCompleter(scaling="global", random_state=0), X, keep)
    ends = {}
    for label, L in found.items():
        air = AIRCompleter(scaling="global", random_state=0, fixed_laplacians=L)
        follow(air, X, look)
        ends[f"nmae, {label}"] = errors[-1]
    return ends


def figures(results: Results) -> None:
    """Figures 8 and 5, as numbers."""
    for case in CURVES:
        for method in FOLLOWED:
            key = ("figure 8", *case, method)
            results.measure(key, curve, *case, method, limit=None)
    for pattern in ("patch", "random 30 %", "texture"):
        key = ("figure 5", "Baboon", pattern, "AIR")
        results.measure(key, fixed, pattern, limit=None)


if __name__ == "__main__":
    run(__doc__, table1, table2, chosen_table1, ablation, figures)
