"""What every term of an objective can do."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def per_member(weight: Tensor, X: Tensor) -> Tensor:
    """Align a weight of shape ``(*batch,)`` or ``()`` with ``(*batch, rows, cols)``."""
    return weight.to(X)[..., None, None]


def inner(A: Tensor, B: Tensor) -> Tensor:
    """``<A, B>`` of each member: ``(*batch, rows, cols)`` twice -> ``(*batch,)``."""
    return torch.linalg.vecdot(A.flatten(-2), B.flatten(-2))


class Term(nn.Module):
    """A scalar function of the completion: ``X (*batch, m, n) -> (*batch,)``.

    A subclass defines ``forward``. It may add a closed-form ``value_and_grad`` (equal
    to the one here, which differentiates ``forward``), a ``prox``, and parameters of
    its own, which are learned together with the model: one step for each ``every``
    evaluations, ``every`` times as long.
    """

    every: int = 1

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``F(X)`` and ``dF/dX``; adds to the ``.grad`` of the term's parameters."""
        with torch.enable_grad():
            X = X.detach().requires_grad_()
            value = self(X)
            # Members do not interact, so one backward pass serves them all.
            value.sum().backward()
        return value.detach(), X.grad if X.grad is not None else torch.zeros_like(X)

    def prox(self, V: Tensor, step: float) -> Tensor:
        """``argmin_X step F(X) + 1/2 |X - V|^2``."""
        raise NotImplementedError(
            f"{type(self).__name__} has no closed-form proximal operator."
        )

    def outputs(self) -> dict[str, Tensor]:
        """What the term learned and a fitted estimator should keep, by name."""
        return {}
