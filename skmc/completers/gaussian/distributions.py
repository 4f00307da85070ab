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

import numpy as np
import torch
from torch import Tensor

from skmc.linalg import Parts

BLOCK = 2**22  # largest number of elements in memory
SMALL, SIMILAR = 4, 1.25  # sizes of subsets that share a block, see `_sizes`
TINY = 1e-12  # of the trace, added to a scatter without a ridge


@dataclass(frozen=True, eq=False)
class Sites(Parts):
    r"""Gaussian factors :math:`\exp(\nu x - \tau x^2 / 2)` of missing cells.

    Parameters
    ----------
    precision, linear : float64 Tensor of shape (n_rows, n_cols)
        :math:`\tau \ge 0` and :math:`\nu`, zero in cells without a factor.
    """

    precision: Tensor
    linear: Tensor

    def rows(self, rows: slice) -> Sites:
        """The factors of some rows."""
        return self.map(lambda x: x[rows])


@dataclass(frozen=True, eq=False)
class Expected:
    """Expectations of partly observed rows under a Gaussian.

    Parameters
    ----------
    deviations : Tensor of shape (n_rows, n_cols)
        Completed rows minus the mean.
    scatter : Tensor of shape (n_cols, n_cols)
        Weighted sum over rows of the conditional covariances; zero for rows without a
        cell.
    log_likelihood : Tensor of shape ()
        Weighted log-likelihood of the observed cells, and of the sites.
    variances : Tensor of shape (n_rows, n_cols) or None, default=None
        Conditional variances of the missing cells, if there are sites.
    """

    deviations: Tensor  # (n_rows, n_cols)
    scatter: Tensor  # (n_cols, n_cols)
    log_likelihood: Tensor  # ()
    variances: Tensor | None = None  # (n_rows, n_cols)


@dataclass(frozen=True, eq=False)
class Gaussian(Parts):
    """A normal distribution of rows, and their completion.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Mean of each column, in double precision.
    covariance : Tensor of shape (n_cols, n_cols)
        Covariance of the columns, in double precision.
    """

    mean: Tensor  # (n_cols,)
    covariance: Tensor  # (n_cols, n_cols)

    def extended(
        self,
        mean: Tensor,  # (n_more,)
        factor: Tensor,  # (n_cols,)
    ) -> Gaussian:
        """Rescale the columns, and append uncorrelated ones of variance 1."""
        n = len(factor)
        covariance = torch.eye(len(mean), dtype=mean.dtype)
        covariance[:n, :n] = self.covariance * torch.outer(factor, factor)
        return Gaussian(mean, covariance)

    @classmethod
    def from_posterior(
        cls,
        rows: Tensor,  # (n_rows, n_cols)
        weights: Tensor,  # (n_rows,)
        ridge: float,
        order: np.ndarray,  # (n_cols,)
        rng: np.random.RandomState,
    ) -> Gaussian:
        """Draw a distribution from the posterior given complete rows.

        It is that of a chain of regressions: each column, in ``order``, is explained by
        those before it, with a flat prior of coefficients and of the logarithm of the
        residual variance (the right Haar prior). So the ``k``-th residual variance has
        ``n - k + ridge`` degrees of freedom, those of its regression, where ``n`` is
        the sum of the weights. ``ridge`` times the identity is added to the scatter.
        """
        n, d = float(weights.sum()), rows.shape[1]
        mean = (weights[:, None] * rows).sum(0) / n
        off = (rows - mean)[:, order]
        scale = (weights[:, None] * off).mT @ off
        scale.diagonal().add_(max(ridge, TINY * float(scale.diagonal().sum())))
        T = np.tril(rng.standard_normal((d, d)), -1)
        T[np.diag_indices(d)] = (
            rng.chisquare(max(n - 1 + ridge, d) - np.arange(d)) ** 0.5
        )
        root = torch.linalg.solve_triangular(
            torch.from_numpy(T), torch.linalg.cholesky(scale), upper=False, left=False
        )[np.argsort(order)]
        normal = torch.from_numpy(rng.standard_normal(d))
        return cls(mean + root @ normal / math.sqrt(n), root @ root.mT)

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

    def expect(
        self,
        values: Tensor,  # (n_rows, n_cols)
        patterns: Patterns,
        sites: Sites | None = None,
    ) -> Expected:
        r"""Complete rows and sum their conditional covariances.

        Sites add to the precision and to the linear term of their cells:
        :math:`E[x_m] = \mu_m + (K_{mm} + T)^{-1} (\nu - T \mu_m - K_{mo} x_o)`.
        """
        seen, S = patterns.seen, self.covariance
        K = self.precision
        Y = torch.where(seen, values - self.mean, 0.0)
        scatter = {missing: torch.zeros_like(S) for missing in (True, False)}
        right = {True: _padded(Y @ K), False: _padded(Y)}
        added = variances = None
        if sites is not None:
            pull = sites.linear - sites.precision * self.mean
            right[True] = right[True] - _padded(pull)
            added, variances = _padded(sites.precision), torch.zeros_like(right[True])
        solved = {missing: torch.zeros_like(right[True]) for missing in (True, False)}
        by_observed = Y.new_zeros(())  # rows solved in their observed columns
        constant = Y.new_zeros(())
        for group in patterns.groups:
            side = group.missing
            diagonal, at = None, (group.first_rows[:, None], group.columns)
            if added is not None:
                diagonal = added[at]
            inverse, logdets = group.inverses(K if side else S, diagonal)
            if variances is not None:
                variances[at] = inverse.diagonal(dim1=1, dim2=2)
            _add_blocks(scatter[side], group, inverse)
            for rows, pattern in group.blocks():
                columns = group.columns[pattern]
                b = right[side][rows[:, None], columns]
                x = (inverse[pattern] @ b[..., None])[..., 0]
                solved[side][rows[:, None], columns] = x
            constant = constant + (group.count * logdets).sum()
            if not side:
                by_observed = by_observed + group.count.sum()
        # The other rows with an observed cell derive S_oo from S.
        weights = patterns.weights
        constant = constant + (weights.sum() - by_observed) * self.logdet
        left = scatter[True] + by_observed * S - S @ scatter[False] @ S
        guess = solved[False][:, :-1] @ S - solved[True][:, :-1]
        Y = torch.where(seen, Y, guess)
        # (Y @ K) * Y would lose digits where K is large.
        white = torch.linalg.solve_triangular(self.root, Y.mT, upper=False)
        quadratic = (weights * white.square()).sum()
        n_observed = (weights[:, None] * seen).sum()
        likelihood = -(constant + quadratic + n_observed * math.log(2 * math.pi)) / 2
        if sites is None or variances is None:
            return Expected(Y, left, likelihood)
        x = self.mean + Y
        of_sites = sites.linear * x - sites.precision * x.square() / 2
        likelihood = likelihood + (weights[:, None] * of_sites).sum()
        return Expected(Y, left, likelihood, variances[:, :-1])

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Replace the cells that ``mask`` leaves out by conditional expectations."""
        return self.mean + self.expect(values, Patterns.of(mask)).deviations

    def given_others(
        self,
        values: Tensor,  # (n_rows, n_cols)
        mask: Tensor,  # (n_rows, n_cols)
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance of each cell given the *other* observed ones of its row."""
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

    def draw(
        self,
        normal: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """Transform standard normal numbers to rows of this distribution."""
        return self.mean + normal @ self.root.mT


@dataclass(frozen=True, eq=False)
class ExpectedSums(Parts):
    r"""Expected sums of rows and of their products under a Gaussian.

    For complete rows the sums of :math:`1`, :math:`x` and :math:`x x^\top` are
    sufficient for mean and covariance. Missing cells are replaced by their expectations
    given the observed ones, and their conditional covariances are added. Sums of
    different rows add up; rows without a cell do not count.

    Parameters
    ----------
    count : Tensor of shape ()
        Number of rows.
    first : Tensor of shape (n_cols,)
        Sum of expected rows.
    second : Tensor of shape (n_cols, n_cols)
        Sum of expected products.
    log_likelihood : Tensor of shape ()
        Log-likelihood of the observed cells.
    """

    count: Tensor
    first: Tensor
    second: Tensor
    log_likelihood: Tensor

    @classmethod
    def of(
        cls,
        model: Gaussian,
        values: Tensor,  # (n_rows, n_cols)
        seen: Tensor,  # (n_rows, n_cols)
    ) -> ExpectedSums:
        """Expected sums of some rows under ``model``."""
        some = seen.any(1)
        expected = model.expect(values[some], Patterns.of(seen[some]))
        rows = model.mean + expected.deviations
        second = rows.mT @ rows + expected.scatter
        count, likelihood = some.sum().to(values), expected.log_likelihood
        return cls(count, rows.sum(0), second, likelihood)

    def plus(self, other: ExpectedSums) -> ExpectedSums:
        """Add the sums of other rows."""
        return self.map(torch.add, other)

    def gaussian(
        self,
        weight: float,
        variance: Tensor,  # (n_cols,)
    ) -> Gaussian:
        """The most probable Gaussian, see `EM`."""
        mean = self.first / self.count
        scatter = self.second - self.count * torch.outer(mean, mean)
        scatter = (scatter + scatter.mT) / 2
        scatter.diagonal().add_(weight * variance)
        return Gaussian(mean, scatter / (self.count + weight))


@dataclass(frozen=True, eq=False)
class Scores:
    """Posterior distribution of the factors of some rows.

    Parameters
    ----------
    rows : slice
        Range of the rows.
    mean : Tensor of shape (k, rank)
        Expected factors.
    covariance : Tensor of shape (k, rank, rank)
        Posterior covariance of the factors.
    log_likelihood : Tensor of shape (k,)
        Log-likelihood of the observed cells of each row.
    """

    rows: slice
    mean: Tensor  # (k, rank)
    covariance: Tensor  # (k, rank, rank)
    log_likelihood: Tensor  # (k,)


@dataclass(frozen=True, eq=False)
class FactorGaussian(Parts):
    r"""Rows ``x = mean + F u + e`` with ``u ~ N(0, I)`` and ``e_j ~ N(0, noise_j)``.

    Given the observed cells ``o`` of a row, its factors are Gaussian:

    .. math::

        V = (I + F_o^T \Psi_o^{-1} F_o)^{-1}, \qquad
        E[u | x_o] = V F_o^T \Psi_o^{-1} (x_o - \mu_o),

    so that a row costs ``rank^3``, whatever the number of its columns.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Column means, in double precision like the other two.
    loadings : Tensor of shape (n_cols, rank)
        Loadings ``F``.
    noise : Tensor of shape (n_cols,)
        Variances of the noise, the diagonal of ``Psi``.
    """

    mean: Tensor  # (n_cols,)
    loadings: Tensor  # (n_cols, rank)
    noise: Tensor  # (n_cols,)

    def extended(
        self,
        mean: Tensor,  # (n_more,)
        factor: Tensor,  # (n_cols,)
    ) -> FactorGaussian:
        """Rescale the columns, and append independent ones of variance 1."""
        n = len(factor)
        loadings = mean.new_zeros(len(mean), self.loadings.shape[1])
        loadings[:n] = self.loadings * factor[:, None]
        noise = torch.ones_like(mean)
        noise[:n] = self.noise * factor.square()
        return FactorGaussian(mean, loadings, noise)

    @property
    def covariance(self) -> Tensor:
        """Covariance of the rows, shape (n_cols, n_cols)."""
        return self.loadings @ self.loadings.mT + self.noise.diag()

    def scores(
        self,
        values: Tensor,  # (n_rows, n_cols)
        mask: Tensor,  # (n_rows, n_cols)
        sites: Sites | None = None,
    ) -> Iterator[Scores]:
        """Posterior of the factors, in parts of bounded memory.

        A site is an observation of ``nu / tau`` with the variance ``noise + 1 / tau``.
        """
        F, rank = self.loadings, self.loadings.shape[1]
        outer = (F[:, :, None] * F[:, None, :]).flatten(1)
        eye = torch.eye(rank, dtype=F.dtype, device=F.device)
        size = max(1, BLOCK // max(rank**2, len(F)))
        for begin in range(0, len(values), size):
            rows = slice(begin, min(begin + size, len(values)))
            seen = mask[rows].to(F.dtype)
            Y = torch.where(mask[rows], values[rows] - self.mean, 0.0)
            # The factors of a row see exp(b_j f_j' u - a_j (f_j' u)^2 / 2).
            a, b = seen / self.noise, Y / self.noise
            of_sites = Y.new_zeros(())
            if sites is not None:
                tau, nu = sites.precision[rows], sites.linear[rows]
                spread = 1 + tau * self.noise
                a = a + tau / spread
                b = b + (nu - tau * self.mean) / spread
                of_sites = nu * self.mean - tau * self.mean.square() / 2
                pull = nu - tau * self.mean
                of_sites = of_sites + pull.square() * self.noise / spread / 2
                of_sites = (of_sites - spread.log() / 2).sum(1)
            precision = eye + (a @ outer).view(-1, rank, rank)
            L, failed = torch.linalg.cholesky_ex(precision)
            L = torch.where(failed[:, None, None] == 0, L, torch.nan)
            root = torch.linalg.solve_triangular(L, eye.expand_as(L), upper=False)
            V = root.mT @ root
            b = b @ F
            u = (V @ b[..., None])[..., 0]
            constant = seen @ self.noise.log() + seen.sum(1) * math.log(2 * math.pi)
            constant = constant + 2 * L.diagonal(dim1=1, dim2=2).log().sum(1)
            quadratic = (Y.square() / self.noise).sum(1) - (b * u).sum(1)
            yield Scores(rows, u, V, of_sites - (constant + quadratic) / 2)

    def cells(self, part: Scores, sites: Sites) -> tuple[Tensor, Tensor, Tensor]:
        """Moments of the cells of some rows, given the observed cells and the sites."""
        F, noise = self.loadings, self.noise
        slope = 1 / (1 + sites.precision[part.rows] * noise)
        mean = self.mean + part.mean @ F.mT + sites.linear[part.rows] * noise
        explained = torch.einsum("jr,krs,js->kj", F, part.covariance, F)
        return mean * slope, noise * slope + explained * slope.square(), slope

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Replace the cells that ``mask`` leaves out by conditional expectations."""
        factors = torch.cat([part.mean for part in self.scores(values, mask)])
        return torch.where(mask, values, self.mean + factors @ self.loadings.mT)

    def given_others(
        self,
        values: Tensor,  # (n_rows, n_cols)
        mask: Tensor,  # (n_rows, n_cols)
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance of each cell given the *other* observed ones of its row."""
        F, noise = self.loadings, self.noise
        means, variances = [], []
        for part in self.scores(values, mask):
            seen = mask[part.rows]
            explained = torch.einsum("jr,krs,js->kj", F, part.covariance, F)
            guess = self.mean + part.mean @ F.mT
            # Diagonal of the inverse covariance of the observed cells, by Woodbury.
            variance = torch.where(seen, noise / (1 - explained / noise), 0.0)
            off = (values[part.rows] - guess) / noise
            own = torch.where(seen, values[part.rows] - off * variance, guess)
            means.append(own)
            variances.append(torch.where(seen, variance, noise + explained))
        return torch.cat(means), torch.cat(variances)

    def draw(
        self,
        normal: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """Transform standard normal numbers to rows of this distribution."""
        return self.mean + normal @ torch.linalg.cholesky(self.covariance).mT


def _add_blocks(total: Tensor, group: Group, blocks: Tensor) -> None:
    """Add each block to its place, times the weight of the rows that have it."""
    n = len(total)
    padded = total.new_zeros((n + 1) * (n + 1))
    weighted = group.count[:, None, None] * blocks
    padded.index_add_(0, group.place(n).flatten(), weighted.flatten())
    total += padded.view(n + 1, n + 1)[:n, :n]


def _padded(rows: Tensor) -> Tensor:
    """Append the column of zeros that padded positions refer to."""
    return torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)


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
        Sum of the weights of the rows of each pattern.
    missing : bool
        Whether the subset is the missing columns instead of the observed ones.
    """

    columns: Tensor  # (n_patterns, size)
    rows: Tensor  # (k,)
    pattern: Tensor  # (k,)
    count: Tensor  # (n_patterns,)
    missing: bool

    @property
    def first_rows(self) -> Tensor:
        """Position of a row of each pattern."""
        rows = torch.empty(
            len(self.columns), dtype=torch.int64, device=self.rows.device
        )
        rows[self.pattern] = self.rows
        return rows

    def place(self, n_cols: int) -> Tensor:  # (n_patterns, size, size)
        """Flat positions of submatrices in a matrix padded by a row and a column."""
        return self.columns[:, :, None] * (n_cols + 1) + self.columns[:, None, :]

    def inverses(
        self,
        matrix: Tensor,  # (n_cols, n_cols)
        added: Tensor | None = None,  # (n_patterns, size)
    ) -> tuple[Tensor, Tensor]:
        """Inverse and log determinant of the submatrix of each pattern."""
        n, padding = len(matrix), self.columns == len(matrix)
        padded = matrix.new_zeros(n + 1, n + 1)
        padded[:n, :n] = matrix
        block = padded.take(self.place(n))
        block.diagonal(dim1=1, dim2=2).add_(padding)
        if added is not None:
            block.diagonal(dim1=1, dim2=2).add_(added)
        L, failed = torch.linalg.cholesky_ex(block)
        eye = torch.eye(L.shape[1], dtype=L.dtype, device=L.device)
        root = torch.linalg.solve_triangular(L, eye.expand_as(L), upper=False)
        logdet = 2 * L.diagonal(dim1=1, dim2=2).log().sum(-1)
        return root.mT @ root, torch.where(failed == 0, logdet, torch.nan)

    def blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and their patterns, in parts of bounded memory."""
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
    weights : float64 Tensor of shape (n_rows,)
        Weight of each row in sums over rows; 0 for rows without a cell.
    """

    groups: list[Group]
    seen: Tensor
    weights: Tensor

    @classmethod
    def of(
        cls,
        seen: Tensor,  # (n_rows, n_cols)
        weights: Tensor | None = None,  # (n_rows,)
    ) -> Patterns:
        """Group the rows of a mask."""
        if weights is None:
            weights = seen.any(1).double()
        mask = seen.cpu().numpy()
        bits = np.packbits(mask, axis=1)
        keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        count = np.bincount(inverse, weights.cpu().numpy(), len(first))
        distinct = mask[first]
        few = 2 * distinct.sum(1) >= mask.shape[1]
        groups = [
            group.to(seen.device)
            for missing in (True, False)
            for group in _groups(distinct, few == missing, inverse, count, missing)
        ]
        return cls(groups, seen, weights)

    @classmethod
    def of_each(
        cls,
        seen: Tensor,  # (n_rows, n_cols)
        weights: Tensor,  # (n_rows,)
    ) -> Patterns:
        """Solve each row by itself, and in its missing columns."""
        mask, count = seen.cpu().numpy(), weights.cpu().numpy()
        every, inverse = np.ones(len(mask), bool), np.arange(len(mask))
        found = _groups(mask, every, inverse, count, True)
        return cls([group.to(seen.device) for group in found], seen, weights)


def _groups(
    distinct: np.ndarray,
    chosen: np.ndarray,
    inverse: np.ndarray,
    count: np.ndarray,
    missing: bool,
) -> Iterator[Group]:
    """Group the ``chosen`` ones of distinct patterns by their number of columns.

    ``inverse`` is the number of the pattern of each row, and ``count`` the weight of
    each pattern.
    """
    subset, n_cols = distinct != missing, distinct.shape[1]
    sizes = subset.sum(1)
    chosen = np.flatnonzero(chosen & (sizes > 0))
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
        yield Group(
            torch.from_numpy(columns),
            torch.from_numpy(rows),
            torch.from_numpy(pattern[rows]),
            torch.from_numpy(count[part]),
            missing,
        )


def _sizes(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of runs of similar sizes in ascending order."""
    begin = 0
    while begin < len(sizes):
        most = max(SMALL, int(SIMILAR * sizes[begin]))
        end = int(np.searchsorted(sizes, most, side="right"))
        end = min(end, begin + max(1, BLOCK // int(sizes[end - 1]) ** 2))
        yield begin, end
        begin = end
