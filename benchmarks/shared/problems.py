"""Matrices, masks and errors that several benchmarks share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skmc.datasets import load_drug_target, load_image, load_mask, load_syn_netflix
from skmc.metrics import relative_error

FIRST_SEED = 20210909  # of the masks; seed k of a benchmark is FIRST_SEED + k
SMALL_PICTURES = ("Barbara", "Cameraman", "Baboon")  # 240 x 240, which have masks
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
