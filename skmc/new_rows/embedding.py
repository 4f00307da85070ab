"""Completing new rows by the embedding that fits what is seen of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from skmc.cells import Observed

BLOCK = 2**22  # numbers held at once
STEPS = 30


class Decoder(Protocol):
    """A module that makes rows of embeddings."""

    @property
    def n_held(self) -> int:
        """Numbers that `decode` holds of a row."""

    def decode(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (k, n_cols) of ``u (k, rank)``, and their slopes (k, n_cols, rank).

        Parameters
        ----------
        u : Tensor of shape (k, rank)
            Embeddings.

        Returns
        -------
        tuple of Tensor
        """

    def double(self) -> Decoder:
        """Go over to double precision, in place.

        Returns
        -------
        Decoder
        """

    def cpu(self) -> Decoder:
        """Move to the CPU, in place.

        Returns
        -------
        Decoder
        """


@dataclass(frozen=True)
class EmbeddedRows:
    r"""Rows ``x = g(u)``, whose ``u`` is fitted to the observed cells.

    ::

        u = argmin |P(x - g(u))|^2 + noise (u - mean)' C^-1 (u - mean),

    with mean and covariance ``C`` of the fitted rows' embeddings and ``noise`` their
    mean squared misfit for every cell beyond the number of parameters: damped
    Gauss-Newton steps, each row on its own. They start at the answer for the linear map
    that is nearest to ``g`` over the fitted rows: from the mean, a third of the rows
    of a linked matrix ended in local minima. In double precision.

    Parameters
    ----------
    decoder : Decoder
        From embeddings to rows.
    mean : Tensor of shape (rank,)
        Of the embeddings of the fitted rows.
    root : Tensor of shape (rank, rank)
        Of their covariance: ``u = mean + root w``.
    noise : float
        Variance of the rows around ``g(u)``.
    line : tuple of offset (n,), slope (n, rank) and variance
        The regression of the rows on ``w``, from which the fit starts.
    """

    decoder: Decoder
    mean: Tensor  # (rank,)
    root: Tensor  # (rank, rank), u = mean + root w and w of covariance 1
    noise: float
    line: tuple[Tensor, Tensor, float]  # x = offset + slope w: (n,), (n, rank), spread

    @classmethod
    def of(cls, decoder: Decoder, U: Tensor, X: Tensor, data: Observed) -> EmbeddedRows:
        """From embeddings ``U (m, rank)`` and rows ``X (m, n)`` fitted to ``data``.

        Parameters
        ----------
        decoder : Decoder
            From embeddings to rows.
        U : Tensor of shape (m, rank)
            Embeddings.
        X : Tensor of shape (m, n)
            The rows that they make.
        data : Observed
            The observed cells.

        Returns
        -------
        EmbeddedRows
        """
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
        """Complete ``values (k, n)``, of which only cells under ``mask`` are read."""
        size = max(1, BLOCK // self.decoder.n_held)
        pairs = zip(values.split(size), mask.split(size), strict=True)
        return torch.cat([self._complete(*pair) for pair in pairs])

    def _complete(self, values: Tensor, mask: Tensor) -> Tensor:
        seen = mask.double()
        offset, slope, spread = self.line
        w = torch.zeros(len(values), len(self.mean), dtype=slope.dtype)
        w = w + self._step(
            slope.expand(len(w), -1, -1), values - offset, seen, w, spread
        )
        X, J = self._decode(w)
        loss = self._loss(values - X, seen, w)
        damping = torch.ones_like(loss)
        for _ in range(STEPS):
            ahead = w + self._step(J, values - X, seen, w, self.noise, damping)
            X_ahead, J_ahead = self._decode(ahead)
            loss_ahead = self._loss(values - X_ahead, seen, ahead)
            better = loss_ahead < loss
            damping = torch.where(better, damping / 5, damping * 4)
            loss = torch.where(better, loss_ahead, loss)
            w = torch.where(better[:, None], ahead, w)
            X = torch.where(better[:, None], X_ahead, X)
            J = torch.where(better[:, None, None], J_ahead, J)
        return X

    def _decode(self, w: Tensor) -> tuple[Tensor, Tensor]:
        X, J = self.decoder.decode(self.mean + w @ self.root.mT)
        return X, J @ self.root

    def _loss(self, misfit: Tensor, seen: Tensor, w: Tensor) -> Tensor:
        prior = self.noise * w.square().sum(1)
        return (misfit * seen).square().sum(1) + prior

    @staticmethod
    def _step(
        J: Tensor,  # (k, n_cols, rank)
        misfit: Tensor,
        seen: Tensor,
        w: Tensor,
        noise: float,
        damping: Tensor | None = None,
    ) -> Tensor:
        J = J * seen[..., None]
        system = J.mT @ J + noise * torch.eye(J.shape[-1], dtype=J.dtype)
        if damping is not None:
            diagonal = system.diagonal(dim1=-2, dim2=-1)
            system = system + torch.diag_embed(damping[:, None] * diagonal)
        downhill = (J.mT @ misfit[..., None])[..., 0] - noise * w
        return torch.linalg.solve(system, downhill[..., None])[..., 0]
