"""Ranking by implicit feedback: ``python -m benchmarks.quality.implicit [page]``.

Measures what is not in ``docs/reproduction/records/implicit.json`` yet, and writes
``implicit.md``. The package implicit is measured if it is installed. ``ncf`` needs
``ml-1m.test.rating`` and ``ml-1m.test.negative`` of the folder ``Data`` of
https://github.com/hexiangnan/neural_collaborative_filtering, in the folder
``ratings/ncf`` of ``SKMC_DATA``, and ``ials/ncf_benchmarks/ials.py`` of
https://github.com/google-research/google-research in ``SKMC_PEERS/google-research``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.shared.pages import chart, table, write_page
from benchmarks.shared.results import Results
from skmc import Entries, FactorizationCompleter
from skmc.datasets import load_movielens

SETTINGS, SPLITS, SHOWN = 50, 3, 100
RANKS = (32, 64, 128, 256)
SWEEPS = 16
Setting = dict[str, Any]
Mask = np.ndarray  # bool, (n_users, n_items)


def likes(size: str) -> Mask:
    """The ratings of at least four stars."""
    ratings = load_movielens(size).entries
    liked = ratings[ratings.values >= 4]
    mask = np.zeros(ratings.matrix_shape, bool)
    mask[liked.rows, liked.cols] = True
    return mask[:, mask.any(0)]


def divided(mask: Mask, seed: int) -> tuple[Mask, Mask]:
    """Hide a fifth of the cells of each row, rounded down."""
    order = np.where(mask, np.random.default_rng(seed).random(mask.shape), np.inf)
    count = mask.sum(1) // 5
    test = order.argsort(1).argsort(1) < count[:, None]
    return mask & ~test, test


def ndcg(scores: torch.Tensor, train: Mask, test: Mask) -> float:
    """`skmc.metrics.ndcg_at_k` of the cells that are not in ``train``, but faster."""
    scores[torch.from_numpy(train)] = -torch.inf
    hits = torch.from_numpy(test).gather(1, scores.topk(SHOWN).indices).double()
    discount = 1 / torch.arange(2, SHOWN + 2).double().log2()
    count = torch.from_numpy(test.sum(1)).clamp_max(SHOWN)
    best = torch.cat([torch.zeros(1), discount.cumsum(0)])[count]
    return float(((hits @ discount)[count > 0] / best[count > 0]).mean())


def entries_of(mask: Mask) -> Entries:
    rows, cols = np.nonzero(mask)
    return Entries.from_triplets(rows, cols, np.ones(len(rows), np.float32), mask.shape)


def ours(train: Mask, setting: Setting) -> torch.Tensor:
    """Factors for a weight that is that of `implicit` for an average row."""
    alpha, power = setting["alpha"], setting["per_cell"]
    cells = train.shape[1] + alpha * train.sum(1).mean()
    completer = FactorizationCompleter(
        setting["rank"],
        alpha=alpha,
        lambda_ridge=setting["weight"] / cells**power,
        per_cell=power,
        max_iter=SWEEPS,
        tol=0.0,
        random_state=0,
    ).fit(entries_of(train))
    return torch.from_numpy(completer.row_factors_ @ completer.col_factors_.T)


def implicit(train: Mask, setting: Setting) -> torch.Tensor:
    from implicit.als import AlternatingLeastSquares

    rank, alpha, weight = (setting[x] for x in ("rank", "alpha", "weight"))
    model = AlternatingLeastSquares(
        rank, alpha=alpha, regularization=weight, iterations=SWEEPS, random_state=0
    )
    with threadpool_limits(1, "blas"):  # as it asks for
        model.fit(csr_array(train.astype(np.float32)), show_progress=False)
    return torch.from_numpy(model.user_factors @ model.item_factors.T)


def ease(train: Mask, setting: Setting) -> torch.Tensor:
    """Linear predictions of each item from all others (Steck, WWW 2019)."""
    X = torch.from_numpy(train).double()
    P = torch.linalg.inv(X.mT @ X + setting["lambda"] * torch.eye(X.shape[1]))
    B = P / -P.diagonal()
    B.fill_diagonal_(0.0)
    return X @ B


def search(name: str, train: Mask, held: Mask) -> tuple[float, Setting]:
    """The best of 50 settings: half of them random, the others near the best so far.

    The one weight of EASE has a grid.
    """
    rng, tried = np.random.default_rng(0), list[tuple[float, Setting]]()
    for k in range(SETTINGS):
        if name == "EASE":
            setting: Setting = {"lambda": float(np.geomspace(20, 5000, SETTINGS)[k])}
        elif k < SETTINGS // 2:
            setting = {
                "rank": int(rng.choice(RANKS)),
                "alpha": float(np.exp(rng.uniform(0, np.log(50)))),
                "weight": float(np.exp(rng.uniform(0, np.log(300)))),
                "per_cell": float(rng.choice(5) / 4) if name == "ours" else 0.0,
            }
        else:
            setting = dict(max(tried, key=itemgetter(0))[1])
            for part in ("alpha", "weight"):
                setting[part] *= float(np.exp(0.3 * rng.standard_normal()))
        gain = ndcg(METHODS[name](train, setting), train, held)
        tried.append((gain, setting))
    return max(tried, key=itemgetter(0))


METHODS: dict[str, Callable[[Mask, Setting], torch.Tensor]] = {
    "ours": ours,
    "implicit": implicit,
    "EASE": ease,
}


def measure_likes(results: Results) -> None:
    """Choose a setting on held-out cells of each split, and rank the hidden cells."""
    for size in ("100k", "1m"):
        mask = likes(size)
        for split in range(SPLITS):
            train, test = divided(mask, split)
            inner, held = divided(train, 10 + split)
            for name, scores in METHODS.items():
                if name == "implicit" and find_spec(name) is None:
                    continue
                key = f"{size}/{name}/{split}"
                if key in results.records:
                    continue
                start = time.process_time()
                gain, best = search(name, inner, held)
                searched, start = time.process_time() - start, time.process_time()
                found = scores(train, best)
                results.keep(
                    key,
                    {
                        "setting": best,
                        "NDCG, held out": gain,
                        "NDCG": ndcg(found, train, test),
                        "search": searched,
                        "fit": time.process_time() - start,
                    },
                )


def as_in_ncf(folder: Path) -> tuple[Mask, np.ndarray]:
    """Training cells and, for each user, 100 items, of which the last was held out.

    Items in the files of He et al. have other numbers than in MovieLens, in the order
    of the users who rate them first. The assignment contradicts as few ratings and
    unrated items of the files as possible.
    """
    ratings = load_movielens("1m").entries
    rated = np.zeros(ratings.matrix_shape, np.float32)
    rated[ratings.rows, ratings.cols] = ratings.values
    rated = rated[:, rated.any(0)]
    held = np.loadtxt(folder / "ml-1m.test.rating", dtype=int)
    lines = (folder / "ml-1m.test.negative").read_text().splitlines()
    others = np.array([line.split("\t")[1:] for line in lines], int)
    contradictions = np.zeros((rated.shape[1],) * 2, np.float32)
    unrated = np.zeros(rated.T.shape, np.float32)
    unrated[others, np.arange(len(others))[:, None]] = 1
    contradictions += unrated @ (rated > 0)
    for stars in range(1, 6):
        users, items, _, _ = held[held[:, 2] == stars].T
        named = np.zeros(rated.T.shape, np.float32)
        named[items, users] = 1
        contradictions += named @ (rated != stars)
    first = (rated > 0).argmax(0)
    order = np.abs(np.sort(first)[:, None] - first).clip(max=9)  # some ratings are lost
    column = linear_sum_assignment(10 * contradictions + order)[1]
    asked = column[np.column_stack([others, held[:, 1]])]
    train = rated > 0
    train[np.arange(len(train)), asked[:, -1]] = False
    return train, asked


def hits(scores: torch.Tensor, asked: np.ndarray) -> dict[str, float]:
    """HR@10 and NDCG@10 of the last of the 100 items of each row."""
    values = scores.gather(1, torch.from_numpy(asked))
    rank = (values[:, :-1] > values[:, -1:]).sum(1)
    gains = (1 / (rank + 2).double().log2()).where(rank < 10, 0.0)
    return {
        "HR@10": float((rank < 10).double().mean()),
        "NDCG@10": float(gains.mean()),
    }


# Published for these data by Rendle et al. (2022).
RANK, WEIGHT, UNOBSERVED, EPOCHS = 192, 0.007, 0.3, 12


def measure_ncf(results: Results, folder: Path) -> None:
    """Ten fits with the published parameters, and one by the authors' program."""
    train, asked = as_in_ncf(folder)
    weight = WEIGHT * (1 + UNOBSERVED)  # see docs/how/factorization.md
    for seed in range(10):
        if f"ncf/ours/{seed}" not in results.records:
            start = time.process_time()
            completer = FactorizationCompleter(
                RANK,
                alpha=1 / UNOBSERVED,
                lambda_ridge=weight,
                max_iter=EPOCHS,
                tol=0.0,
                random_state=seed,
            ).fit(entries_of(train))
            seconds = time.process_time() - start
            scores = completer.row_factors_ @ completer.col_factors_.T
            found = hits(torch.from_numpy(scores), asked)
            results.keep(f"ncf/ours/{seed}", {**found, "seconds": seconds})
    if "ncf/authors/0" not in results.records:
        peers = Path(os.environ["SKMC_PEERS"], "google-research")
        sys.path.append(str(peers / "ials" / "ncf_benchmarks"))
        from ials import IALS, DataSet

        lists = [
            [
                (k, np.flatnonzero(row).tolist())
                for k, row in enumerate(side)
                if row.any()
            ]
            for side in (train, train.T)
        ]
        np.random.seed(0)
        start = time.process_time()
        model = IALS(*train.shape, RANK, WEIGHT, UNOBSERVED, 0.1 / RANK**0.5)
        with threadpool_limits(1, "blas"):  # its systems are small
            for _ in range(EPOCHS):
                model.train(DataSet(*lists, [], 1))
        seconds = time.process_time() - start
        scores = torch.from_numpy(model.user_embedding @ model.item_embedding.T)
        results.keep("ncf/authors/0", {**hits(scores, asked), "seconds": seconds})


def page(results: Results) -> None:
    """Write the tables of what is known."""
    rows = []
    for size in ("100k", "1m"):
        for name in METHODS:
            keys = [f"{size}/{name}/{k}" for k in range(SPLITS)]
            known = [results.records[key] for key in keys if key in results.records]
            gains = [found["NDCG"] for found in known]
            ours = results.values(f"{size}/ours", "NDCG")
            if min(len(gains), len(ours)) < SPLITS:
                continue
            less = np.subtract(ours, gains)
            above = f"{less.mean():.4f} ({deviation(less):.4f})"
            rows.append(
                [
                    f"MovieLens-{size}",
                    name,
                    f"{np.mean(gains):.4f} ({deviation(gains):.4f})",
                    "" if name == "ours" else above,
                    f"{np.mean([found['fit'] for found in known]):.1f}",
                    "; ".join(shown(found["setting"]) for found in known),
                ]
            )
    header = ["likes of", "", "NDCG@100", "ours is higher by", "seconds", "chosen"]
    means = {name: results.mean(f"1m/{name}", "NDCG") for name in METHODS}
    said = ", ".join(f"{mean:.4f} for {x}" for x, mean in means.items() if mean)
    labels = {"ours": "FactorizationCompleter"}
    ranked = {labels.get(x, x): mean for x, mean in means.items() if mean}
    measure = "NDCG@100 on MovieLens-1M"
    drawn = chart("implicit", measure, ranked, higher=True)
    fields = {
        "result": f"The {measure} is {said}.",
        "chart": drawn,
        "likes": table(header, rows),
        "ncf": ncf_table(results),
    }
    write_page("implicit", fields)


def deviation(values: np.ndarray | list[float]) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def shown(setting: Setting) -> str:
    return ", ".join(f"{value:.3g}" for value in setting.values())


def ncf_table(results: Results) -> str:
    rows = []
    for name in ("ours", "authors"):
        found = [
            results.values(f"ncf/{name}", x) for x in ("HR@10", "NDCG@10", "seconds")
        ]
        if found[0]:
            scores = [f"{np.mean(x):.4f}" for x in found[:2]]
            if len(found[0]) > 1:
                errors = (f" ({deviation(x):.4f})" for x in found[:2])
                scores = [s + e for s, e in zip(scores, errors, strict=True)]
            rows.append([name, *scores, f"{np.mean(found[2]):.0f}", str(len(found[0]))])
    return table(["", "HR@10", "NDCG@10", "seconds", "fits"], rows)


if __name__ == "__main__":
    results = Results("implicit")
    if sys.argv[1:] != ["page"]:
        folder = Path(os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()
        measure_ncf(results, folder / "ratings" / "ncf")
        measure_likes(results)
    page(results)
