r"""Conditional expectations of Gaussian rows.

Let ``K`` be the inverse of the covariance ``S``, and ``o``, ``m`` the observed and the
missing columns of a row ``x`` with mean zero. All that is needed follows from a small
system in the missing columns, or from one in the observed columns:

.. math::

    E[x_m | x_o] = -K_{mm}^{-1} K_{mo} x_o = S_{mo} S_{oo}^{-1} x_o, \qquad
    Var[x_m | x_o] = K_{mm}^{-1} = S_{mm} - S_{mo} S_{oo}^{-1} S_{om},

    \log\det S_{oo} = \log\det S + \log\det K_{mm}, \qquad
    S_{oo}^{-1} = K_{oo} - K_{om} K_{mm}^{-1} K_{mo}.

With ``a = S_oo^-1 x_o`` an observed cell given the *other* observed cells of its row
has the variance ``1 / (S_oo^-1)_jj`` and the mean ``x_j - a_j / (S_oo^-1)_jj``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

BLOCK = 2**22  # numbers held at once
SMALL, SIMILAR = 4, 1.25  # sizes of subsets that share a block, see `_sizes`


@dataclass(frozen=True, eq=False)
class Group:
    """Rows whose subset of columns has about the same size.

    Parameters
    ----------
    columns : int64 Tensor of shape (n_patterns, size)
        The subset of each pattern, padded with ``n_cols``.
    rows : int64 Tensor of shape (k,)
        Positions of the rows.
    pattern : int64 Tensor of shape (k,)
        Which pattern each row has.
    count : Tensor of shape (n_patterns,)
        Rows of each pattern.
    missing : bool
        Whether the subset is the missing columns, not the observed ones.
    """

    columns: Tensor  # (n_patterns, size)
    rows: Tensor  # (k,)
    pattern: Tensor  # (k,)
    count: Tensor  # (n_patterns,)
    missing: bool

    def to(self, device: torch.device) -> Group:
        """Move all tensors.

        Parameters
        ----------
        device : torch.device
            Where to.

        Returns
        -------
        Group
        """
        return Group(
            self.columns.to(device),
            self.rows.to(device),
            self.pattern.to(device),
            self.count.to(device),
            self.missing,
        )

    def place(self, n_cols: int) -> Tensor:
        """Where the submatrices lie in a flat matrix with one more row and column.

        Parameters
        ----------
        n_cols : int
            Columns of the rows.

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
            Symmetric, positive definite.

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
    """The rows of a mask, grouped by which columns they have.

    A row is solved in its missing or its observed columns, whichever are fewer. Rows
    with equal masks share an inverse. Rows without an observed cell, and complete rows,
    need none.

    Parameters
    ----------
    groups : list of Group
        All rows that need a solve.
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
    """Begin and end of runs of similar sizes, which are ascending."""
    begin = 0
    while begin < len(sizes):
        most = max(SMALL, int(SIMILAR * sizes[begin]))
        end = int(np.searchsorted(sizes, most, side="right"))
        end = min(end, begin + max(1, BLOCK // int(sizes[end - 1]) ** 2))
        yield begin, end
        begin = end


@dataclass(frozen=True, eq=False)
class Expected:
    """What a Gaussian expects of partly observed rows.

    Parameters
    ----------
    deviations : Tensor of shape (n_rows, n_cols)
        Completed rows less the mean.
    scatter : Tensor of shape (n_cols, n_cols)
        Sum over rows of the conditional covariances; zero for rows without a cell.
    log_likelihood : Tensor of shape ()
        Of the observed cells.
    """

    deviations: Tensor  # (n_rows, n_cols)
    scatter: Tensor  # (n_cols, n_cols)
    log_likelihood: Tensor  # ()


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A normal distribution of rows, which completes them.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Double precision.
    covariance : Tensor of shape (n_cols, n_cols)
        Double precision.
    """

    mean: Tensor  # (n_cols,)
    covariance: Tensor  # (n_cols, n_cols)

    def to(self, *args: Any) -> Gaussian:
        """Move both tensors.

        Parameters
        ----------
        *args : device
            As `torch.Tensor.to` takes them.

        Returns
        -------
        Gaussian
        """
        return Gaussian(self.mean.to(*args), self.covariance.to(*args))

    def extended(self, mean: Tensor, factor: Tensor) -> Gaussian:
        """Rescale the columns, and append uncorrelated ones of variance 1.

        Parameters
        ----------
        mean : Tensor of shape (n_more,)
            The new mean, of at least as many columns.
        factor : Tensor of shape (n_cols,)
            Multiplies the present columns.

        Returns
        -------
        Gaussian
        """
        n = len(factor)
        covariance = torch.eye(len(mean), dtype=mean.dtype)
        covariance[:n, :n] = self.covariance * torch.outer(factor, factor)
        return Gaussian(mean, covariance)

    @cached_property
    def root(self) -> Tensor:
        """Cholesky factor of the covariance, NaN if it is not positive definite."""
        L, failed = torch.linalg.cholesky_ex(self.covariance)
        return torch.where(failed == 0, L, torch.nan)

    @cached_property
    def precision(self) -> Tensor:
        """Inverse of the covariance."""
        return torch.cholesky_inverse(self.root)

    @property
    def logdet(self) -> Tensor:
        """Log determinant of the covariance."""
        return 2 * self.root.diagonal().log().sum()

    def expect(self, values: Tensor, patterns: Patterns) -> Expected:
        """Complete rows, and sum up what remains uncertain.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_cols)
            Double precision; anything where unobserved.
        patterns : Patterns
            Which cells are observed.

        Returns
        -------
        Expected
        """
        seen, S = patterns.seen, self.covariance
        K = self.precision
        Y = torch.where(seen, values - self.mean, 0.0)
        scatter = {missing: torch.zeros_like(S) for missing in (True, False)}
        right = {True: _padded(Y @ K), False: _padded(Y)}
        solved = {missing: torch.zeros_like(right[True]) for missing in (True, False)}
        by_observed = Y.new_zeros(())  # rows solved in their observed columns
        constant = Y.new_zeros(())
        for group in patterns.groups:
            side = group.missing
            inverse, logdets = group.inverses(K if side else S)
            _add_blocks(scatter[side], group, inverse)
            for rows, pattern in group.blocks():
                columns = group.columns[pattern]
                b = right[side][rows[:, None], columns]
                x = (inverse[pattern] @ b[..., None])[..., 0]
                solved[side][rows[:, None], columns] = x
            constant = constant + (group.count * logdets).sum()
            if not side:
                by_observed = by_observed + group.count.sum()
        # Rows with a cell that are not solved in the observed columns have S_oo from S.
        some = seen.any(1).sum()
        constant = constant + (some - by_observed) * self.logdet
        left = scatter[True] + by_observed * S - S @ scatter[False] @ S
        guess = solved[False][:, :-1] @ S - solved[True][:, :-1]
        Y = torch.where(seen, Y, guess)
        # Of (Y @ K) * Y, where K is large, fewer digits would be left.
        white = torch.linalg.solve_triangular(self.root, Y.mT, upper=False)
        quadratic = white.square().sum()
        n_observed = seen.sum()
        likelihood = -(constant + quadratic + n_observed * math.log(2 * math.pi)) / 2
        return Expected(Y, left, likelihood)

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Replace what ``mask`` does not mark by its conditional expectation."""
        return self.mean + self.expect(values, Patterns.of(mask)).deviations

    def given_others(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of every cell given the *other* observed cells of its row.

        Parameters
        ----------
        values : Tensor of shape (n_rows, n_cols)
            Rows.
        mask : bool Tensor of shape (n_rows, n_cols)
            True where observed.

        Returns
        -------
        mean : Tensor of shape (n_rows, n_cols)
        variance : Tensor of shape (n_rows, n_cols)
        """
        patterns = Patterns.of(mask)
        K = self.precision
        Y = self.expect(values, patterns).deviations
        # Variance of missing cells, and its inverse for observed ones.
        diagonal = torch.where(mask, K.diagonal(), self.covariance.diagonal())
        for group in patterns.groups:
            matrix = K if group.missing else self.covariance
            padded = _padded(matrix).mT
            inverse, _ = group.inverses(matrix)
            size = max(1, BLOCK // (group.columns.shape[1] * len(matrix)))
            parts = zip(group.columns.split(size), inverse.split(size), strict=True)
            found = []
            for columns, inv in parts:
                cross = padded[columns]  # (p, size, n_cols)
                part = matrix.diagonal() - (cross * (inv @ cross)).sum(1)
                own = inv.diagonal(dim1=1, dim2=2)
                found.append(_padded(part).scatter(1, columns, own)[:, :-1])
            diagonal[group.rows] = torch.cat(found)[group.pattern]
        variance = torch.where(mask, 1 / diagonal, diagonal)
        own = Y - torch.where(mask, (Y @ K) * variance, 0.0)
        return self.mean + own, variance

    def draw(self, normal: Tensor) -> Tensor:
        """Rows from this distribution, made from standard normal numbers.

        Parameters
        ----------
        normal : Tensor of shape (n_rows, n_cols)
            Independent standard normal numbers.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        return self.mean + normal @ self.root.mT


def _add_blocks(total: Tensor, group: Group, blocks: Tensor) -> None:
    """Add the blocks, times how many rows have them, where they belong."""
    n = len(total)
    padded = total.new_zeros((n + 1) * (n + 1))
    weighted = group.count[:, None, None] * blocks
    padded.index_add_(0, group.place(n).flatten(), weighted.flatten())
    total += padded.view(n + 1, n + 1)[:n, :n]


def _padded(rows: Tensor) -> Tensor:
    """Append a column of zeros, which padding points to."""
    return torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)
