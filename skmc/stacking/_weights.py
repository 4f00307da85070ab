"""Weights of a stack: convex, per column, and shrunk to those of all columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from skmc.cells import Calibration, Entries, Layout, OneHot
from skmc.stacking._mixtures import JITTER, calibration, mixture

PRIOR_CELLS = (np.inf, 1000.0, 300.0, 100.0, 30.0, 10.0)
GROUPS = 5  # of rows; weights are fitted to all but one and evaluated on it
MIN_WEIGHT = 0.02  # smallest weight of a member of a stack

PriorSizes = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Stacking:
    r"""Weights of candidates, from their predictions of held-out cells.

    For column j, the weights minimize over the simplex (non-negative, of sum one)

    .. math::

        L_j(w) + \frac{a}{N} L(w), \qquad
        L_j(w) = \sum_{i} (y_{ij} - p_{ij}^\top w)^2, \qquad L = \sum_j L_j,

    with sums over the N held-out cells, times their own weights if they have any: all
    columns together count as ``a`` cells of the column. The common weights :math:`w_0`
    minimize :math:`L`; they are the weights of each column as ``a`` tends to infinity.
    For every ``a``, :math:`L_j(w_j) \le L_j(w_0)`, because :math:`L(w_j) \ge L(w_0)`;
    so the stack's error on these cells is at most that of the common weights, and this
    at most that of each candidate.

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
        prior_cells: PriorSizes | None = None,
        *,
        numbers: np.ndarray | None = None,
        categories: Sequence[HeldOutCategory] = (),
        times: np.ndarray | None = None,
    ) -> Stacking:
        """Fit the weights to the residuals of candidates, (n_cells, n_candidates).

        The sizes in ``prior_cells``, for each kind of column, are tried until the error
        rises: first for ``numbers``, the columns that are no categories. ``times`` are
        weights of the cells.
        """
        if times is None:
            times = np.ones(len(residuals))
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
            squares = Squares(residuals[at], group[at], place, len(numbers), times[at])
            found.append((numbers, squares.chosen(next(priors))))
        if categories:
            for category in categories:
                R[category.place] = category.residuals
            scores = LogScores(
                [category.likelihood for category in categories],
                [group[category.place[:, 0]] for category in categories],
                [times[category.place[:, 0]] for category in categories],
            )
            chosen = scores.chosen(next(priors)).without_last()
            own_weights = zip(categories, chosen.columns, strict=True)
            calibrations = [
                category.calibration(own, times) for category, own in own_weights
            ]
            found.append(_widened(chosen, categories))
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


def _widened(
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


@dataclass(frozen=True)
class HeldOutCategory:
    """Held-out cells of the columns that represent a category.

    Parameters
    ----------
    columns : int ndarray of shape (q,)
        Columns of the matrix.
    place : int ndarray of shape (n, q)
        Position of each cell among all held-out cells.
    proba : ndarray of shape (n, q, n_candidates)
        Probabilities that the candidates give to the categories.
    true : int ndarray of shape (n,)
        Positions of the true categories.
    category : OneHot
        The category.
    """

    columns: np.ndarray
    place: np.ndarray
    proba: np.ndarray
    true: np.ndarray
    category: OneHot

    @classmethod
    def all_of(
        cls, layout: Layout, cells: Entries, residuals: np.ndarray
    ) -> list[HeldOutCategory]:
        """Find the cells of all categories of a table that a matrix represents.

        ``residuals`` of shape (n_cells, n_candidates) are those of the numbers that the
        candidates predict.
        """
        return [
            cls._of(columns, category, cells, residuals)
            for columns, category in layout.categories
        ]

    @classmethod
    def _of(
        cls,
        columns: np.ndarray,
        category: OneHot,
        cells: Entries,
        residuals: np.ndarray,
    ) -> HeldOutCategory:
        # The cells of a row in one part are sorted by column, and held out together.
        first = np.flatnonzero(cells.cols == columns[0])
        place = first[:, None] + np.arange(len(columns))
        truth = cells.values[place]
        proba = [
            category.probabilities(truth - residual)
            for residual in residuals[place].transpose(2, 0, 1)
        ]
        return cls(columns, place, np.stack(proba, 2), truth.argmax(1), category)

    @property
    def residuals(self) -> np.ndarray:
        """Residuals of the probabilities, in units of the matrix."""
        truth = self.true[:, None] == np.arange(len(self.columns))
        return (truth[..., None] - self.proba) / self.category.deviation

    @property
    def likelihood(self) -> np.ndarray:
        """Probabilities of the true category, and its share in the last column."""
        own = self.proba[np.arange(len(self.true)), self.true]
        return np.column_stack([own, self.category.shares[self.true]])

    def calibration(self, weights: np.ndarray, times: np.ndarray) -> Calibration:
        """The calibration of the weighted probabilities."""
        mixed, counts = self.proba @ weights, times[self.place[:, 0]]
        return calibration(mixed, self.true, self.category.shares, counts)


class Chosen(NamedTuple):
    """Weights of the columns of one kind.

    Parameters
    ----------
    common : ndarray of shape (n_candidates,)
        Weights that all columns share.
    columns : ndarray of shape (n_cols, n_candidates)
        Weights of each column.
    prior_cells : float
        Number of cells that all columns count as in the weights of one.
    crossed : ndarray of shape (GROUPS, n_cols, n_candidates)
        Weights that are fitted without a group of rows.
    excess : float
        Root of the ratio of their loss on the groups to that of the weights, minus one.
    least : float
        Weight of a candidate that explains no cell.
    """

    common: np.ndarray
    columns: np.ndarray
    prior_cells: float
    crossed: np.ndarray
    excess: float
    least: float

    def without_last(self) -> Chosen:
        """The same weights without the last candidate, of sum one."""
        own = [w[..., :-1] for w in (self.common, self.columns, self.crossed)]
        common, columns, crossed = (w / w.sum(-1, keepdims=True) for w in own)
        least = self.least / self.common[:-1].sum()
        return Chosen(common, columns, self.prior_cells, crossed, self.excess, least)


class Loss(ABC):
    """Loss of weighted predictions on held-out cells, which are in groups of rows."""

    least = 0.0  # weight of a candidate that explains no cell

    @abstractmethod
    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        """Common weights and weights of each column, from some of the groups."""

    @abstractmethod
    def loss(self, columns: np.ndarray, group: int) -> float:
        """Loss of the weights of each column on a group."""

    def chosen(self, prior_cells: Sequence[float]) -> Chosen:
        """Fit the weights; ``prior_cells`` are tried until the loss rises.

        The loss is that on groups that the weights have not seen.
        """
        groups = list(range(GROUPS))
        best: list[np.ndarray] = []
        lowest = np.inf
        for prior in prior_cells:
            found = [self.fit(np.delete(groups, k), prior)[1] for k in groups]
            loss = sum(self.loss(columns, k) for k, columns in enumerate(found))
            if best and loss >= lowest:
                break
            best, lowest, chosen = found, loss, prior
        common, columns = self.fit(np.array(groups), chosen)
        own = sum(self.loss(columns, k) for k in groups)
        excess = (lowest / own) ** 0.5 - 1 if own > 0 else 0.0
        return Chosen(common, columns, chosen, np.stack(best), excess, self.least)


class Squares(Loss):
    """Sum of the squared errors of weighted predictions.

    Parameters
    ----------
    R : ndarray of shape (n_cells, n_candidates)
        Residuals of the candidates.
    group : int ndarray of shape (n_cells,)
        Group of each cell.
    cols : int ndarray of shape (n_cells,)
        Column of each cell.
    n_cols : int
        Number of columns.
    times : ndarray of shape (n_cells,)
        Weight of each cell.
    """

    def __init__(
        self,
        R: np.ndarray,
        group: np.ndarray,
        cols: np.ndarray,
        n_cols: int,
        times: np.ndarray,
    ) -> None:
        place, R = cols * GROUPS + group, np.sqrt(times)[:, None] * R
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=n_cols * GROUPS))
        grams = np.stack([part.T @ part for part in np.split(R[order], ends[:-1])])
        self.grams = grams.reshape(n_cols, GROUPS, *grams.shape[1:])
        counts = np.bincount(place, times, n_cols * GROUPS)
        self.counts = counts.reshape(n_cols, GROUPS)

    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        own, n_own = self.grams[:, used].sum(1), self.counts[:, used].sum(1)
        mean = own.sum(0) / (n_own.sum() or 1.0)
        common = simplex_minimum(mean)
        columns = np.tile(common, (len(own), 1))
        if np.isfinite(prior_cells):
            for j in np.flatnonzero(n_own):
                columns[j] = simplex_minimum(own[j] + prior_cells * mean)
        return common, columns

    def loss(self, columns: np.ndarray, group: int) -> float:
        grams = self.grams[:, group]
        return float(np.einsum("jp,jpq,jq->", columns, grams, columns))


class LogScores(Loss):
    r"""Negative logarithms of the mixed probabilities of the true categories.

    The weights of a column of categories maximize

    .. math::

        \sum_i t_i \log(p_i^\top w) + a \sum_k w_{0k} \log w_k,

    where :math:`t_i` is the weight of the cell, and :math:`w_0` are the common weights,
    which count as ``a`` cells. These maximize the sum over all columns, with a cell in
    addition for each candidate, which it alone explains.

    Parameters
    ----------
    P : list of ndarray of shape (n_cells, n_candidates)
        For each column, the probabilities that the candidates give to the true
        categories.
    group : list of int ndarray of shape (n_cells,)
        Group of each of these cells.
    times : list of ndarray of shape (n_cells,)
        Weight of each of these cells.
    """

    def __init__(
        self, P: list[np.ndarray], group: list[np.ndarray], times: list[np.ndarray]
    ) -> None:
        self.P, self.group, self.times = P, group, times
        self.least = 1 / (sum(own.sum() for own in times) + P[0].shape[1])

    def fit(self, used: np.ndarray, prior_cells: float) -> tuple[np.ndarray, ...]:
        at = [np.isin(group, used) for group in self.group]
        own = [P[rows] for P, rows in zip(self.P, at, strict=True)]
        times = [counts[rows] for counts, rows in zip(self.times, at, strict=True)]
        one = np.ones(own[0].shape[1])
        common = mixture(np.concatenate(own), one, np.concatenate(times))
        columns = np.tile(common, (len(own), 1))
        if np.isfinite(prior_cells) and len(own) > 1:
            for j, (P, counts) in enumerate(zip(own, times, strict=True)):
                columns[j] = mixture(P, prior_cells * common, counts)
        return common, columns

    def loss(self, columns: np.ndarray, group: int) -> float:
        parts = zip(self.P, self.group, self.times, columns, strict=True)
        return -sum(
            float(times[own == group] @ np.log(P[own == group] @ w))
            for P, own, times, w in parts
        )


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


def rms(residuals: np.ndarray, times: np.ndarray | None = None) -> float:
    """Root mean square, weighted by ``times``; NaN for no residuals."""
    if not len(residuals):
        return np.nan
    return float(np.sqrt(np.average(np.square(residuals), weights=times)))
