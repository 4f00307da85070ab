"""Completion of new rows by a network that maps rows to rows."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from skmc.linalg import CosineSchedule

BLOCK = 2**22  # largest number of elements in memory


class ForwardPass:
    """The output of a network for zero-filled rows, in double precision.

    Parameters
    ----------
    network : nn.Module
        Network that maps rows to rows.
    """

    def __init__(self, network: nn.Module):
        self.network = copy.deepcopy(network).cpu().double().requires_grad_(False)
        # The sizes of the parameters give the widths.
        self.widest = max(max(p.shape) for p in network.parameters())

    @torch.no_grad()
    def __call__(self, values: Tensor, mask: Tensor) -> Tensor:
        """Complete ``values (k, n)``, zero where ``mask`` is False."""
        size = max(1, BLOCK // self.widest)
        batches = zip(values.split(size), mask.split(size), strict=True)
        return torch.cat([self._complete(rows, seen) for rows, seen in batches])

    def _complete(self, rows: Tensor, seen: Tensor) -> Tensor:
        return self.network(rows)


class LearnedInputs(ForwardPass):
    r"""The output of a network for rows whose missing inputs are fitted.

    With the weights fixed, the missing inputs :math:`z` of a row minimize

    .. math::

        \tfrac12 \|P(f(\tilde x) - x)\|^2 + \tfrac1{20} \|z - z_0\|^2

    where :math:`\tilde x` holds the observed cells and :math:`z` elsewhere, and
    :math:`z_0` is the network's output for zeros. This takes 100 steps of Adam, for
    each row by itself, and the result is :math:`f(\tilde x)`. The method suits networks
    that are trained with learned missing inputs and never with zeros. Without
    :math:`z_0` the rows of small tables are overfitted. Feeding outputs back as inputs
    does not help where many cells are missing.

    Parameters
    ----------
    network : nn.Module
        Network that maps rows to rows.
    """

    steps, lr, weight = 100, 0.1, 0.1

    def _complete(self, rows: Tensor, seen: Tensor) -> Tensor:
        start = torch.where(seen, rows, self.network(rows))
        inputs = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([inputs], lr=self.lr, fused=True)
        seen = seen.to(rows.dtype)
        schedule = CosineSchedule(self.lr, 0.0, self.steps)
        for step in range(self.steps):
            optimizer.param_groups[0]["lr"] = schedule(step)
            with torch.enable_grad():
                answer = self.network(inputs)
            (grad,) = torch.autograd.grad(
                answer, inputs, (answer.detach() - rows).mul_(seen)
            )
            grad.add_(inputs.detach() - start, alpha=self.weight).mul_(1 - seen)
            inputs.grad = grad
            optimizer.step()
        return self.network(inputs.detach())
