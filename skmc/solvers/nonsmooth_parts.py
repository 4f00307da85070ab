"""What `NonsmoothDescent` works with: parameters, forward passes, slack variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import CosineSchedule, Parts
from skmc.models import hidden_layers, slope_at
from skmc.solvers.solver import State
from skmc.terms import L1Norm, NuclearNorm, SquaredNorm

Layers = Sequence[Tensor]


@dataclass(frozen=True, eq=False)
class Theta(Parts):
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


@dataclass(frozen=True)
class Forward:
    """What the network makes of the zero-filled rows.

    Parameters
    ----------
    theta : Theta
        The parameters.
    hidden : Layers
        Of the layers, each (n_rows, width).
    output : Tensor of shape (n_rows, n_cols)
        ``f(P(M))``.
    error : Tensor of shape (n_rows, n_cols)
        ``P(f(P(M)) - M)``, times the weights of the cells if they have any.
    loss : float
        ``|P(f(P(M)) - M)|^2 + lambda sum |W|^2``, the first weighted likewise.
    """

    theta: Theta
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

    def pairs(self, forward: Forward) -> list[tuple[Tensor, Tensor]]:
        """All ``(z, h)``, then all ``(W, V)``.

        Parameters
        ----------
        forward : Forward
            What the network makes of the rows.

        Returns
        -------
        list of (Tensor, Tensor)
        """
        return [
            *zip(forward.hidden, self.h, strict=True),
            *zip(forward.theta.weights, self.V, strict=True),
        ]


@dataclass(eq=False)
class Objective:
    """Q of `NonsmoothDescent`, in its parts.

    Parameters
    ----------
    activity : L1Norm
        ``alpha |h_i|_1`` of each hidden layer.
    rank : NuclearNorm
        ``beta |V_j|_*`` of each weight matrix.
    decay : SquaredNorm
        ``lambda |W_j|_F^2``; its weight is ``2 lambda``.
    """

    _: KW_ONLY
    activity: L1Norm
    rank: NuclearNorm
    decay: SquaredNorm

    def forward(self, data: Observed, theta: Theta) -> Forward:
        """Show the network the zero-filled rows.

        Parameters
        ----------
        data : Observed
            The observed cells.
        theta : Theta
            The parameters.

        Returns
        -------
        Forward
        """
        hidden = hidden_layers(theta.weights, theta.biases, data.values)
        last = [data.values, *hidden][-1]
        output = torch.addmm(theta.biases[-1], last, theta.weights[-1])
        residual = data.residual(output)
        error = data.weighted(residual)
        loss = (error * residual).sum() + sum(self.decay(W) for W in theta.weights)
        return Forward(theta, hidden, output, error, float(loss))

    def blocks(self, forward: Forward, mu: float) -> Blocks:
        """The ``h`` and ``V`` at which Q is least.

        Parameters
        ----------
        forward : Forward
            What the network makes of the rows.
        mu : float
            Width of the smoothing.

        Returns
        -------
        Blocks
        """
        h = [self.activity.prox(z, mu) for z in forward.hidden]
        pairs = [self.rank.prox_and_value(W, mu) for W in forward.theta.weights]
        penalty = sum(self.activity(part) for part in h)
        penalty += sum(value for _, value in pairs)
        return Blocks(h, [V for V, _ in pairs], float(penalty))

    def smooth(self, forward: Forward, blocks: Blocks, mu: float) -> float:
        """The smooth part of Q.

        Parameters
        ----------
        forward : Forward
            What the network makes of the rows.
        blocks : Blocks
            The slack variables.
        mu : float
            Width of the smoothing.

        Returns
        -------
        float
        """
        slack = sum((a - b).square().sum() for a, b in blocks.pairs(forward))
        return forward.loss + float(slack) / (2 * mu)

    def gradient(
        self, data: Observed, forward: Forward, blocks: Blocks, mu: float
    ) -> Theta:
        """Of the smooth part.

        Parameters
        ----------
        data : Observed
            The observed cells.
        forward : Forward
            What the network makes of the rows.
        blocks : Blocks
            The slack variables.
        mu : float
            Width of the smoothing.

        Returns
        -------
        Theta
        """
        inputs = [data.values, *forward.hidden]
        back = 2 * forward.error
        weights, biases = [], []
        for i in reversed(range(len(inputs))):
            W = forward.theta.weights[i]
            _, decay = self.decay.value_and_grad(W)
            weights.append(inputs[i].mT @ back + decay + (W - blocks.V[i]) / mu)
            biases.append(back.sum(0, keepdim=True))
            if i:
                back = back @ W.mT + (inputs[i] - blocks.h[i - 1]) / mu
                back *= slope_at(inputs[i])
        return Theta(weights[::-1], biases[::-1])


@dataclass(frozen=True)
class Trial:
    """A step of an epoch, which may have to be taken again.

    Parameters
    ----------
    forward : Forward
        What the network makes after it.
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

    forward: Forward
    end: float
    way: float
    short: bool
    omega: float
    lipschitz: float


@dataclass(frozen=True, kw_only=True)
class NonsmoothState(State):
    """An iterate of `NonsmoothDescent`.

    The objective is Q at the schedule's end, so that epochs are comparable.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    found : Trial
        The last step.
    before : Theta
        The parameters of the epoch before.
    blocks : Blocks
        The slack variables.
    schedule : CosineSchedule
        Of ``mu``.
    mu : float
        Width of the smoothing.
    delta : float
        Bounds ``omega``; smaller after Q rose, larger after it fell.
    iteration : int
        Steps done.
    """

    found: Trial
    before: Theta  # theta of the epoch before
    blocks: Blocks
    schedule: CosineSchedule
    mu: float
    delta: float
    iteration: int

    @property
    def theta(self) -> Theta:
        """The parameters."""
        return self.found.forward.theta


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
