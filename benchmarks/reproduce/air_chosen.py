"""Table 1 of AIR: KNN and DMF+DE, chosen on held-out cells."""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph, csr_array
from scipy.sparse.linalg import LinearOperator, cg

from benchmarks.reproduce.papers import AIR_METHODS, AIR_TABLE1
from benchmarks.shared.pages import dots, table, write_page
from benchmarks.shared.problems import hide, matrix
from benchmarks.shared.results import Results
from skmc import DMFCompleter, KNNCompleter, patterns
from skmc.metrics import nmae

NAME = "air-chosen"
SEEDS = range(3)
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


def chosen(X: np.ma.MaskedArray, graphs: dict, seed: int) -> dict[str, tuple[str, Any]]:
    """KNN and DMF+DE that complete a held-out tenth of the observed cells best.

    By the method: what was chosen, and the function that completes a matrix.
    """
    train, held_out = divided(X, seed)

    def error(completed: np.ndarray) -> float:
        return nmae(completed, X, held_out)

    def of_dmf(choice: DirichletChoice) -> float:
        if choice not in known:
            known[choice] = error(choice.complete(train, graphs, seed))
        return known[choice]

    known: dict[DirichletChoice, float] = {}
    label = min(KNN, key=lambda label: error(KNN[label].fit_transform(train)))
    best = min(min(EQUAL_WEIGHTS, key=of_dmf).refined(), key=of_dmf)
    return {
        "KNN": (label, KNN[label].fit_transform),
        "DMF+DE": (str(best), partial(best.complete, graphs=graphs, seed=seed)),
    }


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


def limit(truth: np.ndarray, graphs: dict, pattern: str, seed: int) -> dict[str, Any]:
    """Where DMF+DE tends to with small weights: chosen on held-out cells, and least."""
    laplacians = {}
    for name, k in product(graphs, NEIGHBORS):
        graph = nearest(graphs[name], k)
        degree = graph.sum() / len(graph)
        laplacians[name, k] = csr_array(csgraph.laplacian(graph / degree))
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


def run(results: Results, *names: str) -> None:
    """Measure all data that have graphs, or those named."""
    for (name, pattern), seed in product(BOUNDED, SEEDS):
        key = f"{name}, {pattern}/limit/{seed}"
        if key not in results.records and name in (names or [name]):
            results.keep(key, limit(*matrix(name), pattern, seed))
    for name, pattern in AIR_TABLE1:
        truth, graphs = matrix(name)
        for seed in SEEDS if graphs and name in (names or [name]) else []:
            key = f"{name}, {pattern}/{{}}/{seed}"
            if key.format("DMF+DE") in results.records:
                continue
            X, start = hide(truth, pattern, seed), time.process_time()
            for method, (label, complete) in chosen(X, graphs, seed).items():
                error = nmae(complete(X), truth, X.mask)
                seconds = round(time.process_time() - start, 1)
                record = {"nmae": float(error), "chosen": label, "seconds": seconds}
                results.keep(key.format(method), record)


def write(results: Results) -> None:
    """Write the page from the records."""
    rows, points = [], {}
    for (name, pattern), paper in AIR_TABLE1.items():
        published = dict(zip(AIR_METHODS, paper, strict=True))
        if published["DMF+DE"] is None:
            continue
        for method in ("KNN", "DMF+DE"):
            key = f"{name}, {pattern}/{method}"
            if errors := results.values(key, "nmae"):
                error, printed = float(np.mean(errors)), published[method]
                first = results.records[f"{key}/0"]["chosen"]
                numbers = [f"{error:.4f}", str(printed), f"{error / printed:.2f}"]
                rows.append([name, pattern, method, *numbers, first, str(len(errors))])
                points.setdefault(f"{name}, {pattern}", {})[method] = error / printed
    bounds = []
    for name, pattern in BOUNDED:
        key = f"{name}, {pattern}/limit"
        if least := results.values(key, "least"):
            means = [f"{results.mean(key, value):.4f}" for value in ("nmae", "least")]
            span = f"{min(least):.4f} to {max(least):.4f}"
            printed = AIR_TABLE1[name, pattern][AIR_METHODS.index("DMF+DE")]
            bounds.append([f"{name}, {pattern}", *means, span, str(printed)])
    ratios = [ratio for point in points.values() for ratio in point.values()]
    header = ["data", "hidden", "method", "NMAE", "paper", "ratio"]
    of_bounds = ["data", "chosen", "best by the truth", "of single masks", "paper"]
    fields = {
        "n_lower": sum(ratio < 1 for ratio in ratios),
        "n_cases": len(ratios),
        "chart": dots(NAME, "NMAE / NMAE in the paper", points, log=True, at=1),
        "chosen": table([*header, "chosen (first mask)", "masks"], rows),
        "n_settings": len(NEIGHBORS) ** 2 * len(RATIOS),
        "bounds": table(of_bounds, bounds),
    }
    write_page(NAME, fields)
