"""Mixtures of probabilities, and calibrated probabilities of categories."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from skmc.cells import Calibration, sharpened

JITTER = 1e-10  # of the mean square, for linearly dependent predictions
STEPS, HALVINGS = 100, 30  # largest numbers, of Newton's method
CLOSE = 1e-9  # relative gain of a step that ends it
POWERS = 2.0 ** np.arange(-1, 2.1, 0.125)


def mixture(
    P: np.ndarray,  # (n_cells, n_candidates)
    prior: np.ndarray,  # (n_candidates,)
    counts: np.ndarray | None = None,  # (n_cells,)
) -> np.ndarray:  # (n_candidates,)
    r"""Maximize :math:`\sum_i n_i \log(P w)_i + \sum_k a_k \log w_k` on the simplex.

    Newton's method with a line search, for the mean logarithm minus the sum of ``w``
    over non-negative ``w``: its maximum has the sum one. Each step is a non-negative
    least-squares problem.
    """
    n = len(prior)
    counts = np.append(np.ones(len(P)) if counts is None else counts, prior)
    P = np.vstack([P, np.eye(n)])
    P, counts = P[counts > 0], counts[counts > 0] / counts.sum()

    def value(w: np.ndarray) -> float:
        with np.errstate(divide="ignore"):
            return float(w.sum() - counts @ np.log(P @ w))

    w = np.full(n, 1 / n)
    lowest = value(w)
    for _ in range(STEPS):
        R = P / (P @ w)[:, None]
        pull = counts @ R  # minus the gradient, plus one
        H = (R * counts[:, None]).T @ R
        L = np.linalg.cholesky(H + JITTER * np.trace(H) * np.eye(n))
        step = nnls(L.T, solve_triangular(L, 2 * pull - 1, lower=True))[0] - w
        size = 1.0
        for _ in range(HALVINGS):
            if (now := value(w + size * step)) < lowest:
                break
            size /= 2
        else:
            break
        gain, lowest, w = lowest - now, now, w + size * step
        if gain < CLOSE:
            break
    return w / w.sum()


def calibration(
    proba: np.ndarray,  # (n_cells, n_levels)
    true: np.ndarray,  # (n_cells,)
    shares: np.ndarray,  # (n_levels,)
    counts: np.ndarray | None = None,  # (n_cells,)
) -> Calibration:
    """Choose the calibration of a category by the log score of held-out cells.

    There are two cells in addition: one is explained by the sharpened probabilities
    alone, and one by the shares alone, so no category is impossible.
    """
    used = np.ones(len(true)) if counts is None else counts
    best, highest = Calibration(), -np.inf
    for power in POWERS:
        own = sharpened(proba, shares, power)[np.arange(len(true)), true]
        P = np.column_stack([own, shares[true]])
        w = mixture(P, np.ones(2), counts)
        score = used @ np.log(P @ w) + np.log(w).sum()
        if score > highest:
            best, highest = Calibration(float(power), float(w[1])), score
    return best
