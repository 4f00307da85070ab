"""The linear systems of the rows in `NCARL`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import Observed

# Largest number of elements of systems that are solved together. Outside of the cache,
# they are slower to gather than to solve.
BLOCK = {"cpu": 2**18, "cuda": 2**26}


@dataclass(frozen=True)
class Problem:
    """The data of `NCARL`, transposed if wide, and the linear systems of its rows.

    Parameters
    ----------
    values : Tensor of shape (\\*batch, m, n)
        Observed values divided by the largest one, zero where hidden; ``m >= n``.
    seen : Tensor of shape (\\*batch, m, n)
        Mask as zeros and ones.
    unit : Tensor of shape (\\*batch, 1, 1)
        Largest absolute value.
    transposed : bool
        Whether the matrix was transposed.
    observed : _Systems
        Systems of the rows with more hidden than observed cells.
    hidden : _Systems
        Systems of the other rows.
    """

    values: Tensor  # (*batch, m, n), double, zero where hidden
    seen: Tensor  # (*batch, m, n), double 0/1
    unit: Tensor  # (*batch, 1, 1), double
    transposed: bool
    observed: _Systems  # of rows with more hidden than observed cells
    hidden: _Systems  # of the others

    @classmethod
    def of(cls, data: Observed) -> Problem:
        """Make it from the observed cells.

        Parameters
        ----------
        data : Observed
            The observed cells.

        Returns
        -------
        Problem
        """
        transposed = data.shape[0] < data.shape[1]
        values, mask = data.values.double(), data.mask
        if transposed:
            values, mask = values.mT, mask.mT
        unit = values.abs().amax((-2, -1), keepdim=True)
        unit = torch.where(unit > 0, unit, 1.0)
        return cls.with_systems((values / unit).contiguous(), mask, unit, transposed)

    @classmethod
    def with_systems(
        cls, values: Tensor, mask: Tensor, unit: Tensor, transposed: bool
    ) -> Problem:
        """Make it from tall matrices and their masks.

        Parameters
        ----------
        values : Tensor of shape (\\*batch, m, n)
            Values divided by the largest one, zero where hidden.
        mask : bool Tensor of shape (\\*batch, m, n)
            True where observed.
        unit : Tensor of shape (\\*batch, 1, 1)
            Largest absolute value.
        transposed : bool
            Whether the matrices were transposed.

        Returns
        -------
        Problem
        """
        few = 2 * mask.sum(-1, keepdim=True) < mask.shape[-1]
        return cls(
            values=values,
            seen=mask.double(),
            unit=unit,
            transposed=transposed,
            observed=_Systems.of(mask & few),
            hidden=_Systems.of(~mask & ~few),
        )

    def select(self, members: Tensor) -> Problem:
        """Keep some members of the single batch axis.

        Parameters
        ----------
        members : bool or int Tensor
            Mask or positions of the members to keep.

        Returns
        -------
        Problem
        """
        mask = self.seen[members].bool()
        return self.with_systems(
            self.values[members], mask, self.unit[members], self.transposed
        )

    def less(self, means: Tensor) -> Problem:
        """Subtract numbers from the observed cells.

        Parameters
        ----------
        means : Tensor of shape (\\*batch, 1, n), (\\*batch, m, 1) or ()
            Numbers to subtract.

        Returns
        -------
        Problem
        """
        return replace(self, values=self.values - means * self.seen)

    def interpolate(self, Q: Tensor) -> Tensor:
        """``argmin x Q x'`` of each row with ``x = m`` on its observed cells.

        Parameters
        ----------
        Q : Tensor of shape (\\*batch, n, n)
            Positive definite matrix.

        Returns
        -------
        Tensor of shape (\\*batch, m, n)
        """
        Z = self.values
        if self.hidden.blocks:
            Z = Z - self.hidden.solve(Q, Z @ Q)
        if self.observed.blocks:
            H = _inverse(Q)
            Z = self._merge(Z, self.observed.solve(H, self.values) @ H)
        return Z

    def approximate(self, Q: Tensor) -> Tensor:
        """``argmin |(x - m) p|^2 + x Q x'`` of each row.

        Parameters
        ----------
        Q : Tensor of shape (\\*batch, n, n)
            Positive definite matrix.

        Returns
        -------
        Tensor of shape (\\*batch, m, n)
        """
        eye = torch.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)
        G = _inverse(eye + Q)
        Y = self.values @ G
        Z = Y
        if self.hidden.blocks:
            Z = Y + self.hidden.solve(Q @ G, Y) @ G
        if self.observed.blocks:
            H = _inverse(Q)
            Z = self._merge(Z, self.observed.solve(eye + H, self.values) @ H)
        return Z

    def _merge(self, Z: Tensor, own: Tensor) -> Tensor:
        """Replace the rows of ``own`` that have no observed cell by those of ``Z``."""
        others = self.observed.others
        own.flatten(0, -2)[others] = Z.flatten(0, -2)[others]
        return own


def _inverse(A: Tensor) -> Tensor:
    """Invert positive definite matrices; the results are positive definite, too."""
    return torch.cholesky_inverse(torch.linalg.cholesky(A))


@dataclass(frozen=True)
class _Block:
    """Systems solved together: padded principal submatrices of similar size."""

    cells: Tensor  # (s, k) int, columns, n where padded
    member: Tensor  # (s, 1) int, matrix of the batch
    system: Tensor  # (r,) int, system of each row
    column: Tensor  # (r,) int, its right-hand side in the system
    places: Tensor  # (r, k) int, positions in the flattened right-hand sides
    padding: Tensor  # (s, k) double 0/1
    width: int  # number of right-hand sides of each system

    def solve(self, A: Tensor, b: Tensor, out: Tensor) -> None:
        """Add the solutions to ``out``, flat like ``b``; ``A (*batch, n+1, n+1)``."""
        n, k = A.shape[-1], self.cells.shape[1]
        # 32-bit integers are added and read twice as fast.
        dtype = torch.int32 if A.numel() < 2**31 else torch.int64
        column = self.cells.to(dtype)
        row = (self.member.to(dtype) * n + column) * n
        entries = (row[:, :, None] + column[:, None, :]).flatten()
        submatrices = A.flatten().index_select(0, entries).view(-1, k, k)
        torch.diagonal(submatrices, dim1=-2, dim2=-1).add_(self.padding)
        sides = b.new_zeros((len(self.cells), self.width, k))
        sides[self.system, self.column] = b[self.places]
        # The upper factor avoids a transposed copy.
        U = torch.linalg.cholesky(submatrices, upper=True)
        half = torch.linalg.solve_triangular(U.mT, sides.mT, upper=False)
        solved = torch.linalg.solve_triangular(U, half, upper=True).mT
        solved = solved * (1 - self.padding)[:, None]
        found = solved[self.system, self.column]
        out.scatter_add_(0, self.places.flatten(), found.flatten())


@dataclass(frozen=True)
class _Systems:
    """Systems ``A_SS v_S = b_S`` of the rows, where S is the cells of a mask."""

    others: Tensor  # (q,) int, rows of the flattened batch without a system
    blocks: list[_Block]

    @classmethod
    def of(cls, mask: Tensor) -> _Systems:
        """Group the rows of ``mask (*batch, m, n)``; empty rows have no system."""
        n_rows, n_cols = mask.shape[-2:]
        mask = mask.flatten(0, -2)
        some = mask.any(-1)
        rows = some.nonzero()[:, 0]
        # Rows with equal masks in the same matrix of the batch share a system.
        key = torch.cat([(rows // n_rows)[:, None], mask[rows].long()], 1)
        distinct, system, counts = torch.unique(
            key, dim=0, return_inverse=True, return_counts=True
        )
        # Systems with equally many right-hand sides and similar sizes form a block.
        sizes = distinct[:, 1:].sum(1)
        order = (counts * (n_cols + 1) + sizes).argsort(descending=True)
        member, masks = distinct[order, :1], distinct[order, 1:].bool()
        sizes, counts = sizes[order], counts[order]
        ends = counts.cumsum(0)
        system, turn = order.argsort()[system].sort(stable=True)
        rows = rows[turn]
        column = torch.arange(len(rows), device=rows.device) - (ends - counts)[system]
        # Selected cells first, in their original order.
        cells = (~masks).long().argsort(dim=1, stable=True)
        cells = torch.where(masks.gather(1, cells), cells, n_cols)

        limit = BLOCK["cpu" if mask.device.type == "cpu" else "cuda"]
        table = list(zip(sizes.tolist(), counts.tolist(), ends.tolist(), strict=True))
        blocks, start = [], 0
        while start < len(table):
            size, width, end = table[start]
            stop = min(start + max(1, limit // (size * (size + width))), len(table))
            while table[stop - 1][1] != width:
                stop -= 1
            span = slice(end - width, table[stop - 1][2])
            own, which = cells[start:stop, :size], system[span] - start
            padding = own == n_cols
            # Padded positions may read any cell; they write zero.
            cols = torch.where(padding, 0, own)[which]
            blocks.append(
                _Block(
                    cells=own,
                    member=member[start:stop],
                    system=which,
                    column=column[span],
                    places=rows[span, None] * n_cols + cols,
                    padding=padding.double(),
                    width=width,
                )
            )
            start = stop
        return cls((~some).nonzero()[:, 0], blocks)

    def solve(self, A: Tensor, b: Tensor) -> Tensor:
        """``v (*batch, m, n)``: ``inv(A_SS) b_S`` on each row's S, zero elsewhere.

        ``A (*batch, n, n)`` is positive definite, ``b`` has shape ``(*batch, m, n)``.
        """
        padded, v = pad(A, (0, 1, 0, 1)), torch.zeros_like(b)
        solve = partial(_Block.solve, A=padded, b=b.flatten(), out=v.view(-1))
        n_threads = torch.get_num_threads()
        if n_threads == 1:
            list(map(solve, self.blocks))
            return v
        # Torch factorizes a batch in one thread; each block writes to its own rows.
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(solve, self.blocks))
        return v
