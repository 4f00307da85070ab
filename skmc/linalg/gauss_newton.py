"""Damped Gauss-Newton steps, for many small least-squares problems at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg.parts import Parts

ROUNDING = 64  # roundoff units; losses that differ by less are equal
DIFFERENCE = 1e-5  # half the step of the central differences
FLAT = 1e-12  # share of the largest curvature below which a direction is flat


@dataclass(frozen=True, eq=False)
class NormalEquations(Parts):
    """Loss and normal equations of ``k`` problems in ``p`` unknowns.

    Parameters
    ----------
    loss : Tensor of shape (k,)
        Function to minimize, for example half a sum of squares ``|r|^2``.
    gram : Tensor of shape (k, p, p)
        Approximation of the second derivatives: ``J' J`` for ``J = dr/dx``.
    downhill : Tensor of shape (k, p)
        Negative gradient: ``-J' r``.
    """

    loss: Tensor
    gram: Tensor
    downhill: Tensor

    @property
    def diagonal(self) -> Tensor:
        """Diagonal of ``gram``, of shape (k, p)."""
        return self.gram.diagonal(dim1=-2, dim2=-1)

    @property
    def steepness(self) -> Tensor:
        """Squared gradient in units of each unknown's curvature, of shape (k,)."""
        return (self.downhill.square() / self.diagonal).sum(-1)

    def solve(
        self,
        damping: Tensor | float = 0.0,  # (k,)
    ) -> Tensor:  # (k, p)
        """``(gram + damping diag(gram))^-1 downhill``."""
        damping = torch.as_tensor(damping, dtype=self.loss.dtype)[..., None]
        system = self.gram + torch.diag_embed(damping.to(self.gram) * self.diagonal)
        return torch.linalg.solve(system, self.downhill[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class GaussNewton(Parts):
    """Iterates of the Levenberg-Marquardt method, one for each problem.

    Parameters
    ----------
    x : Tensor of shape (k, p)
        Unknowns.
    equations : NormalEquations
        Equations at ``x``.
    damping : Tensor of shape (k,)
        Damping of the next step: four times as much after a rejected step, a fifth
        after an accepted one.
    rejected : Tensor of shape (k,)
        Rejected steps since the last accepted one.
    length : Tensor of shape (k,)
        Largest change of an unknown by the last step, accepted or not.
    """

    x: Tensor
    equations: NormalEquations
    damping: Tensor
    rejected: Tensor
    length: Tensor

    @classmethod
    def start(
        cls,
        x: Tensor,  # (k, p)
        equations: NormalEquations,
        damping: float,
    ) -> GaussNewton:
        """Iterates before the first step."""
        zero = torch.zeros_like(equations.loss)
        return cls(x, equations, zero + damping, zero, zero + torch.inf)

    def step(self, equations_at: Callable[[Tensor], NormalEquations]) -> GaussNewton:
        """Try one step and accept it where the loss falls.

        Where two losses differ only by rounding, the point with the smaller gradient is
        better. So the accuracy of the iterates is that of the gradient. The loss alone
        would determine only half as many digits.
        """
        old, move = self.equations, self.equations.solve(self.damping)
        x = self.x + move
        new = equations_at(x)
        rounding = ROUNDING * torch.finfo(new.loss.dtype).eps * old.loss.abs()
        equal = (new.loss - old.loss).abs() <= rounding
        flatter = new.steepness < old.steepness
        better = torch.where(equal, flatter, new.loss < old.loss)
        length = move.abs().amax(-1)
        zero = torch.zeros_like(self.rejected)
        accepted = GaussNewton(x, new, self.damping / 5, zero, length)
        rejected = GaussNewton(self.x, old, self.damping * 4, self.rejected + 1, length)

        def choose(a: Tensor, b: Tensor) -> Tensor:
            return torch.where(better.view(-1, *[1] * (a.ndim - 1)), a, b)

        return accepted.map(choose, rejected)

    def select(self, problems: Tensor) -> GaussNewton:
        """Keep some of the problems."""
        return self.map(lambda tensor: tensor[problems])


def newton(
    equations_at: Callable[[Tensor], NormalEquations],
) -> Callable[[Tensor], NormalEquations]:
    """Equations with second derivatives of the loss in place of ``J' J``.

    The derivatives are central differences of gradients. Their eigenvalues count by
    absolute value, so that steps lead away from saddle points. This takes ``2 p`` more
    evaluations. It serves the few problems with large residuals, for which
    Gauss-Newton would take hundreds of steps.
    """

    def curved(x: Tensor) -> NormalEquations:
        here, columns = equations_at(x), []
        for shift in DIFFERENCE * torch.eye(x.shape[-1]).to(x):
            slope = equations_at(x - shift).downhill - equations_at(x + shift).downhill
            columns.append(slope / (2 * DIFFERENCE))
        curvature = torch.stack(columns, -1)
        finite = curvature.isfinite().all(-1).all(-1)[:, None, None]
        curvature = torch.where(finite, curvature, here.gram)
        values, basis = torch.linalg.eigh((curvature + curvature.mT) / 2)
        values = values.abs()
        values = torch.maximum(values, FLAT * values.amax(-1, keepdim=True))
        gram = (basis * values[..., None, :]) @ basis.mT
        return NormalEquations(here.loss, gram, here.downhill)

    return curved
