"""Weights of a stack: convex, per column, and shrunk to those of all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skmc.completers.auto._categories import HeldOutCategory
from skmc.completers.auto._weights import (
    GROUPS,
    PRIOR_CELLS,
    Chosen,
    LogScores,
    Squares,
)
from skmc.tables import Calibration

Priors = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Stacking:
    r"""Weights of candidates, from their predictions of held-out cells.

    For column j, the weights minimize over the simplex (non-negative, of sum one)

    .. math::

        L_j(w) + \frac{a}{N} L(w), \qquad
        L_j(w) = \sum_{i} (y_{ij} - p_{ij}^\top w)^2, \qquad L = \sum_j L_j,

    with sums over the N held-out cells: all columns together count as ``a`` cells of
    the column. The common weights :math:`w_0` minimize :math:`L`; they are the weights
    of each column as ``a`` tends to infinity. For every ``a``, :math:`L_j(w_j) \le
    L_j(w_0)`, because :math:`L(w_j) \ge L(w_0)`; so the stack's error on these cells
    is at most that of the common weights, and this at most that of each candidate.

    The weights of categories in a table are apart from those of numbers and ordered
    levels. The columns of the matrix that represent a category share their weights,
    which maximize the log score of the mixed probabilities, see `LogScores`. There, the
    shares of the categories are a candidate, too; then the mixture of the others is
    calibrated.

    Parameters
    ----------
    common : ndarray of shape (n_candidates,)
        Common weights :math:`w_0`, averaged over the columns.
    columns : ndarray of shape (n_cols, n_candidates)
        Weights of each column.
    prior_cells : tuple of float
        For each kind of column, the number ``a``, chosen by the error on groups of rows
        that the weights have not seen.
    residuals : ndarray of shape (n_cells,)
        Residuals of the stack, each with weights fitted to other groups of rows.
    own_residuals : ndarray of shape (n_cells,)
        Residuals of the stack with the weights above.
    variances : ndarray of shape (n_cells,)
        Variance of the candidates, :math:`\sum_k w_{jk} (p_{ik} - p_i^\top w_j)^2`.
    shares : ndarray of shape (n_candidates,)
        Mean weights over the columns of a kind, the largest over the kinds, without
        the weight of a candidate that explains no cell.
    crossed_shares : ndarray of shape (n_candidates,)
        The largest of these shares, also of those in fits to other groups of rows.
    calibrations : list of Calibration
        Those of the categories.
    excess : float
        Relative excess of the error of weights fitted to other groups of rows, the
        largest over the kinds.
    """

    common: np.ndarray
    columns: np.ndarray
    prior_cells: tuple[float, ...]
    residuals: np.ndarray
    own_residuals: np.ndarray
    variances: np.ndarray
    shares: np.ndarray
    crossed_shares: np.ndarray
    calibrations: list[Calibration]
    excess: float

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        rows: np.ndarray,
        cols: np.ndarray,
        n_cols: int,
        prior_cells: Priors | None = None,
        *,
        numbers: np.ndarray | None = None,
        categories: Sequence[HeldOutCategory] = (),
    ) -> Stacking:
        """Fit the weights to the residuals of candidates, (n_cells, n_candidates).

        The sizes in ``prior_cells``, for each kind of column, are tried until the error
        rises: first for ``numbers``, the columns that are no categories.
        """
        lot = np.random.RandomState(0).permutation(rows.max(initial=0) + 1)
        group, n = lot[rows] % GROUPS, residuals.shape[1]
        if numbers is None:
            numbers = np.arange(n_cols)
        priors = iter(prior_cells or [PRIOR_CELLS, PRIOR_CELLS])
        R, calibrations = residuals.copy(), []
        found: list[tuple[np.ndarray, Chosen]] = []
        if len(numbers):
            at = np.isin(cols, numbers)
            place = np.searchsorted(numbers, cols[at])
            squares = Squares(residuals[at], group[at], place, len(numbers))
            found.append((numbers, squares.chosen(next(priors))))
        if categories:
            for category in categories:
                R[category.place] = category.residuals
            scores = LogScores(
                [category.likelihood for category in categories],
                [group[category.place[:, 0]] for category in categories],
            )
            chosen = scores.chosen(next(priors)).without_last()
            own_weights = zip(categories, chosen.columns, strict=True)
            calibrations = [category.calibration(own) for category, own in own_weights]
            found.append(_spread(chosen, categories))
        common, columns = np.zeros(n), np.zeros((n_cols, n))
        crossed = np.zeros((GROUPS, n_cols, n))
        for own, chosen in found:
            common += len(own) / n_cols * chosen.common
            columns[own], crossed[:, own] = chosen.columns, chosen.crossed
        pairs = [(columns[own], crossed[:, own], chosen.least) for own, chosen in found]
        shares = np.max([own.mean(0) - least for own, _, least in pairs], 0)
        most = np.max([own.mean(1).max(0) - least for _, own, least in pairs], 0)
        mixed = np.einsum("ip,ip->i", columns[cols], R)
        off = np.square(R - mixed[:, None])
        return cls(
            common,
            columns,
            tuple(chosen.prior_cells for _, chosen in found),
            np.einsum("ip,ip->i", crossed[group, cols], R),
            mixed,
            np.einsum("ip,ip->i", columns[cols], off),
            shares,
            np.maximum(shares, most),
            calibrations,
            max(chosen.excess for _, chosen in found),
        )


def _spread(
    chosen: Chosen, categories: Sequence[HeldOutCategory]
) -> tuple[np.ndarray, Chosen]:
    """Give all columns that represent a category its weights."""
    widths = [len(category.columns) for category in categories]
    return np.concatenate([category.columns for category in categories]), Chosen(
        chosen.common,
        chosen.columns.repeat(widths, 0),
        chosen.prior_cells,
        chosen.crossed.repeat(widths, 1),
        chosen.excess,
        chosen.least,
    )


def rms(residuals: np.ndarray) -> float:
    """Root mean square; NaN for no residuals."""
    return float(np.sqrt(np.square(residuals).mean())) if len(residuals) else np.nan
