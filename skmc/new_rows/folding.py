"""Completion of new rows by least squares on the row space of the completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.cells.copies import copies
from skmc.linalg import threads_for, work_of

MAX_RANK = 100
CHOSEN_FROM = 10.0 ** torch.arange(-8, 0.5, 0.5, dtype=torch.float64)
ROUNDING = 1e-20  # of the variance of the cells; rows that vary less do not vary
ROWS_JUDGED = 100
BLOCK = 2**22  # largest number of elements in memory


class Deferred:
    """A map of rows that is computed on demand.

    Most fits never complete new rows, and the map can take longer than the fit. Copies
    and files contain the map.

    Parameters
    ----------
    make : callable
        Function that makes the map of rows, ``(values, mask) -> values``.
    *args : objects
        Arguments of ``make``, which are kept until the map is made.
    """

    def __init__(self, make: Callable, *args: object):
        self._state: Any = make, args

    @property
    def made(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The map, which is computed at the first access."""
        state = self._state
        if isinstance(state, tuple):
            make, args = state
            state = self._state = make(*args)
        return state

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        return self.made(values, mask)

    def __reduce__(self) -> tuple:
        return _itself, (self.made,)


def _itself(row_map: Callable) -> Callable:
    return row_map


@dataclass(frozen=True)
class FoldIn:
    r"""Regularized least squares of a row's observed cells on a row space.

    A row is ``x = mean + F u``. The columns of ``F = V S / sqrt(m)`` are the right
    singular vectors of the centered completion (at most 100), each times the standard
    deviation of its scores, and

    .. math::

        u = \arg\min_u \|P(x - \text{mean} - F u)\|^2 + \text{noise}\, \|u\|^2

    This is the conditional mean of a Gaussian whose covariance is that of the completed
    rows. Everything is in double precision, for each row by itself.

    Parameters
    ----------
    mean : Tensor of shape (n_cols,)
        Mean of the completed rows.
    loadings : Tensor of shape (n_cols, rank)
        Right singular vectors, times the standard deviations along them.
    noise : float
        Variance of an observed cell around the completion.
    """

    mean: Tensor  # (n_cols,)
    loadings: Tensor  # (n_cols, rank)
    noise: float

    @classmethod
    def later(
        cls,
        completion: Tensor,  # (m, n)
        data: Observed,
    ) -> Deferred:
        """Defer `of`, with copies of its input on the CPU."""
        head = slice(2 * ROWS_JUDGED)
        read = completion.detach(), data.values[head], data.mask[head]
        return Deferred(cls.of, *(part.to("cpu", copy=True) for part in read))

    @classmethod
    def of(
        cls,
        completion: Tensor,  # (m, n)
        values: Tensor,  # (at least 200 or m, n)
        mask: Tensor,  # (at least 200 or m, n)
    ) -> FoldIn:
        """Make it from a completion ``(m, n)`` and its observed cells.

        ``noise`` is the most likely one of powers of ten times the variance of the
        cells: with a quarter of their observed cells hidden, rows of one half of the
        matrix are completed from the row space of the other half.
        """
        X, values = completion.double(), values.double()
        # There may be few first new rows, whereas the fitted matrix is large.
        with threads_for(work_of(X.numel(), min(X.shape))):
            fold_in = cls._row_space(X)._above_rounding(values, mask)
            if len(X) < 4 or not fold_in.loadings.any():
                variance = fold_in.loadings.square().sum() / X.shape[1]
                return replace(fold_in, noise=1e-4 * float(variance))
            noises = fold_in._noises(values, mask)
            surprise = torch.zeros(len(noises), dtype=X.dtype)
            half = _halves(values, mask).to(X.device)
            rest = torch.arange(len(half), len(X), device=X.device) % 2
            side = torch.cat([half, rest])
            for part in (0, 1):
                space = cls._row_space(X[side == 1 - part])
                judged = (half == part).nonzero()[:ROWS_JUDGED, 0]
                rows, seen = values[judged], mask[judged]
                i, j = (torch.arange(size) for size in seen.shape)
                hidden = seen & ((i[:, None] + j) % 4 == 0)
                surprise += space._surprise(rows, seen & ~hidden, hidden, noises)
            return replace(fold_in, noise=noises[surprise.argmin()])

    @classmethod
    def with_noise(
        cls,
        completion: Tensor,  # (m, n)
        noise: float,
    ) -> FoldIn:
        """Make it from a completion ``(m, n)`` and a known noise."""
        space = cls._row_space(completion.double())
        return replace(space, noise=noise)

    @classmethod
    def noise_of(
        cls,
        completion: Tensor,  # (m, n)
        values: Tensor,  # (m, n)
        seen: Tensor,  # (m, n)
        hidden: Tensor,  # (m, n)
    ) -> float:
        """Find the noise under which held-out cells are most likely.

        The likelihood of a cell takes into account how well the cells of its row
        determine it. A squared error would prefer a noise that is far too small where
        the few held-out cells happen to be in well-determined rows.
        """
        with threads_for(work_of(completion.numel(), min(completion.shape))):
            rows = hidden.any(1).nonzero()[: 2 * ROWS_JUDGED, 0]
            values, seen, hidden = (x[rows].double() for x in (values, seen, hidden))
            space = cls._row_space(completion.double())
            space = space._above_rounding(values, seen + hidden)
            noises = space._noises(values, seen + hidden)
            return noises[space._surprise(values, seen, hidden, noises).argmin()]

    def _above_rounding(self, values: Tensor, mask: Tensor) -> FoldIn:
        """Without loadings if they are rounding errors of a constant."""
        least = ROUNDING * self._level(values, mask)
        if float(self.loadings.square().mean()) > least:
            return self
        return replace(self, loadings=torch.zeros_like(self.loadings[:, :1]))

    def _level(self, values: Tensor, mask: Tensor) -> float:
        """Mean square of the observed cells around the mean row."""
        off = torch.where(mask > 0, values - self.mean, 0.0)
        return float((mask * off.square()).sum() / mask.sum().clamp_min(1e-300))

    def _noises(self, values: Tensor, mask: Tensor) -> list[float]:
        level = self._level(values, mask) or 1.0
        return [float(factor * level) for factor in CHOSEN_FROM]

    def _surprise(
        self, values: Tensor, seen: Tensor, hidden: Tensor, noises: Sequence[float]
    ) -> Tensor:
        """Negative log-likelihoods of hidden cells, given the seen ones of their rows.

        There is one for each noise, all positive; constants are left out.
        """
        F = self.loadings
        sums = torch.zeros(len(noises), dtype=F.dtype)
        size = max(1, BLOCK // (F.numel() + 1))
        for rows, known, asked in zip(
            *(part.split(size) for part in (values, seen, hidden)), strict=True
        ):
            R = self._triangles(rows, known.double().sqrt(), 1.0)
            place = asked > 0
            for k, noise in enumerate(noises):
                triangle = _with_ridge(R, noise)
                left, right = triangle[..., :-1], triangle[..., -1:]
                u = torch.linalg.solve_triangular(left, right, upper=True)[..., 0]
                loadings = F.mT.expand(len(rows), *F.mT.shape)
                half = torch.linalg.solve_triangular(left.mT, loadings, upper=False)
                variance = noise * (1 / asked + half.square().sum(1))
                off = self.mean + u @ F.mT - rows
                surprise = off.square() / variance + variance.log()
                sums[k] += surprise[place].sum()
        return sums

    @classmethod
    def _row_space(cls, X: Tensor) -> FoldIn:
        mean = X.mean(0)
        centered = X - mean
        unit = centered.abs().max().clamp_min(1e-300)
        centered = centered / unit
        tall = len(X) > X.shape[1]
        gram = centered.mT @ centered if tall else centered @ centered.mT
        energy, basis = torch.linalg.eigh(gram)
        # A Gram matrix would lose half of the digits to rounding.
        keep = energy > 1e-15 * len(gram) * energy[-1].clamp_min(1e-300)
        energy, basis = energy[keep][-MAX_RANK:], basis[:, keep][:, -MAX_RANK:]
        loadings = basis * energy.sqrt() if tall else centered.mT @ basis
        return cls(mean, loadings * (unit / len(X) ** 0.5), 0.0)

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``; only cells under ``mask`` are read."""
        return self._completed(values, mask, [self.noise])[0]

    def _completed(
        self, values: Tensor, mask: Tensor, noises: Sequence[float]
    ) -> list[Tensor]:
        """Complete rows with several noise levels, all zero or all positive."""
        F = self.loadings
        if not F.any():  # there may be none, or only zeros after an underflow
            return [self.mean.expand_as(values).clone()] * len(noises)
        # Without noise only ratios matter, and squares must not underflow.
        unit = (0.0 if noises[0] else float(F.abs().max())) or 1.0
        # The lower bound keeps rows with fewer cells than loadings solvable.
        floor = 1e-12 * float((F / unit).square().sum(0).max())
        blocks = []
        for rows, seen in zip(
            *(t.split(max(1, BLOCK // F.numel())) for t in (values, mask)), strict=True
        ):
            R = self._triangles(rows, seen, unit)
            scores = [_ridge(R, max(noise, floor)) for noise in noises]
            blocks.append([self.mean + u @ F.mT for u in scores])
        return [torch.cat(parts) for parts in zip(*blocks, strict=True)]

    def _triangles(self, values: Tensor, mask: Tensor, unit: float) -> Tensor:
        """Triangles of the systems of rows, (k, at most rank + 1, rank + 1).

        ``mask`` may be square roots of weights.
        """
        F = self.loadings / unit
        shifted = torch.where(mask > 0, values.to(F.dtype) - self.mean, 0.0) / unit
        both = torch.cat([F.expand(len(values), *F.shape), shifted[..., None]], -1)
        return torch.linalg.qr(both * mask[..., None], mode="r").R


def _ridge(R: Tensor, noise: float) -> Tensor:
    """Solve ``argmin |b - A u|^2 + noise |u|^2`` by the triangles ``R`` of ``[A b]``.

    Normal equations would square the condition number. The solutions would then show
    that the rounding of products depends on the number of rows.
    """
    triangle = _with_ridge(R, noise)
    left, right = triangle[..., :-1], triangle[..., -1:]
    return torch.linalg.solve_triangular(left, right, upper=True)[..., 0]


def _with_ridge(R: Tensor, noise: float) -> Tensor:
    """Triangles of ``[A b]`` with rows of ``noise ** 0.5`` times the identity."""
    rank = R.shape[-1] - 1
    ridge = noise**0.5 * torch.eye(rank, rank + 1, dtype=R.dtype)
    stacked = torch.cat([R, ridge.expand(len(R), -1, -1)], 1)
    return torch.linalg.qr(stacked, mode="r").R[:, :rank]


def _halves(values: Tensor, mask: Tensor) -> Tensor:
    """Halves of the rows, with copies of a row in the same one."""
    cells = torch.where(mask, values, torch.nan)[: 2 * ROWS_JUDGED]
    group = np.unique(copies(cells.cpu().numpy()), return_inverse=True)[1]
    if not group.any():  # all rows are copies
        group = np.arange(len(group))
    return torch.from_numpy(group % 2)
