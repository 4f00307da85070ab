"""What `NonsmoothDescent` works with: parameters, forward passes, slack variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import CosineSchedule
from skmc.solvers.solver import State

Layers = Sequence[Tensor]


@dataclass(frozen=True)
class Theta:
    """Weights and biases of a network, as in `Autoencoder`.

    Parameters
    ----------
    weights : Layers
        Of the layers.
    biases : Layers
        Of the layers.
    """

    weights: Layers
    biases: Layers

    @property
    def parts(self) -> list[Tensor]:
        """All tensors, weights first."""
        return [*self.weights, *self.biases]

    def map(self, function: Callable[..., Tensor], *others: Theta) -> Theta:
        """``function`` of each part and those of ``others``.

        Parameters
        ----------
        function : callable
            Of as many tensors.
        *others : Theta
            Of the same sizes.

        Returns
        -------
        Theta
        """
        rest = [other.parts for other in others]
        parts = [function(*these) for these in zip(self.parts, *rest, strict=True)]
        n = len(self.weights)
        return Theta(parts[:n], parts[n:])


@dataclass(frozen=True)
class Forward:
    """What the network makes of the zero-filled rows.

    Parameters
    ----------
    hidden : Layers
        Of the layers, each (n_rows, width).
    output : Tensor of shape (n_rows, n_cols)
        ``f(P(M))``.
    error : Tensor of shape (n_rows, n_cols)
        ``P(f(P(M)) - M)``, times the weights of the cells if they have any.
    loss : float
        ``|P(f(P(M)) - M)|^2 + lambda sum |W|^2``, the first weighted likewise.
    """

    hidden: Layers  # z, each (n_rows, width)
    output: Tensor  # f(P(M)), (n_rows, n_cols)
    error: Tensor  # W P(f(P(M)) - M)
    loss: float


@dataclass(frozen=True)
class Blocks:
    """The slack variables at a ``mu``, and their penalties.

    Parameters
    ----------
    h : Layers
        Each (n_rows, width).
    V : tuple of Tensor
        Each as its ``W``.
    penalty : float
        ``alpha |h|_1 + beta |V|_*``.
    """

    h: Layers  # each (n_rows, width)
    V: Layers  # each as its W
    penalty: float  # alpha |h|_1 + beta |V|_*

    def slack(self, theta: Theta, forward: Forward) -> float:
        """``sum |z - h|^2 + sum |W - V|^2``.

        Parameters
        ----------
        theta : Theta
            The parameters.
        forward : Forward
            What the network makes at them.

        Returns
        -------
        float
        """
        pairs = [
            *zip(forward.hidden, self.h, strict=True),
            *zip(theta.weights, self.V, strict=True),
        ]
        return float(sum((a - b).square().sum() for a, b in pairs))


@dataclass(frozen=True, kw_only=True)
class NonsmoothState(State):
    """An iterate of `NonsmoothDescent`.

    The objective is Q at the schedule's end, so that epochs are comparable; ``Q`` is
    the value at ``mu``.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    theta : Theta
        The parameters.
    before : Theta
        Those of the epoch before.
    forward : Forward
        What the network makes at them.
    blocks : Blocks
        The slack variables.
    schedule : CosineSchedule
        Of ``mu``.
    mu : float
        Width of the smoothing.
    Q : float
        The objective at ``mu``.
    delta : float
        Bounds ``omega``; smaller after Q rose, larger after it fell.
    omega : float
        Weight of the extrapolation.
    lipschitz : float
        ``L`` of the last step.
    gradient : float
        Norm of the proximal gradient at the extrapolated parameters.
    iteration : int
        Steps done.
    """

    theta: Theta
    before: Theta  # theta of the epoch before
    forward: Forward  # at theta
    blocks: Blocks
    schedule: CosineSchedule
    mu: float
    Q: float
    delta: float
    omega: float
    lipschitz: float
    gradient: float  # norm of the proximal gradient at the extrapolated theta
    iteration: int


@dataclass(frozen=True)
class Trial:
    """A step of an epoch, which may have to be taken again.

    Parameters
    ----------
    theta : Theta
        The parameters after it.
    forward : Forward
        What the network makes at them.
    end : float
        The smooth part of Q there.
    way : float
        Squared norm of the move from the extrapolated parameters.
    short : bool
        Whether the step is short enough for ``L`` to bound the smooth part.
    omega : float
        Weight of the extrapolation.
    lipschitz : float
        ``L``.
    """

    theta: Theta
    forward: Forward
    end: float
    way: float
    short: bool
    omega: float
    lipschitz: float


def inner(a: Theta, b: Theta) -> float:
    """``<a, b>``, over all parameters.

    Parameters
    ----------
    a : Theta
        Of the same sizes.
    b : Theta
        Of the same sizes.

    Returns
    -------
    float
    """
    parts = zip(a.parts, b.parts, strict=True)
    return float(sum(torch.linalg.vecdot(p.flatten(), q.flatten()) for p, q in parts))
