"""Multigrid for equations between neighboring pixels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

# A factorization is faster up to this many connected unknowns, and for the last level.
LARGE, FEW = 2**16, 4000
# Steps of Jacobi. Their product leaves less than a third of any error that the next
# level does not represent.
STEPS = 1.0, 0.55, 0.8
SMOOTHING = 2 / 3  # step of Jacobi that smooths the interpolation


class InverseSquare:
    r"""Approximate solutions of ``A A x = b`` by half a V-cycle for each factor.

    The unknowns belong to pixels. Those of 2 x 2 pixels are one unknown of the next
    level, a step of Jacobi smooths the interpolation P from there, and the matrix of
    the next level is :math:`P^\top A P` (smoothed aggregation). The first half
    :math:`V^\top` has steps of Jacobi on the way to coarser levels, the second half V
    on the way back, so that :math:`V V^\top` is symmetric and its results are smooth.
    Time and memory are linear in the number of unknowns. Two solves with a
    factorization of A are exact, and are faster if no more than 65536 unknowns are
    connected.

    Parameters
    ----------
    A : sparse array of shape (n, n)
        Symmetric positive definite, with entries between neighboring pixels, such as
        the negative Laplacian.
    mask : bool ndarray of shape (height, width)
        Mask of the n pixels, which are numbered along rows.

    References
    ----------
    Vaněk, Mandel, Brezina. Algebraic multigrid by smoothed aggregation for second and
    fourth order elliptic problems. Computing 56 (1996).
    """

    def __init__(self, A: sp.csr_array, mask: np.ndarray) -> None:
        self._levels: list[tuple[sp.csr_array, sp.csr_array, sp.csr_array, np.ndarray]]
        self._levels = []
        if np.bincount(connected_components(A)[1]).max() > LARGE:
            A = A.astype(np.float32)  # enough for approximations, and faster
            while A.shape[0] > FEW:
                damped = 1 / A.diagonal()
                P, mask = _aggregates(mask)
                P = sp.csr_array(P - sp.diags(np.float32(SMOOTHING) * damped) @ (A @ P))
                R = sp.csr_array(P.T)
                self._levels.append((A, P, R, damped[:, None]))
                A = sp.csr_array(R @ (A @ P))
        self._dtype = A.dtype
        self._factor = splu(
            sp.csc_matrix(A, dtype=float),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def __call__(self, b: np.ndarray) -> np.ndarray:
        """Solve approximately.

        Parameters
        ----------
        b : ndarray of shape (n, k)
            Right sides.

        Returns
        -------
        ndarray of shape (n, k)
            Approximate solutions.
        """
        half = self._cycle(b.astype(self._dtype, copy=False), 0, STEPS, ())
        return self._cycle(half, 0, (), STEPS[::-1]).astype(float, copy=False)

    def _cycle(
        self, b: np.ndarray, level: int, before: tuple[float, ...], after: tuple
    ) -> np.ndarray:
        if level == len(self._levels):
            solved = self._factor.solve(b.astype(float, copy=False))
            return solved.astype(b.dtype, copy=False)
        A, P, R, damped = self._levels[level]
        x, residual = np.zeros_like(b), b
        for step in before:
            x += np.float32(step) * damped * residual
            residual = b - A @ x
        x += P @ self._cycle(R @ residual, level + 1, before, after)
        for step in after:
            x += np.float32(step) * damped * (b - A @ x)
        return x


def _aggregates(mask: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """Ones from pixels to those of the picture at half the size, and their mask."""
    rows, cols = np.nonzero(mask)
    rows, cols = rows // 2, cols // 2
    half = np.zeros([-(-side // 2) for side in mask.shape], bool)
    half[rows, cols] = True
    numbers = half.ravel().cumsum().reshape(half.shape) - 1
    n, ones = len(rows), np.ones(len(rows), np.float32)
    parts = ones, numbers[rows, cols], np.arange(n + 1)
    return sp.csr_array(parts, shape=(n, int(half.sum()))), half
