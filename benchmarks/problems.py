"""Matrices, ratings, masks and errors that several benchmarks share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from skmc import Entries
from skmc.datasets import (
    load_drug_target,
    load_image,
    load_mask,
    load_movielens,
    load_syn_netflix,
)
from skmc.metrics import relative_error

FIRST_SEED = 20210909  # of the masks; seed k of a benchmark is FIRST_SEED + k
SMALL_PICTURES = ("Barbara", "Cameraman", "Baboon")  # 240 x 240, which have masks
MIN_RATING, MAX_RATING = 1, 5  # of MovieLens
PICTURES = (*SMALL_PICTURES, "peppers", "house", "boat")


def matrix(name: str) -> tuple[np.ndarray, dict]:
    """The truth, and its graphs if the data set has any."""
    if name in PICTURES:
        side = 240 if name in SMALL_PICTURES else 256
        return load_image(f"{name.lower()}_{side}"), {}
    if name == "Syn-Netflix":
        data = load_syn_netflix()
    else:
        data = load_drug_target({"IC": "ion_channel", "GPCR": "gpcr"}[name])
    return data.data, {"row_graph": data.row_graph, "col_graph": data.col_graph}


def hide(truth: np.ndarray, pattern: str, seed: int) -> np.ma.MaskedArray:
    """Mask cells in single precision; ``pattern`` is "random 30 %" or a mask's name."""
    if pattern.startswith("random"):
        rate = int(pattern.split()[1]) / 100
        rng = np.random.RandomState(FIRST_SEED + seed)
        hidden = rng.random_sample(truth.shape) <= rate
    else:
        hidden = ~load_mask(pattern)
    return np.ma.masked_array(truth.astype(np.float32), hidden)


def nonlinear_matrix(rng: np.random.RandomState) -> np.ndarray:
    """Equation (64) of DNN-NSR, 300 x 200 with r = 10."""
    AB = rng.standard_normal((300, 10)) @ rng.standard_normal((10, 200))

    def g(x):
        return 1.71 * np.tanh(2 / 3 * x)

    return g(1.2 * (0.5 * g(AB) ** 2 - g(AB) - 1)) + AB


def energy_lost(X: np.ndarray, M: np.ndarray, cells: np.ndarray) -> float:
    """Equation (66) of DNN-NSR, in percent."""
    return 100 * relative_error(X, M, cells) ** 2


def completion_error(
    X: np.ma.MaskedArray, truth: np.ndarray, errors: dict[str, Callable]
) -> Callable[..., dict[str, float]]:
    """Return a score: errors of a completer's answer at the masked cells of ``X``."""

    def score(completer) -> dict[str, float]:
        completed = completer.fit_transform(X)
        return {name: e(completed, truth, X.mask) for name, e in errors.items()}

    return score


def split(size: str, protocol: str, seed: int) -> tuple[Entries, Entries]:
    """The ratings for training and those to predict."""
    data = load_movielens(size)
    n_ratings = len(data.entries)
    if protocol in data.splits:
        test = data.splits[protocol]
    elif protocol == "90/10":
        test = np.random.default_rng(7).random(n_ratings) < 0.1
    else:
        rng = np.random.RandomState(20210909 + seed)
        test = rng.random_sample(n_ratings) <= int(protocol.split()[0]) / 100
    return data.entries[~test], data.entries[test]


def prediction_error(train: Entries, test: Entries):
    def score(completer) -> dict[str, float]:
        predicted = completer.fit(train).predict_entries(test.rows, test.cols)
        error = np.clip(predicted, MIN_RATING, MAX_RATING) - test.values
        return {
            "rmse": float(np.sqrt(np.square(error).mean())),
            "nmae": float(np.abs(error).mean() / (MAX_RATING - MIN_RATING)),
        }

    return score


CHUNK = 2**22  # ratings of a file


def write_ratings(folder: Path, n: int, seed: int = 0) -> None:
    """Write ``n`` ratings to Parquet files, and a hundredth as many to hold out.

    Degrees of users and films follow a power law, there are 50 ratings for each user,
    and a film has 1000.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    n_users, n_films = max(n // 50, 100), max(n // 1000, 50)
    U = rng.standard_normal((n_users, 4), np.float32)
    V = rng.standard_normal((n_films, 4), np.float32) / 2
    labels = rng.permutation(n_users)  # active users are not neighbors
    for name, size in (("train", n), ("test", n // 100)):
        (folder / name).mkdir(parents=True)
        for k, begin in enumerate(range(0, size, CHUNK)):
            part = min(CHUNK, size - begin)
            user = labels[(n_users * rng.random(part) ** 2).astype(np.int64)]
            film = (n_films * rng.random(part) ** 3).astype(np.int64)
            noise = rng.standard_normal(part, np.float32)
            stars = (U[user] * V[film]).sum(1) + noise / 2
            table = {"user": user, "film": film, "stars": stars}
            pq.write_table(pa.table(table), folder / name / f"{k:04d}.parquet")
