"""Many small regularized least-squares problems, one per row of a sparse matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from skmc.linalg.low_rank import compressed_rows
from skmc.linalg.parts import Parts
from skmc.linalg.row_equations import BLOCK, RowSystems, normal_equations

OVER = 0.6  # negative correlation of successive draws
MOST_CERTAIN = 1e20  # precision of a prior of rows that are all equal


@dataclass(frozen=True, eq=False)
class RowModel(Parts):
    r"""A linear model of rows, given the columns: ``x = offset + F w``.

    ``w`` has the prior ``N(mean, (precision / v)^-1)`` where ``v`` is the variance of
    the noise. Given some cells of a row,

    .. math::

        w = \arg\min_w \|P(x - \text{offset} - F w)\|^2
            + (w - \text{mean})^\top \text{precision}\, (w - \text{mean})

    The precision is multiplied by the number of given cells, or the sum of their
    weights, to the power of ``per_cell``. With a ``link``, the mean is ``mean + sum_j
    link_j / sqrt(k)`` over the ``k`` given columns of the row: the set of observed
    columns is informative, whatever the values.

    Parameters
    ----------
    F : Tensor of shape (n, rank)
        Factors of the columns.
    offset : Tensor of shape (n,)
        Offsets of the columns.
    precision : Tensor of shape (rank, rank)
        Precision matrix of the prior of ``w``, in units of the noise.
    mean : Tensor of shape (rank,)
        Mean of that prior.
    per_cell : float, default=0.0
        Exponent of the number of cells in the weight of the precision.
    zeros : bool, default=False
        Whether all cells are also zeros of weight 1, which count as cells. Offsets are
        then 0.
    link : Tensor of shape (n, rank) or None, default=None
        Contribution of each observed column to that mean.
    noise : Tensor of shape () or None, default=None
        Variance ``v`` of the noise, if it is known.
    sides : tuple of Tensor of shape (p, rank), default=()
        Maps from the side information of a row to its prior mean, one for each prior.
    relative : Tensor of shape (n,) or None, default=None
        Precision of the noise in each column, times ``v``: a weight of the squares
        above. None means 1.
    freedom : Tensor of shape () or None, default=None
        Degrees of freedom of the noise: the precision of a row, times ``v``, has a
        Gamma distribution with half of this as shape and rate. `solve` takes 1 for all
        rows.
    """

    F: Tensor  # (n, rank)
    offset: Tensor  # (n,)
    precision: Tensor  # (rank, rank)
    mean: Tensor  # (rank,)
    per_cell: float = 0.0
    zeros: bool = False
    link: Tensor | None = None  # (n, rank)
    noise: Tensor | None = None  # ()
    sides: tuple[Tensor, ...] = ()  # (p, rank)
    relative: Tensor | None = None  # (n,)
    freedom: Tensor | None = None  # ()

    @classmethod
    def empty(cls, n: int, like: Tensor) -> RowModel:
        """The model that predicts zero for every row."""
        zero = like.new_zeros(n)
        return cls(zero[:, None][:, :0], zero, zero.new_zeros(0, 0), zero[:0])

    def with_prior_of(
        self,
        W: Tensor,  # (m, rank)
        noise: float,
        spread: Tensor | float = 0.0,  # (rank, rank)
    ) -> RowModel:
        """The same model, with the mean and covariance of these rows as its prior.

        ``spread`` is their own mean covariance if they are uncertain, in units of the
        noise. Directions in which they do not vary keep a small variance.
        """
        W = W.double()
        mean = W.mean(0)
        covariance = (W - mean).mT @ (W - mean) / len(W) + noise * spread
        energy, basis = torch.linalg.eigh(covariance)
        least = torch.finfo(self.F.dtype).eps ** 0.75 * energy[-1:]
        size = (noise / energy.clamp_min(least)).clamp_max(MOST_CERTAIN)
        precision = (basis * size) @ basis.mT
        return replace(
            self,
            precision=precision.to(self.F),
            mean=mean.to(self.F),
            per_cell=0.0,
            noise=self.F.new_tensor(noise),
        )

    @cached_property
    def gram(self) -> Tensor:
        """Sum of ``f f'`` over all columns, of shape (rank, rank)."""
        return self.F.mT @ self.F

    def prior_weights(
        self,
        counts: Tensor,  # (m,)
    ) -> Tensor:  # (m,)
        """Weight of the precision in rows; a row without cells counts as one cell."""
        counts = counts.to(self.F.dtype) + len(self.F) * self.zeros
        return torch.where(counts > 0, counts, 1) ** self.per_cell

    def solve(
        self,
        starts: Tensor,  # (m + 1,)
        cols: Tensor,  # (n_cells,)
        values: Tensor,  # (n_cells,)
        noise: Tensor | None = None,  # (m, rank)
        known: Tensor | float = 0.0,  # (m, rank)
        weights: Tensor | None = None,  # (n_cells,)
        previous: Tensor | None = None,  # (m, rank)
    ) -> Tensor:  # (m, rank)
        """Coefficients ``w`` of every row, ``(m, rank)``."""
        rank = self.F.shape[1]
        over = 0.0 if previous is None else OVER
        mean = self.mean + known
        if self.link is not None:
            mean = mean + link_matrix(starts, cols, self.link) @ self.link
        W = values.new_zeros(len(starts) - 1, rank)
        if rank == 0:
            return W
        values = values - self.offset[cols]
        for block, prior, L in self._factored(starts, cols, values, weights):
            centre = mean if mean.ndim == 1 else mean[block.rows]
            right = block.right[..., None] + prior @ centre[..., None]
            half = torch.linalg.solve_triangular(L, right, upper=False)
            if noise is not None:
                drawn = noise[block.rows, :, None]
                half = (1 + over) * half + (1 - over**2) ** 0.5 * drawn
            w = torch.linalg.solve_triangular(L.mT, half, upper=True)
            W[block.rows] = w[..., 0]
        return W if previous is None else W - over * previous

    def spread(
        self,
        starts: Tensor,  # (m + 1,)
        cols: Tensor,  # (n_cells,)
        weights: Tensor | None = None,  # (n_cells,)
    ) -> Tensor:  # (rank, rank)
        """Sum of the covariances of ``w`` given the cells of each row that has any.

        It is in units of the noise.
        """
        total = torch.zeros_like(self.precision, dtype=torch.float64)
        values = self.F.new_zeros(len(cols))
        for block, _, L in self._factored(starts, cols, values, weights):
            known = starts.diff()[block.rows] > 0
            total += torch.cholesky_inverse(L[known]).sum(0)
        return total

    def contributions(
        self,
        cols: Tensor,  # (n_cells,)
        values: Tensor,  # (n_cells,)
        asked: int,
        weights: Tensor | None = None,  # (n_cells,)
        known: Tensor | float = 0.0,  # (rank,)
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""What each cell of one row adds to the prediction of a column.

        With the matrix :math:`A` of the row's system and :math:`u = A^{-1} f_j`, the
        prediction of column ``j`` is

        .. math::

            o_j + f_j^\top m + \sum_i c_i\, (x_i - o_i - f_i^\top m)\, f_i^\top u
            + u^\top P k,

        where :math:`c_i` are the weights of the cells, :math:`P` is the precision,
        :math:`m` the mean of the prior and :math:`k` its offset for this row. A link
        adds its part of :math:`u^\top P` to each cell. If all cells are also zeros, the
        mean belongs to the offset.
        """
        if not self.F.shape[1]:
            zero = torch.zeros_like(values)
            return self.offset[asked], zero, zero.new_zeros(())
        starts = torch.tensor([0, len(cols)])
        ((_, prior, L),) = self._factored(starts, cols, values, weights)
        f, factors = self.F[asked], self.F[cols]
        mean = torch.zeros_like(self.mean) if self.zeros else self.mean
        u = torch.cholesky_solve(f[:, None], L[0])[:, 0]
        pull = prior.reshape(len(u), len(u)) @ u
        added = (values - self.offset[cols] - factors @ mean) * (factors @ u)
        if self.relative is not None:
            added = added * self.relative[cols]
        if weights is not None:
            added = added * weights
        if self.link is not None:
            added = added + self.link[cols] @ pull / max(1, len(cols)) ** 0.5
        rest = (self.mean - mean + known) @ pull
        return self.offset[asked] + f @ mean, added, rest

    def variance(
        self,
        starts: Tensor,  # (m + 1,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:  # (m, n)
        """Variance of ``F w`` given the cells of each row, in units of the noise.

        With ``A`` the left side of the row's system, ``f' A^-1 f`` for each column's
        factors ``f``. A cell has this variance plus 1.
        """
        n, rank = self.F.shape
        variance = self.F.new_zeros(len(starts) - 1, n)
        if rank == 0:
            return variance
        values = self.F.new_zeros(len(cols))
        for block, _, L in self._factored(starts, cols, values):
            size = max(1, BLOCK // (n * rank))
            for rows, root in zip(block.rows.split(size), L.split(size), strict=True):
                F = self.F.mT.expand(len(rows), rank, n)
                half = torch.linalg.solve_triangular(root, F, upper=False)
                variance[rows] = half.square().sum(1)
        return variance

    def variance_at(
        self,
        starts: Tensor,
        cols: Tensor,
        at: tuple[Tensor, Tensor],  # (k,)
        weights: Tensor | None = None,  # (n_cells,)
    ) -> Tensor:  # (k,)
        """`variance` of selected cells."""
        rank, order = self.F.shape[1], at[0].argsort()
        variance, count = (
            self.F.new_zeros(len(order)),
            starts.new_zeros(len(starts) - 1),
        )
        count.index_add_(0, at[0], torch.ones_like(at[0]))
        ends, values = count.cumsum(0), self.F.new_zeros(len(cols))
        for block, _, L in self._factored(starts, cols, values, weights):
            n_asked = count[block.rows]
            which = torch.arange(len(n_asked), device=n_asked.device).repeat_interleave(
                n_asked
            )
            first = (ends[block.rows] - n_asked.cumsum(0)).repeat_interleave(n_asked)
            asked = order[first + torch.arange(len(which), device=n_asked.device)]
            size = max(1, BLOCK // max(1, rank * rank))
            for k, cell in zip(which.split(size), asked.split(size), strict=True):
                f = self.F[at[1][cell], :, None]
                half = torch.linalg.solve_triangular(L[k], f, upper=False)
                variance[cell] = half.square().sum((1, 2))
        return variance

    def _factored(
        self,
        starts: Tensor,
        cols: Tensor,
        values: Tensor,
        weights: Tensor | None = None,
    ) -> Iterator[tuple[RowSystems, Tensor, Tensor]]:
        """Blocks of the rows' systems, each with its prior and its Cholesky factor."""
        if self.relative is not None:
            own = self.relative[cols]
            weights = own if weights is None else own * weights
        eps = torch.finfo(values.dtype).eps
        for block in normal_equations(starts, cols, values, self.F, weights):
            system, diagonal = block.gram, block.gram.diagonal(dim1=-2, dim2=-1)
            # Rounding must not make the system of a short row indefinite.
            diagonal += 4 * eps * diagonal.sum(-1, keepdim=True)
            prior = self.precision
            if self.per_cell:
                prior = prior * self.prior_weights(block.count)[:, None, None]
            system += prior
            if self.zeros:
                system += self.gram
            L, failed = torch.linalg.cholesky_ex(system)
            if failed.any():  # rounding made a nearly singular precision indefinite
                diagonal += eps**0.75 * diagonal.sum(-1, keepdim=True)
                L = torch.linalg.cholesky(system)
            yield block, prior, L


def link_matrix(
    starts: Tensor,  # (m + 1,)
    cols: Tensor,  # (n_cells,)
    like: Tensor,
) -> Tensor:  # (m, n)
    """Sparse ``(m, n)``: ``1 / sqrt(k)`` at each of the ``k`` cells of a row."""
    count = starts.diff()
    weights = count.clamp_min(1).to(like.dtype).rsqrt().repeat_interleave(count)
    return compressed_rows(
        starts.to(cols.dtype), cols, weights, (len(count), like.shape[0])
    )
