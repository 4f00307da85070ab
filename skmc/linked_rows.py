"""Completing new rows of a low-rank matrix seen through a link."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.models.link import LinkedFactorization
from skmc.observed import Observed

BLOCK = 2**22  # numbers held at once
NEWTON_STEPS = 30


@dataclass(frozen=True)
class LinkedRows:
    r"""Rows ``x = f(V u)``, whose ``u`` is fitted to the observed cells, ::

        u = argmin |P(x - f(V u))|^2 + noise (u - mean)' C^-1 (u - mean),

    with mean and covariance ``C`` of the fitted rows' ``u`` and ``noise`` the mean of
    their squared misfits, by damped Gauss-Newton steps, each row on its own. They start
    at the answer for the line that is nearest to the link, without which a quarter of
    the rows ends in a local minimum. In double precision.
    """

    model: LinkedFactorization  # its V times a square root of C, so that C = I
    mean: Tensor  # (rank,), of u in the units of C
    noise: float
    line: tuple[float, float, float]  # slope, offset, mean squared distance to the link

    @classmethod
    def of(cls, outputs: dict[str, Tensor], data: Observed) -> LinkedRows:
        """From the parameters of a `LinkedFactorization` and its completion ``X``."""
        p = {name: value.detach().double().cpu() for name, value in outputs.items()}
        U = p["U"]
        centred = U - U.mean(0)
        variance, basis = torch.linalg.eigh(centred.mT @ centred / len(U))
        root = basis * variance.clamp_min(1e-12 * variance[-1].clamp_min(1e-300)).sqrt()
        mean = torch.linalg.solve(root, U.mean(0))
        model = LinkedFactorization(
            mean[None], p["V"] @ root, p["heights"], p["steeps"], p["shifts"]
        )
        with torch.no_grad():
            model.slope.copy_(p["slope"])
            model.offset.copy_(p["offset"])
        noise = float(data.misfit(outputs["X"]) / data.n_observed)
        floor = 1e-8 * float(data.energy / data.n_observed)
        noise = max(noise, floor, 1e-300)
        C, X = U @ p["V"].mT, p["X"]
        energy = (C - C.mean()).square().sum().clamp_min(1e-300)
        slope = float(((C - C.mean()) * X).sum() / energy)
        offset = float(X.mean() - slope * C.mean())
        spread = float((X - slope * C - offset).square().mean())
        return cls(model, mean, noise, (slope, offset, max(spread, noise)))

    @torch.no_grad()
    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``, of which only cells under ``mask`` are read."""
        size = max(1, BLOCK // self.model.V.numel())
        pairs = zip(values.split(size), mask.split(size), strict=True)
        return torch.cat([self._complete(*pair) for pair in pairs])

    def _complete(self, values: Tensor, mask: Tensor) -> Tensor:
        V, seen = self.model.V, mask.double()
        eye = torch.eye(V.shape[1], dtype=V.dtype)
        a, b, spread = self.line
        system = a * a * torch.einsum("kn,nr,ns->krs", seen, V, V) + spread * eye
        target = a * ((values - b) * seen) @ V + spread * self.mean
        u = torch.linalg.solve(system, target[..., None])[..., 0]
        X, slope = self.model.link_and_slope(u @ V.mT)
        loss = self._loss(values - X, seen, u)
        damping = torch.ones_like(loss)
        for _ in range(NEWTON_STEPS):
            J = slope * seen
            system = torch.einsum("kn,nr,ns->krs", J * J, V, V) + self.noise * eye
            diagonal = system.diagonal(dim1=-2, dim2=-1)
            system = system + torch.diag_embed(damping[:, None] * diagonal)
            downhill = (J * (values - X)) @ V - self.noise * (u - self.mean)
            ahead = u + torch.linalg.solve(system, downhill[..., None])[..., 0]
            X_ahead, slope_ahead = self.model.link_and_slope(ahead @ V.mT)
            loss_ahead = self._loss(values - X_ahead, seen, ahead)
            better = loss_ahead < loss
            damping = torch.where(better, damping / 5, damping * 4)
            loss = torch.where(better, loss_ahead, loss)
            better = better[:, None]
            u, X = torch.where(better, ahead, u), torch.where(better, X_ahead, X)
            slope = torch.where(better, slope_ahead, slope)
        return X

    def _loss(self, misfit: Tensor, seen: Tensor, u: Tensor) -> Tensor:
        """Twice the objective of each row."""
        prior = self.noise * (u - self.mean).square().sum(1)
        return (misfit * seen).square().sum(1) + prior
