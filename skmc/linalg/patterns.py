"""Rows grouped by the pattern of their observed cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from skmc.linalg.parts import Parts

BLOCK = 2**22  # largest number of elements in memory
SMALL, SIMILAR = 4, 1.25  # sizes of subsets that share a block, see `_sizes`


@dataclass(frozen=True, eq=False)
class Group(Parts):
    """Rows with column subsets of about the same size.

    Parameters
    ----------
    columns : int64 Tensor of shape (n_patterns, size)
        Column subset of each pattern, padded with ``n_cols``.
    rows : int64 Tensor of shape (k,)
        Positions of the rows.
    pattern : int64 Tensor of shape (k,)
        Number of the pattern of each row.
    count : Tensor of shape (n_patterns,)
        Number of rows of each pattern.
    missing : bool
        Whether the subset is the missing columns instead of the observed ones.
    """

    columns: Tensor  # (n_patterns, size)
    rows: Tensor  # (k,)
    pattern: Tensor  # (k,)
    count: Tensor  # (n_patterns,)
    missing: bool

    def place(self, n_cols: int) -> Tensor:
        """Flat positions of the submatrices in a matrix padded by one row and column.

        Parameters
        ----------
        n_cols : int
            Number of columns of the matrix.

        Returns
        -------
        int64 Tensor of shape (n_patterns, size, size)
        """
        return self.columns[:, :, None] * (n_cols + 1) + self.columns[:, None, :]

    def inverses(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """Inverse and log determinant of the submatrix of each pattern.

        Parameters
        ----------
        matrix : Tensor of shape (n_cols, n_cols)
            Symmetric positive definite matrix.

        Returns
        -------
        inverse : Tensor of shape (n_patterns, size, size)
        logdet : Tensor of shape (n_patterns,)
            NaN where a submatrix is not positive definite.
        """
        n, padding = len(matrix), self.columns == len(matrix)
        padded = matrix.new_zeros(n + 1, n + 1)
        padded[:n, :n] = matrix
        block = padded.take(self.place(n))
        block.diagonal(dim1=1, dim2=2).add_(padding)
        L, failed = torch.linalg.cholesky_ex(block)
        eye = torch.eye(L.shape[1], dtype=L.dtype, device=L.device)
        root = torch.linalg.solve_triangular(L, eye.expand_as(L), upper=False)
        logdet = 2 * L.diagonal(dim1=1, dim2=2).log().sum(-1)
        return root.mT @ root, torch.where(failed == 0, logdet, torch.nan)

    def blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and their patterns, in parts of bounded memory.

        Returns
        -------
        iterator of tuple of Tensor
        """
        size = max(1, BLOCK // max(1, self.columns.shape[1] ** 2))
        return zip(self.rows.split(size), self.pattern.split(size), strict=True)


@dataclass(frozen=True, eq=False)
class Patterns:
    """The rows of a mask, grouped by their observed columns.

    A row is solved in its missing or its observed columns, whichever are fewer. Rows
    with equal masks share an inverse. Empty and complete rows need none.

    Parameters
    ----------
    groups : list of Group
        Groups of all rows that need a solve.
    seen : bool Tensor of shape (n_rows, n_cols)
        True where observed.
    """

    groups: list[Group]
    seen: Tensor

    @classmethod
    def of(cls, seen: Tensor) -> Patterns:
        """Group the rows of a mask.

        Parameters
        ----------
        seen : bool Tensor of shape (n_rows, n_cols)
            True where observed.

        Returns
        -------
        Patterns
        """
        mask = seen.cpu().numpy()
        n_cols = mask.shape[1]
        bits = np.packbits(mask, axis=1)
        keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
        _, first, inverse, count = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        distinct = mask[first]
        n_seen = distinct.sum(1)
        groups = []
        for missing in (True, False):
            subset = distinct != missing
            sizes = subset.sum(1)
            fewer = (2 * n_seen >= n_cols) == missing
            chosen = np.flatnonzero(fewer & (sizes > 0))
            chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
            for begin, end in _sizes(sizes[chosen]):
                part = chosen[begin:end]
                width = sizes[part].max()
                columns = np.argsort(~subset[part], axis=1, kind="stable")[:, :width]
                columns[np.arange(width) >= sizes[part, None]] = n_cols
                position = np.full(len(count), -1)
                position[part] = np.arange(len(part))
                pattern = position[inverse]
                rows = np.flatnonzero(pattern >= 0)
                group = Group(
                    torch.from_numpy(columns),
                    torch.from_numpy(rows),
                    torch.from_numpy(pattern[rows]),
                    torch.from_numpy(count[part].astype(float)),
                    missing,
                )
                groups.append(group.to(seen.device))
        return cls(groups, seen)


def _sizes(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of runs of similar sizes in ascending order."""
    begin = 0
    while begin < len(sizes):
        most = max(SMALL, int(SIMILAR * sizes[begin]))
        end = int(np.searchsorted(sizes, most, side="right"))
        end = min(end, begin + max(1, BLOCK // int(sizes[end - 1]) ** 2))
        yield begin, end
        begin = end
