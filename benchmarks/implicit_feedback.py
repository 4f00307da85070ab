"""Ranking by implicit feedback: ours, the package implicit, EASE, and iALS.

``likes``: ratings of at least four stars, a fifth of each user's hidden; settings are
chosen on held-out cells. ``ncf``: the protocol of He et al.; it needs
``ml-1m.test.rating`` and ``ml-1m.test.negative`` of the folder ``Data`` of
https://github.com/hexiangnan/neural_collaborative_filtering in the folder
``ratings/ncf`` of ``SKMC_DATA``, and ``ials/ncf_benchmarks/ials.py`` of
https://github.com/google-research/google-research in ``SKMC_PEERS/google-research``.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Results, folder_of, run
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from skmc import Entries, FactorizationCompleter
from skmc.datasets import load_movielens

SETTINGS, SPLITS, SHOWN = 50, 3, 100
RANKS = (32, 64, 128, 256)
SWEEPS = 16
Setting = dict[str, Any]
Mask = np.ndarray  # bool, (n_users, n_items)


@cache
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


def on_likes(size: str, split: int, name: str) -> dict[str, Any]:
    """Choose a setting on held-out cells of a split, and rank the hidden cells."""
    if name == "implicit":
        importlib.import_module(name)
    train, test = divided(likes(size), split)
    inner, held = divided(train, 10 + split)
    start = time.process_time()
    gain, best = search(name, inner, held)
    searched, start = time.process_time() - start, time.process_time()
    found = METHODS[name](train, best)
    fit = time.process_time() - start
    ranked = {"NDCG, held out": gain, "NDCG": ndcg(found, train, test)}
    return {"setting": best, **ranked, "search": searched, "fit": fit}


def stars(results: Results) -> None:
    for size in ("100k", "1m"):
        for split in range(SPLITS):
            for name in METHODS:
                key = ("likes", f"MovieLens-{size}", "a fifth", name, split)
                results.measure(key, on_likes, size, split, name, limit=None)


@cache
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


def ncf_folder() -> Path:
    home = Path(os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()
    return home / "ratings" / "ncf"


def by_us(seed: int) -> dict[str, float]:
    """A fit with the published parameters."""
    train, asked = as_in_ncf(ncf_folder())
    # Theirs gives unobserved cells a weight, ours the observed ones: the same factors,
    # up to one number, if the penalty is larger by as much.
    completer = FactorizationCompleter(
        RANK,
        alpha=1 / UNOBSERVED,
        lambda_ridge=WEIGHT * (1 + UNOBSERVED),
        max_iter=EPOCHS,
        tol=0.0,
        random_state=seed,
    )
    start = time.process_time()
    completer.fit(entries_of(train))
    fit = time.process_time() - start
    scores = completer.row_factors_ @ completer.col_factors_.T
    return {**hits(torch.from_numpy(scores), asked), "fit": fit}


def by_authors() -> dict[str, float]:
    """The same with the authors' program."""
    train, asked = as_in_ncf(ncf_folder())
    peers = folder_of("SKMC_PEERS", "a folder with google-research")
    sys.path.append(str(peers / "google-research" / "ials" / "ncf_benchmarks"))
    from ials import IALS, DataSet

    lists = [
        [(k, np.flatnonzero(row).tolist()) for k, row in enumerate(side) if row.any()]
        for side in (train, train.T)
    ]
    np.random.seed(0)  # its only source of randomness
    start = time.process_time()
    model = IALS(*train.shape, RANK, WEIGHT, UNOBSERVED, 0.1 / RANK**0.5)
    with threadpool_limits(1, "blas"):  # its systems are small
        for _ in range(EPOCHS):
            model.train(DataSet(*lists, [], 1))
    fit = time.process_time() - start
    scores = torch.from_numpy(model.user_embedding @ model.item_embedding.T)
    return {**hits(scores, asked), "fit": fit}


def ncf(results: Results) -> None:
    data = ("ncf", "MovieLens-1m", "the last item")
    for seed in range(10):
        results.measure((*data, "ours", seed), by_us, seed, limit=None)
    results.measure((*data, "authors"), by_authors, limit=None)


if __name__ == "__main__":
    run(__doc__, ncf, stars)
