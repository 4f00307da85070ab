"""Least squares over small changes of a product of factors, at some of its cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from skmc.linalg.conjugate_gradients import conjugate_gradients
from skmc.linalg.low_rank import LowRank, compressed_rows

DENSE = 3100  # most unknowns of a dense system
PAIRS = 2**25  # most pairs of cells of one row in a dense system
RIDGE = 1e-12  # makes the systems of rows with few cells regular
FLOOR = 1e-3  # least damping of a column, relative to the largest
LEAST_DAMPING = 1e-13, 1e-9  # of a dense system, and of conjugate gradients
LOOSE = 1e-2  # accuracy for which conjugate gradients are the faster way
STEPS = 300  # most steps of conjugate gradients


class Positions(Protocol):
    """Positions of cells, as in `SparseObserved`."""

    @property
    def rows(self) -> Tensor:
        """Row of each cell."""

    @property
    def cols(self) -> Tensor:
        """Column of each cell."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""

    @property
    def by_column(self) -> Tensor:
        """Order of the cells by column."""

    @property
    def starts(self) -> Tensor:
        """Start of each row among the cells."""

    @property
    def T(self) -> Positions:
        """The transposed positions."""

    @property
    def pairs(self) -> RowPairs:
        """The pairs of cells in the same row."""

    def at(self, X: LowRank) -> Tensor:
        """Values of a product at the cells."""

    def matrix(self, values: Tensor) -> Tensor:
        """The sparse matrix of values at the cells."""


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Pairs of cells in the same row, grouped by their two columns.

    Parameters
    ----------
    first, second : int64 Tensor of shape (n_pairs,)
        Positions of both cells among the cells; ``first <= second``.
    rows : int32 Tensor of shape (n_pairs,)
        Their row.
    starts : int32 Tensor of shape (n_groups + 1,)
        Start of each group.
    left, right : int64 Tensor of shape (n_groups,)
        The columns of each group, ``left <= right``.
    """

    first: Tensor
    second: Tensor
    rows: Tensor
    starts: Tensor
    left: Tensor
    right: Tensor

    @classmethod
    def of(
        cls,
        starts: Tensor,  # (m + 1,)
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
        n: int,
    ) -> RowPairs:
        """Find the pairs of cells that are sorted by row and then by column."""
        rows, cols = rows.long(), cols.long()
        place = torch.arange(len(cols), device=cols.device)
        later = starts[rows + 1] - place  # cells from here to the end of the row
        first = place.repeat_interleave(later)
        begin = (later.cumsum(0) - later).repeat_interleave(later)
        second = first + torch.arange(len(first), device=cols.device) - begin
        key = cols[first] * n + cols[second]
        key, order = key.sort()
        first, second = first[order], second[order]
        groups, sizes = torch.unique_consecutive(key, return_counts=True)
        ends = torch.nn.functional.pad(sizes.cumsum(0), (1, 0))
        left, right = groups // n, groups % n
        return cls(first, second, rows[first].int(), ends.int(), left, right)


def grams(
    cells: Positions,
    F: Tensor,  # (n, r)
) -> Tensor:  # (m, r, r)
    """Sum of ``f f'`` over the cells of each row, ``(m, r, r)``."""
    r = F.shape[1]
    a, b = torch.triu_indices(r, r, device=F.device)
    packed = cells.matrix(F.new_ones(len(cells.cols))) @ (F[:, a] * F[:, b])
    full = F.new_empty(len(packed), r, r)
    full[:, a, b] = packed
    full[:, b, a] = packed
    return full


@dataclass(frozen=True, eq=False)
class Elimination:
    r"""Least squares over the changes ``T W' + U D'`` of a product of factors.

    .. math::

        \min_D \min_T \tfrac12 \|P(T W^\top + U D^\top) - z\|^2

    The inner problem is a small system for each row, which is solved exactly. A system
    for ``D`` remains. Its matrix ``H`` is singular: for any matrix ``K``, ``D = W K``
    does not change the product.

    Parameters
    ----------
    cells : SparseObserved
        Positions of the cells, which :math:`P` selects.
    U : Tensor of shape (m, r)
        Factors of the rows. Systems are well-conditioned where ``U' U = m I``.
    W : Tensor of shape (n, r)
        Factors of the columns, of the order of one.
    row_inverses : Tensor of shape (m, r, r)
        Inverses of the systems of the rows.
    """

    cells: Positions
    U: Tensor
    W: Tensor
    row_inverses: Tensor

    @classmethod
    def of(
        cls,
        cells: Positions,
        W: Tensor,  # (n, r)
        U: Tensor | None = None,  # (m, r)
    ) -> Elimination:
        """Factor the systems of the rows; ``U`` is zero if it is None."""
        r = W.shape[1]
        one = torch.eye(r, dtype=W.dtype, device=W.device)
        systems = grams(cells, W)
        inverses = torch.linalg.inv(systems + RIDGE * one)
        few = cells.starts.diff() < r
        inverses[few] = torch.linalg.pinv(systems[few], rtol=RIDGE, hermitian=True)
        U = W.new_zeros(cells.shape[0], r) if U is None else U
        return cls(cells, U, W, inverses)

    def with_rows(
        self,
        U: Tensor,  # (m, r)
    ) -> Elimination:
        """The same with other factors of the rows."""
        return Elimination(self.cells, U, self.W, self.row_inverses)

    @cached_property
    def _col_grams(self) -> Tensor:
        return grams(self.cells.T, self.U)

    def rows(
        self,
        z: Tensor,  # (n_cells,)
    ) -> Tensor:  # (m, r)
        """The best ``T`` for values ``z`` of the cells and ``D = 0``, ``(m, r)``."""
        right = self.cells.matrix(z) @ self.W
        return (self.row_inverses @ right[..., None])[..., 0]

    def rest(
        self,
        z: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells,)
        """The part of ``z`` that rows cannot fit."""
        return z - self.cells.at(LowRank(self.rows(z), self.W))

    def pull(
        self,
        z: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n, r)
        """Sums of ``z u`` over the cells of each column, ``(n, r)``."""
        return self.cells.T.matrix(z[self.cells.by_column]) @ self.U

    def at(
        self,
        D: Tensor,  # (n, r)
    ) -> Tensor:  # (n_cells,)
        """``P(U D')``."""
        return self.cells.at(LowRank(self.U, D))

    def change(
        self,
        D: Tensor,  # (n, r)
    ) -> LowRank:
        """The change of the product whose rows keep the cells as they are."""
        T = self.rows(-self.at(D))
        return LowRank(torch.cat([T, self.U], 1), torch.cat([self.W, D], 1))

    def system(
        self,
        D: Tensor,  # (n, r)
    ) -> Tensor:  # (n, r)
        """``H D``."""
        return self.pull(self.rest(self.at(D)))

    @cached_property
    def small(self) -> bool:
        """Whether ``H`` is formed."""
        counts = self.cells.starts.diff()
        few = self.W.numel() <= DENSE
        return few and int((counts * counts).sum()) <= PAIRS

    @cached_property
    def matrix(self) -> Tensor:
        """``H``, of shape (n r, n r)."""
        n, r = self.W.shape
        pairs, W = self.cells.pairs, self.W[self.cells.cols.long()]
        inverses = self.row_inverses[self.cells.rows.long()]
        shares = (inverses @ W[..., None])[..., 0]
        # An entry of the projection of a row on what its factors cannot fit.
        values = (pairs.first == pairs.second).to(W.dtype)
        values -= (shares[pairs.first] * W[pairs.second]).sum(1)
        a, b = torch.triu_indices(r, r, device=W.device)
        shape = len(pairs.left), len(self.U)
        sums = compressed_rows(pairs.starts, pairs.rows, values, shape)
        packed = sums @ (self.U[:, a] * self.U[:, b])
        blocks = W.new_empty(len(packed), r, r)
        blocks[:, a, b] = packed
        blocks[:, b, a] = packed
        H = W.new_zeros(n, n, r, r)
        H[pairs.left, pairs.right] = blocks
        H[pairs.right, pairs.left] = blocks
        return H.transpose(1, 2).reshape(n * r, n * r)

    def inverse(
        self, damping: float, tol: float = 0.0, n_steps: int = STEPS
    ) -> Callable[[Tensor], Tensor] | None:
        """Solve ``(H + damping diag) D = right``; None if rounding forbids it.

        Conjugate gradients replace a factorization if the system is large, or if little
        accuracy is needed.
        """
        n, r = self.W.shape
        if self.small and tol < LOOSE:
            diagonal = self.matrix.diagonal().view(n, r).mean(1)
            diagonal = diagonal.clamp_min(FLOOR * diagonal.max()).repeat_interleave(r)
            weight = damping + LEAST_DAMPING[0]
            L, failed = torch.linalg.cholesky_ex(
                self.matrix + (weight * diagonal).diag()
            )
            if failed:
                return None
            return lambda b: torch.cholesky_solve(b.reshape(-1, 1), L).view(n, r)
        damping = max(damping, LEAST_DAMPING[1])
        B = self._col_grams
        diagonal = B.diagonal(dim1=1, dim2=2).mean(1)
        diagonal = diagonal.clamp_min(FLOOR * diagonal.max())[:, None]
        near = torch.linalg.inv(B + (damping * diagonal).expand(n, r).diag_embed())

        def system(D: Tensor) -> Tensor:
            D = D.view(n, r)
            return (self.system(D) + damping * diagonal * D).view(-1, 1)

        def precondition(D: Tensor) -> Tensor:
            return (near @ D.view(n, r, 1)).view(-1, 1)

        def solve(right: Tensor) -> Tensor:
            right = right.reshape(-1, 1)
            accuracy = tol**2 * (right * precondition(right)).sum(0)
            solution, _ = conjugate_gradients(
                system, right, None, n_steps, accuracy, precondition
            )
            return solution.view(n, r)

        return solve
