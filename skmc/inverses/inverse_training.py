"""Training of the coefficients of `LDMinv`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.inverses.unrolled import norm_bound
from skmc.linalg import GaussNewton, NormalEquations

MARGIN = 0.1  # relative margin around the training values of t
MAX_VALUES = 4096  # largest number of values of t
RIDGE = 1e-8  # keeps coefficients below some thousands, for single precision
ROUNDING = 1e-28  # share of the squares below which errors are rounding
TRIALS = 20  # successive rejected steps that end the training
TOL = 1e-3  # gain of the sum of logarithms below which training ends


@dataclass(frozen=True, eq=False)
class Spectra:
    """Singular values of matrices ``s`` and ``t = s^2 / c0``, both ``(n, rank)``.

    Parameters
    ----------
    s : Tensor of shape (n, rank)
        Singular values.
    t : Tensor of shape (n, rank)
        Squares of the singular values, divided by ``c0``.
    """

    s: Tensor
    t: Tensor

    @classmethod
    def of(
        cls,
        A: Tensor,  # (*batch, m, n)
    ) -> Spectra:
        """Compute the spectra of a batch of matrices."""
        A = A.reshape(-1, *A.shape[-2:]).double()
        if A.shape[-2] > A.shape[-1]:
            A = A.mT
        unit = A.abs().amax().clamp_min(torch.finfo(A.dtype).tiny)
        s = torch.linalg.svdvals(A / unit)
        c0 = norm_bound((A / unit) @ (A / unit).mT)
        return cls(s * unit, s**2 / c0[:, None])

    def widened(self) -> Spectra:
        """Add a margin around the values, in one row of bounded size."""
        t = torch.cat([self.t.flatten() * (1 + m) for m in (-MARGIN, 0.0, MARGIN)])
        t, order = t.sort()
        s = self.s.flatten().repeat(3)[order]
        if len(t) > MAX_VALUES:
            thin = torch.linspace(0, len(t) - 1, MAX_VALUES, device=t.device)
            thin = thin.round().long()
            s, t = s[thin], t[thin]
        return Spectra(s[None], t[None])

    def errors(
        self,
        coefficients: Tensor,  # (depth, order)
    ) -> Tensor:  # (depth,)
        """``|A X_k A - A|_F^2``, mean over matrices, ``(depth,)``."""
        t, errors = self.t, []
        for layer in coefficients:
            E = 1 - t
            p = layer[-1]
            for c in layer[:-1].flip(0):
                p = p * E + c
            t = t * p
            errors.append((self.s * (1 - t)).square().sum(-1).mean())
        return torch.stack(errors)

    def loss(
        self,
        coefficients: Tensor,  # (depth, order)
        batch_size: int,
        generator: torch.Generator,
    ) -> Tensor:  # ()
        """Half the mean of the errors of all layers, over a random batch."""
        batch, n = self, len(self.s)
        if n > batch_size:
            chosen = torch.randperm(n, generator=generator)[:batch_size]
            chosen = chosen.to(self.s.device)
            batch = Spectra(self.s[chosen], self.t[chosen])
        return batch.errors(coefficients).mean() / 2

    def normal_equations(
        self,
        coefficients: Tensor,  # (depth, order)
    ) -> tuple[Tensor, Tensor]:
        """Compute ``sum_k J_k' J_k / |r_k|^2`` and ``sum_k J_k' r_k / |r_k|^2``.

        Here ``r_k = s (1 - t_k)``, with derivatives ``-J_k`` by all coefficients.
        """
        depth, order = coefficients.shape
        s, t = self.s.flatten(), self.t.flatten()
        J = t.new_zeros(len(t), depth, order)
        left, right = t.new_zeros(depth * order, depth * order), t.new_zeros(1)
        count = torch.arange(1.0, order, dtype=t.dtype, device=t.device)
        floor = ROUNDING * s.square().sum()
        for k, layer in enumerate(coefficients):
            powers = (1 - t)[:, None] ** torch.arange(order, device=t.device)
            p = powers @ layer
            slope = powers[:, :-1] @ (layer[1:] * count)
            J = J * (p - t * slope)[:, None, None]
            J[:, k] = t[:, None] * powers
            t = t * p
            r = s * (1 - t)
            scaled = (J * s[:, None, None]).flatten(1)
            weight = r.square().sum() + floor
            left = left + scaled.mT @ scaled / weight
            right = right + scaled.mT @ r / weight
        return left, right


def fit_gauss_newton(
    start: Tensor,  # (depth, order)
    spectra: Spectra,
    max_iter: int,
) -> tuple[Tensor, list[float]]:
    """Minimize the sum of logarithms by damped Gauss-Newton steps."""
    spectra = spectra.widened()
    floor = ROUNDING * spectra.s.square().sum()

    def objective(C: Tensor) -> Tensor:
        logs = (spectra.errors(C) + floor).log().sum()
        return (logs + RIDGE * (C - 1).square().sum()) / 2

    def equations_at(x: Tensor) -> NormalEquations:
        C = x.view_as(start)
        gram, right = spectra.normal_equations(C)
        gram = gram + RIDGE * torch.eye(C.numel(), dtype=C.dtype, device=C.device)
        right = right - RIDGE * (C - 1).flatten()
        return NormalEquations(objective(C)[None], gram[None], right[None])

    x = start.flatten()[None]
    history = [float(objective(start))]
    if not floor > 0:  # matrices of zeros
        return start, history
    fit = GaussNewton.start(x, equations_at(x), damping=1e-2)
    while len(history) <= max_iter:
        fit = fit.step(equations_at)
        if fit.rejected == TRIALS:
            break
        if fit.rejected == 0:
            history.append(float(fit.equations.loss))
            if history[-2] - history[-1] < TOL:
                break
    return fit.x.view_as(start), history


def descend(
    parameter: Tensor,
    loss_at: Callable[[], Tensor],
    history: list[float],
    max_iter: int,
    lr: float,
    *,
    halved_every: float = math.inf,
    otherwise: str = "",
    callback: Callable[[int, float], None] | None = None,
) -> None:
    """Minimize a loss by gradient descent, in place.

    If it diverges, a warning is raised in the name of the caller's caller, and the best
    values are kept.
    """
    best, lowest, value = parameter.detach().clone(), math.inf, 0.0
    for step in range(max_iter):
        with torch.enable_grad():
            loss = loss_at()
        value = float(loss.detach())
        history.append(value)
        if value < lowest:
            best, lowest = parameter.detach().clone(), value
        if not math.isfinite(value):
            warnings.warn(
                f"Training diverged at step {step}; the best values so far are kept. "
                f"Lower lr={lr:g}{otherwise}.",
                RuntimeWarning,
                stacklevel=3,
            )
            break
        (gradient,) = torch.autograd.grad(loss, parameter)
        with torch.no_grad():
            parameter.sub_(lr * 0.5 ** (step // halved_every) * gradient)
        if callback is not None:
            callback(step, value)
    if not (math.isfinite(value) and parameter.isfinite().all()):
        with torch.no_grad():
            parameter.copy_(best)
