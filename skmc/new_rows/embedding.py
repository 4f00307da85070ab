"""Completion of new rows by embeddings fitted to their observed cells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import GaussNewton, NormalEquations, newton

BLOCK = 2**22  # largest number of elements in memory
MAX_STEPS = 100
SLOW = 30  # steps after which second derivatives pay off
TRIALS = 20  # successive rejections, after which rounding errors prevail
TOL = 1e-14  # relative length of a step after which a row has converged


class Decoder(Protocol):
    """A module that maps embeddings to rows."""

    @property
    def n_held(self) -> int:
        """Number of elements that `decode` holds in memory for each row."""

    def decode(
        self,
        u: Tensor,  # (k, rank)
    ) -> tuple[Tensor, Tensor]:
        """Rows (k, n_cols) of ``u (k, rank)``, and derivatives (k, n_cols, rank)."""

    def double(self) -> Decoder:
        """Convert to double precision, in place."""

    def cpu(self) -> Decoder:
        """Move to the CPU, in place."""


@dataclass(frozen=True)
class EmbeddedRows:
    r"""Rows ``x = g(u)`` whose embeddings ``u`` are fitted to the observed cells.

    .. math::

        u = \arg\min_u \|P(x - g(u))\|^2 + \nu\,(u - \mu)^\top C^{-1} (u - \mu)

    where :math:`\mu` and :math:`C` are the mean and the covariance of the fitted
    rows' embeddings. The noise :math:`\nu` is the misfit of the fitted rows divided by
    the number of observed cells minus the number of parameters. Each row is solved by
    itself, by damped Gauss-Newton steps in double precision, until only rounding errors
    remain. So the result for a row does not depend on the other rows of the call.

    The steps start at the solution for the linear map nearest to ``g`` over the fitted
    rows. When started from the mean, a third of the rows of a linked matrix ended in
    local minima.

    Parameters
    ----------
    decoder : Decoder
        Decoder that maps embeddings to rows.
    mean : Tensor of shape (rank,)
        Mean embedding of the fitted rows.
    root : Tensor of shape (rank, rank)
        Square root of their covariance: ``u = mean + root w``.
    noise : float
        Variance of the rows around ``g(u)``.
    line : tuple of offset (n,), slope (n, rank) and variance
        Regression of the rows on ``w``, from which the steps start.
    """

    decoder: Decoder
    mean: Tensor  # (rank,)
    root: Tensor  # (rank, rank), u = mean + root w, and w has covariance 1
    noise: float
    line: tuple[Tensor, Tensor, float]  # x = offset + slope w: (n,), (n, rank), spread

    @classmethod
    def of(
        cls,
        decoder: Decoder,
        U: Tensor,  # (m, rank)
        X: Tensor,  # (m, n)
        data: Observed,
    ) -> EmbeddedRows:
        """Make it from embeddings ``U (m, rank)`` and rows ``X (m, n)`` of a fit."""
        noise = data.misfit(X) / data.n_observed
        free = data.n_observed - U.shape[1] * sum(data.shape)
        noise = noise * data.n_observed / torch.maximum(free, data.n_observed / 10)
        noise = torch.maximum(noise, 1e-8 * data.energy / data.n_observed)
        U, X = U.double().cpu(), X.double().cpu()
        mean, offset = U.mean(0), X.mean(0)
        variance, basis = torch.linalg.eigh((U - mean).mT @ (U - mean) / len(U))
        floor = 1e-12 * variance[-1].clamp_min(1e-300)
        deviations = variance.clamp_min(floor).sqrt()
        W = (U - mean) @ basis / deviations
        slope = (X - offset).mT @ W / len(W)
        spread = (X - offset - W @ slope.mT).square().mean()
        level = max(float(noise), 1e-300)
        line = offset, slope, max(float(spread), level)
        decoder = copy.deepcopy(decoder).cpu().double()
        return cls(decoder, mean, basis * deviations, level, line)

    @torch.no_grad()
    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``; only cells under ``mask`` are read."""
        size = max(1, BLOCK // self.decoder.n_held)
        pairs = zip(values.split(size), mask.split(size), strict=True)
        return torch.cat([self._complete(*pair) for pair in pairs])

    def _complete(self, values: Tensor, mask: Tensor) -> Tensor:
        seen = mask.double()
        offset, slope, spread = self.line
        w = values.new_zeros((len(values), len(self.mean)), dtype=slope.dtype)
        slopes = slope.expand(len(w), -1, -1)
        w = w + _equations(slopes, values - offset, seen, w, spread).solve()
        embedding = w.clone()
        rows = torch.arange(len(w))

        def gauss(w: Tensor) -> NormalEquations:
            X, J = self._decode(w)
            return _equations(J, values[rows] - X, seen[rows], w, self.noise)

        equations_at: Callable[[Tensor], NormalEquations] = gauss
        fit = GaussNewton.start(w, equations_at(w), damping=1.0)
        for count in range(MAX_STEPS):
            if count == SLOW:
                equations_at = newton(equations_at)
                fit = GaussNewton.start(fit.x, equations_at(fit.x), damping=1e-2)
            fit = fit.step(equations_at)
            embedding[rows] = fit.x
            small = fit.length <= TOL * fit.x.abs().amax(1).clamp_min(1e-3)
            ended = (small & (fit.rejected == 0)) | (fit.rejected >= TRIALS)
            if ended.all():
                break
            rows, fit = rows[~ended], fit.select(~ended)
        return self._decode(embedding)[0]

    def _decode(self, w: Tensor) -> tuple[Tensor, Tensor]:
        X, J = self.decoder.decode(self.mean + w @ self.root.mT)
        return X, J @ self.root


def _equations(
    J: Tensor, misfit: Tensor, seen: Tensor, w: Tensor, noise: float
) -> NormalEquations:
    """Equations of ``1/2 |P(misfit)|^2 + noise/2 |w|^2``; ``-J`` is the derivative."""
    J, misfit = J * seen[..., None], misfit * seen  # (k, n_cols, rank), (k, n_cols)
    return NormalEquations(
        loss=(misfit.square().sum(1) + noise * w.square().sum(1)) / 2,
        gram=J.mT @ J + noise * torch.eye(J.shape[-1], dtype=J.dtype),
        downhill=(J.mT @ misfit[..., None])[..., 0] - noise * w,
    )
