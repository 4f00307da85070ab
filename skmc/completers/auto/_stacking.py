"""Weights of a stack: convex, per column, and shrunk to those of all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

PRIOR_CELLS = (np.inf, 1000.0, 300.0, 100.0, 30.0, 10.0)
GROUPS = 5  # of rows; weights are fitted to all but one and evaluated on it
JITTER = 1e-10  # of the mean square, for linearly dependent predictions


@dataclass(frozen=True)
class Stacking:
    r"""Least-squares weights of candidates on held-out cells.

    For column j, the weights minimize over the simplex (non-negative, of sum one)

    .. math::

        L_j(w) + \frac{a}{N} L(w), \qquad
        L_j(w) = \sum_{i} (y_{ij} - p_{ij}^\top w)^2, \qquad L = \sum_j L_j,

    with sums over the N held-out cells: all columns together count as ``a`` cells of
    the column. The common weights :math:`w_0` minimize :math:`L`; they are the weights
    of each column as ``a`` tends to infinity. For every ``a``, :math:`L_j(w_j) \le
    L_j(w_0)`, because :math:`L(w_j) \ge L(w_0)`; so the stack's error on these cells
    is at most that of the common weights, and this at most that of each candidate.

    Parameters
    ----------
    common : ndarray of shape (n_candidates,)
        Common weights :math:`w_0`.
    columns : ndarray of shape (n_cols, n_candidates)
        Weights of each column.
    prior_cells : float
        Number ``a``, chosen by the error on groups of rows that the weights have not
        seen.
    residuals : ndarray of shape (n_cells,)
        Residuals of the stack, each with weights fitted to other groups of rows.
    own_residuals : ndarray of shape (n_cells,)
        Residuals of the stack with the weights above.
    variances : ndarray of shape (n_cells,)
        Variance of the candidates, :math:`\sum_k w_{jk} (p_{ik} - p_i^\top w_j)^2`.
    shares : ndarray of shape (n_candidates,)
        Mean weights over the columns, the largest of these fits.
    """

    common: np.ndarray
    columns: np.ndarray
    prior_cells: float
    residuals: np.ndarray
    own_residuals: np.ndarray
    variances: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        rows: np.ndarray,
        cols: np.ndarray,
        n_cols: int,
        prior_cells: Sequence[float] = PRIOR_CELLS,
    ) -> Stacking:
        """Fit the weights to the residuals of candidates, (n_cells, n_candidates).

        The sizes of ``prior_cells`` are tried until the error rises.
        """
        lot = np.random.RandomState(0).permutation(rows.max(initial=0) + 1)
        group = lot[rows] % GROUPS
        grams, counts = _grams(residuals, group, cols, n_cols)
        best, lowest = [], np.inf
        for prior in prior_cells:
            found = [
                _weights(np.delete(grams, k, 1), np.delete(counts, k, 1), prior)
                for k in range(GROUPS)
            ]
            error = sum(
                np.einsum("jp,jpq,jq->", W, grams[:, k], W)
                for k, (_, W) in enumerate(found)
            )
            if error >= lowest:
                break
            best, lowest, chosen = found, error, prior
        crossed = np.stack([W for _, W in best])  # (GROUPS, n_cols, n_candidates)
        common, columns = _weights(grams, counts, chosen)
        own = np.einsum("ip,ip->i", columns[cols], residuals)
        off = np.square(residuals - own[:, None])
        return cls(
            common,
            columns,
            chosen,
            np.einsum("ip,ip->i", crossed[group, cols], residuals),
            own,
            np.einsum("ip,ip->i", columns[cols], off),
            np.maximum(columns.mean(0), crossed.mean(1).max(0)),
        )


def rms(residuals: np.ndarray) -> float:
    """Root mean square; NaN for no residuals."""
    return float(np.sqrt(np.square(residuals).mean())) if len(residuals) else np.nan


def _grams(
    R: np.ndarray, group: np.ndarray, cols: np.ndarray, n_cols: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices ``R.T @ R`` of the cells of each column and group, and counts."""
    place = cols * GROUPS + group
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place, minlength=n_cols * GROUPS)
    parts = np.split(R[order], np.cumsum(counts)[:-1])
    grams = np.stack([part.T @ part for part in parts])
    shape = (n_cols, GROUPS)
    return grams.reshape(*shape, *grams.shape[1:]), counts.reshape(shape)


def _weights(
    grams: np.ndarray, counts: np.ndarray, prior_cells: float
) -> tuple[np.ndarray, np.ndarray]:
    """Common weights, and weights of each column."""
    own, n_own = grams.sum(1), counts.sum(1)
    mean = own.sum(0) / max(1, n_own.sum())
    common = simplex_minimum(mean)
    columns = np.tile(common, (len(own), 1))
    if np.isfinite(prior_cells):
        for j in np.flatnonzero(n_own):
            columns[j] = simplex_minimum(own[j] + prior_cells * mean)
    return common, columns


def simplex_minimum(G: np.ndarray) -> np.ndarray:
    r"""Minimize :math:`w^\top G w` over non-negative ``w`` of sum one.

    For ``w = s v`` with ``v`` of sum one, the minimum over ``s`` of :math:`w^\top G w +
    (1^\top w - 1)^2` is :math:`g / (1 + g)` with :math:`g = v^\top G v`. It increases
    with ``g``, so the non-negative minimizer, divided by its sum, is the solution.
    """
    n = len(G)
    unit = np.trace(G) / n
    if n == 1 or not unit > 0:
        return np.full(n, 1 / n)
    L = np.linalg.cholesky(G / unit + JITTER * np.eye(n))
    found, _ = nnls(np.vstack([L.T, np.ones(n)]), np.append(np.zeros(n), 1.0))
    return found / found.sum()
