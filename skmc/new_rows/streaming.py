"""Factors that are updated for new rows, new cells and new columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skmc.cells import Scaling, SparseObserved
from skmc.linalg import RowModel, normal_equations


@dataclass(frozen=True, eq=False)
class RowStream:
    r"""Factors of rows and columns, and sufficient statistics of the columns.

    A cell is ``e_i' h_j`` with ``e_i = (u_i, b_i, 1)`` and ``h_j = (v_j, 1, c_j)``;
    without biases of rows, ``b_i`` and the one of ``h_j`` are left out. Given the rows,
    the sums

    .. math::

        G_j = \sum_i e_i e_i^\top, \qquad r_j = \sum_i e_i (x_{ij} - o_j)

    over the cells of a column are sufficient for its least-squares problem, for any
    scaling of the values: those scaled by ``(x - shift) / scale`` have the sums ``(r_j
    + (o_j - shift) G_j 1) / scale``, where ``1`` selects the last column. The origins
    ``o_j`` only avoid cancellation.

    Parameters
    ----------
    rows : Tensor of shape (m, p)
        Vectors ``e_i``.
    cols : Tensor of shape (n, p)
        Vectors ``h_j``.
    gram : float64 Tensor of shape (n, p, p)
        Sums ``G_j``.
    right : float64 Tensor of shape (n, p)
        Sums ``r_j``.
    origin : float64 Tensor of shape (n,)
        Origins ``o_j``.
    """

    rows: Tensor  # (m, p)
    cols: Tensor  # (n, p)
    gram: Tensor  # (n, p, p)
    right: Tensor  # (n, p)
    origin: Tensor  # (n,)

    @classmethod
    def of(
        cls,
        rows: Tensor,  # (m, p)
        cols: Tensor,  # (n, p)
        cells: SparseObserved,
    ) -> RowStream:
        """Make it from the factors of a fit, by one pass over its cells."""
        n, p = cols.shape
        sums = cells.to(torch.float64).sums(cells.values.double(), by_column=True)[0]
        origin = sums / torch.bincount(cells.cols, minlength=n).clamp_min(1)
        zero = origin.new_zeros(n, p, p), origin.new_zeros(n, p)
        empty = cls(rows, cols, *zero, origin)
        which, gram, right = empty._sums(rows, cells)
        empty.gram[which], empty.right[which] = gram, right
        return empty

    def extended(self, m: int, n: int, row_biases: bool) -> RowStream:
        """Append rows and columns without cells."""
        p = self.cols.shape[1]
        rows = torch.cat([self.rows, self.rows.new_zeros(m - len(self.rows), p)])
        rows[:, -1] = 1
        more = n - len(self.cols)
        if not more:
            return replace(self, rows=rows)
        new = self.cols.new_zeros(more, p)
        if row_biases:
            new[:, -2] = 1
        sums = [
            torch.cat([x, x.new_zeros(more, *x.shape[1:])])
            for x in (self.gram, self.right, self.origin)
        ]
        return RowStream(rows, torch.cat([self.cols, new]), *sums)

    def replaced(
        self,
        touched: Tensor,  # (k,)
        before: SparseObserved,  # (k, n)
        after: SparseObserved,  # (k, n)
        scaling: Scaling,
        model: RowModel,
        *,
        row_biases: bool,
        col_biases: bool,
    ) -> RowStream:
        """Solve for some rows, then for all columns in which they have cells.

        Without a known noise, both steps minimize the objective of all cells exactly,
        over these rows or these columns, so it does not increase. With one, both give
        posterior means; the prior of the columns is the distribution of the known ones.
        """
        model = replace(model, F=self.cols[:, :-1], offset=self.cols[:, -1])
        scaled = after.scaled(scaling)
        E = self.rows.new_ones(len(touched), self.rows.shape[1])
        E[:, :-1] = model.solve(scaled.starts, scaled.cols, scaled.values)
        gram, right = self.gram.clone(), self.right.clone()
        for sign, factors, cells in ((-1, self.rows[touched], before), (1, E, after)):
            which, G, r = self._sums(factors, cells)
            gram[which] += sign * G
            right[which] += sign * r
        rows, cols = self.rows.clone(), self.cols.clone()
        rows[touched] = E
        G, r = gram[which], right[which]
        shift, scale = (
            (x[0, which] if x.shape[1] > 1 else x[0]).double()
            for x in (scaling.shift, scaling.scale)
        )
        ones = G[:, :, -1]
        b = (r + (self.origin[which] - shift)[:, None] * ones) / scale[:, None]
        b = torch.where(scale[:, None] > 0, b, 0.0)  # constants are scaled to zero
        k = cols.shape[1] - 1 - row_biases
        if row_biases:
            b = b - G[:, :, k]
        free = [*range(k), *([k + row_biases] if col_biases else [])]
        system, b = G[:, free][:, :, free], b[:, free, None]
        diagonal = system.diagonal(dim1=1, dim2=2)
        diagonal += 1e-12 * diagonal.sum(1, keepdim=True)  # rounding
        if model.noise is None:
            count = model.prior_weights(ones[:, -1])
            diagonal += (model.precision[0, 0] * count)[:, None]
        else:
            known = self.gram[:, -1, -1] > 0
            prior = model.with_prior_of(cols[known][:, free], float(model.noise))
            system += prior.precision
            b += (prior.precision @ prior.mean)[:, None]
        solution = torch.cholesky_solve(b, torch.linalg.cholesky(system))
        cols[which[:, None], torch.tensor(free)] = solution[..., 0].to(cols)
        return RowStream(rows, cols, gram, right, self.origin)

    def _sums(
        self, factors: Tensor, cells: SparseObserved
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The columns of some cells, and the sums over these cells."""
        which, local = cells.cols.unique(return_inverse=True)
        values = cells.values.double() - self.origin[cells.cols]
        shape = (len(which), len(factors))
        part = SparseObserved.of(local, cells.rows, values, shape)
        p = factors.shape[1]
        gram, right = values.new_zeros(len(which), p, p), values.new_zeros(shape[0], p)
        for block in normal_equations(
            part.starts, part.cols, part.values, factors.double()
        ):
            gram[block.rows], right[block.rows] = block.gram, block.right
        return which, gram, right
