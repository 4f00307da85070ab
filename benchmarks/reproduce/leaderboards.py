"""MovieLens beside published results and beside myFM, measured on the same ratings."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from benchmarks.reproduce.ratings import (
    MAX_RATING,
    METHODS,
    MIN_RATING,
    prediction_error,
    split,
)
from benchmarks.shared.pages import chart, table, write_page
from benchmarks.shared.results import Results
from skmc import BayesianFactorizationCompleter, Entries

NAME = "leaderboards"
FOLDS = [f"u{k}" for k in range(1, 6)]
TENTH = "90/10"
OURS = {name: make for name, make in METHODS.items() if name != "Soft-Impute"}
MORE_DRAWS = {  # of the folds of MovieLens-100K
    "Bayesian, implicit, 400 draws": lambda seed: BayesianFactorizationCompleter(
        n_draws=400, implicit=True, heteroscedastic=True, random_state=seed
    )
}
# Test ratings, method, RMSE, where it was published, and how it differs from ours.
PUBLISHED = [
    (
        "100k, u1",
        "sRGCNN",
        ".929",
        "[Monti et al. 2017](https://arxiv.org/abs/1704.06803)",
        "graphs of features",
    ),
    (
        "100k, u1",
        "GC-MC",
        ".910, .905",
        "[van den Berg et al. 2018](https://arxiv.org/abs/1706.02263)",
        "without and with features",
    ),
    (
        "100k, u1",
        "IGMC",
        ".905",
        "[Zhang, Chen 2020](https://arxiv.org/abs/1904.12058)",
        "",
    ),
    (
        "100k, u1",
        "GLocal-K",
        ".889",
        "[its repository](https://github.com/usydnlp/Glocal_K)",
        "the epoch with the lowest RMSE on the *test* ratings",
    ),
    (
        "1m, 90/10",
        "GC-MC",
        ".832",
        "[van den Berg et al. 2018](https://arxiv.org/abs/1706.02263)",
        "five other random splits",
    ),
    (
        "1m, 90/10",
        "SparseFC",
        ".824",
        "[Muller et al. 2018](http://proceedings.mlr.press/v80/muller18a.html)",
        "other random splits",
    ),
    (
        "1m, 90/10",
        "GLocal-K",
        ".823",
        "[its repository](https://github.com/usydnlp/Glocal_K)",
        "another random split; the epoch with the lowest RMSE on the *test* ratings",
    ),
    *[
        (
            "10m, 90/10",
            method,
            rmse,
            "[Rendle et al. 2019](https://arxiv.org/abs/1905.01395)",
            "not measured here: MovieLens-10M is not among the evaluation files",
        )
        for method, rmse in {
            "matrix factorization, SGD": ".7720",
            "Bayesian matrix factorization": ".7633",
            "Bayesian SVD++": ".7563",
            "Bayesian timeSVD++, flipped": ".7485",
        }.items()
    ],
]


class MyFM:
    """myFM on indicators of user and film, and of what each user and film was rated.

    As in its examples: ten factors, 512 samples, and implicit features with rows of
    Euclidean norm one.
    """

    def __init__(self, implicit: bool):
        self.implicit = implicit

    def fit(self, train: Entries) -> MyFM:
        from myfm import MyFMRegressor

        m, n = train.matrix_shape
        ones = np.ones(len(train)), (train.rows, train.cols)
        seen = csr_array(ones, train.matrix_shape)
        self.blocks = [eye_array(m, format="csr")], [eye_array(n, format="csr")]
        if self.implicit:
            for block, rated in zip(self.blocks, (seen, seen.T.tocsr()), strict=True):
                counts = np.maximum(rated.sum(1), 1)
                block.append(rated.multiply(counts[:, None] ** -0.5).tocsr())
        self.model = MyFMRegressor(rank=10, random_seed=42)
        self.model.fit(
            None,
            train.values,
            X_rel=self._relations(train.rows, train.cols),
            group_shapes=[m, n, n, m] if self.implicit else [m, n],
            n_iter=512,
            n_kept_samples=512,
        )
        return self

    def _relations(self, rows, cols):
        from myfm import RelationBlock

        places = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        return [
            RelationBlock(place, hstack(block).tocsr())
            for place, block in zip(places, self.blocks, strict=True)
        ]

    def predict_entries(self, rows, cols) -> np.ndarray:
        return self.model.predict(None, self._relations(rows, cols))


def run(results: Results, *parts: str) -> None:
    """Measure ``100k``, ``1m``, ``myfm-100k`` and ``myfm-1m``, or some of them."""
    for part in parts or ("100k", "1m"):
        size = part.removeprefix("myfm-")
        methods = {"myFM": False, "myFM, implicit": True}
        if part == size:
            methods = OURS | (MORE_DRAWS if size == "100k" else {})
        for protocol in FOLDS if size == "100k" else [TENTH]:
            score = prediction_error(*split(size, protocol, 0))
            for method, make in methods.items():
                key = f"{size}, {protocol}/{method}/0"
                completer = make(0) if callable(make) else MyFM(make)
                results.measure(key, completer, score, None)


def write(results: Results) -> None:
    """Write the page from the records."""

    def shown(case: str, method: str) -> str:
        mean = results.mean(f"{case}/{method}", "rmse")
        return "-" if mean is None else f"{mean:.4f}"

    methods = [*OURS, *MORE_DRAWS, "myFM", "myFM, implicit"]
    cases = [f"100k, {fold}" for fold in FOLDS]

    def mean(method: str) -> float:
        found = [results.mean(f"{case}/{method}", "rmse") for case in cases]
        return float(np.mean([np.nan if x is None else x for x in found]))

    def row(method: str) -> list[str]:
        seconds = results.mean(f"1m, {TENTH}/{method}", "seconds")
        return [
            method,
            *[shown(case, method) for case in cases],
            shown(f"1m, {TENTH}", method),
            "-" if seconds is None else f"{seconds:.0f}",
        ]

    header = ["", *FOLDS, f"1m, {TENTH}", "s"]
    means = {method: value for method in methods if (value := mean(method)) > 0}
    best, peer = "Bayesian, implicit", "myFM, implicit"
    names = ["ratings", "method", "RMSE", "source", "what differs"]
    published = table(names, map(list, PUBLISHED))
    labels = {m: m if "myFM" in m else f"{m} (skmc)" for m in means}
    fields = {
        "best": f"{mean(best):.4f}",
        "peer": f"{mean(peer):.4f}",
        "best_1m": shown(f"1m, {TENTH}", best),
        "peer_1m": shown(f"1m, {TENTH}", peer),
        "chart": chart(
            NAME, "Mean RMSE over u1 to u5", {labels[m]: means[m] for m in means}
        ),
        "low": MIN_RATING,
        "high": MAX_RATING,
        "measured": table(header, [row(method) for method in methods]),
        "published": published,
    }
    write_page(NAME, fields)
