"""Completing rows that were not there when the matrix was completed."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from skmc.models.link import LinkedFactorization
from skmc.observed import Observed

MAX_RANK = 100
CHOSEN_FROM = 10.0 ** torch.arange(-8, 1)
ROWS_JUDGED = 100
BLOCK = 2**22  # numbers held at once


@dataclass(frozen=True)
class FoldIn:
    r"""Regularised least squares of a row's observed cells on a row space.

    A row is ``x = mean + F u``, where ``F = V S / sqrt(m)`` holds the right singular
    vectors of the centred completion (at most 100), each times the standard deviation
    of its scores, and ::

        u = argmin |P(x - mean - F u)|^2 + noise |u|^2,

    the conditional mean of a Gaussian whose covariance is that of the completed rows.
    Everything is in double precision, each row on its own.
    """

    mean: Tensor  # (n_cols,)
    loadings: Tensor  # (n_cols, rank)
    noise: float

    @classmethod
    def of(cls, completion: Tensor, data: Observed) -> FoldIn:
        """From a completion ``(m, n)`` and the cells that it was made from.

        ``noise`` is chosen among nine powers of ten of the mean variance: rows of one
        half of the matrix, with a quarter of their observed cells hidden, are
        completed from the other half's row space.
        """
        X = completion.detach().double().cpu()
        values, mask = data.values.double().cpu(), data.mask.cpu()
        whole = cls._row_space(X)
        variance = whole.loadings.square().sum() / X.shape[1]
        if variance <= 0 or len(X) < 4:
            return replace(whole, noise=1e-4 * float(variance))
        errors = torch.zeros(len(CHOSEN_FROM), dtype=X.dtype)
        for part in (0, 1):
            space = cls._row_space(X[1 - part :: 2])
            rows, seen = values[part::2][:ROWS_JUDGED], mask[part::2][:ROWS_JUDGED]
            i, j = (torch.arange(size) for size in seen.shape)
            hidden = seen & ((i[:, None] + j) % 4 == 0)
            for k, factor in enumerate(CHOSEN_FROM):
                guess = replace(space, noise=float(factor * variance))(
                    rows, seen & ~hidden
                )
                errors[k] += ((guess - rows)[hidden] ** 2).sum()
        factor = CHOSEN_FROM[errors.argmin()]
        return replace(whole, noise=float(factor * variance))

    @classmethod
    def _row_space(cls, X: Tensor) -> FoldIn:
        mean = X.mean(0)
        centred = X - mean
        unit = centred.abs().max().clamp_min(1e-300)
        centred = centred / unit
        tall = len(X) > X.shape[1]
        gram = centred.mT @ centred if tall else centred @ centred.mT
        energy, basis = torch.linalg.eigh(gram)
        # Half of the digits of a Gram matrix are lost to rounding.
        keep = energy > 1e-15 * len(gram) * energy[-1].clamp_min(1e-300)
        energy, basis = energy[keep][-MAX_RANK:], basis[:, keep][:, -MAX_RANK:]
        loadings = basis * energy.sqrt() if tall else centred.mT @ basis
        return cls(mean, loadings * (unit / len(X) ** 0.5), 0.0)

    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``, of which only cells under ``mask`` are read."""
        F, rank = self.loadings, self.loadings.shape[1]
        if rank == 0:
            return self.mean.expand_as(values).clone()
        zero = values.new_zeros((), dtype=F.dtype)
        shifted = torch.where(mask, values.to(F.dtype) - self.mean, zero)
        # The floor keeps rows with fewer cells than loadings solvable.
        noise = max(self.noise, 1e-12 * float(F.square().sum(0).max()))
        damping = noise * torch.eye(rank, dtype=F.dtype)
        blocks = []
        for rows, seen in zip(
            *(t.split(max(1, BLOCK // F.numel())) for t in (shifted, mask)), strict=True
        ):
            system = torch.einsum("nr,kn,ns->krs", F, seen.to(F.dtype), F) + damping
            scores = torch.linalg.solve(system, (rows @ F)[..., None])[..., 0]
            blocks.append(self.mean + scores @ F.mT)
        return torch.cat(blocks)


class ForwardPass:
    """A network's answer to rows whose missing cells are zero, in double precision."""

    def __init__(self, network: nn.Module):
        self.network = copy.deepcopy(network).cpu().double()

    @torch.no_grad()
    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``, zero where ``mask`` is False."""
        parts = values.split(max(1, BLOCK // values.shape[1]))
        return torch.cat([self.network(rows) for rows in parts])


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
