"""Parameters, forward passes and slack variables of `NonsmoothDescent`."""

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
        Weights of the layers.
    biases : Layers
        Biases of the layers.
    """

    weights: Layers
    biases: Layers

    @property
    def parts(self) -> list[Tensor]:
        """All tensors, with the weights first."""
        return [*self.weights, *self.biases]


@dataclass(frozen=True)
class Forward:
    """A forward pass of the network on the zero-filled rows.

    Parameters
    ----------
    theta : Theta
        Parameters of the network.
    hidden : Layers
        Outputs of the hidden layers, each (n_rows, width).
    output : Tensor of shape (n_rows, n_cols)
        Output of the network, ``f(P(M))``.
    error : Tensor of shape (n_rows, n_cols)
        ``P(f(P(M)) - M)``, multiplied by the weights of the cells if there are any.
    loss : float
        ``|P(f(P(M)) - M)|^2 + lambda sum |W|^2``, where the first term is weighted.
    """

    theta: Theta
    hidden: Layers  # z, each (n_rows, width)
    output: Tensor  # f(P(M)), (n_rows, n_cols)
    error: Tensor  # W P(f(P(M)) - M)
    loss: float


@dataclass(frozen=True)
class Blocks:
    """The slack variables for a value of ``mu``, and their penalties.

    Parameters
    ----------
    h : Layers
        Slack variables of the hidden layers, each (n_rows, width).
    V : tuple of Tensor
        Slack variables of the weights, each in the shape of its ``W``.
    penalty : float
        Penalty ``alpha |h|_1 + beta |V|_*``.
    """

    h: Layers  # each (n_rows, width)
    V: Layers  # each in the shape of its W
    penalty: float  # alpha |h|_1 + beta |V|_*

    def pairs(self, forward: Forward) -> list[tuple[Tensor, Tensor]]:
        """All ``(z, h)``, then all ``(W, V)``.

        Parameters
        ----------
        forward : Forward
            Forward pass.

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
    """The objective Q of `NonsmoothDescent` and its parts.

    Parameters
    ----------
    activity : L1Norm
        Penalty ``alpha |h_i|_1`` of each hidden layer.
    rank : NuclearNorm
        Penalty ``beta |V_j|_*`` of each weight matrix.
    decay : SquaredNorm
        Penalty ``lambda |W_j|_F^2``; the weight of the term is ``2 lambda``.
    """

    _: KW_ONLY
    activity: L1Norm
    rank: NuclearNorm
    decay: SquaredNorm

    def forward(self, data: Observed, theta: Theta) -> Forward:
        """Run the network on the zero-filled rows.

        Parameters
        ----------
        data : Observed
            The observed cells.
        theta : Theta
            Parameters of the network.

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
        """The minimizers ``h`` and ``V`` of Q.

        Parameters
        ----------
        forward : Forward
            Forward pass.
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
            Forward pass.
        blocks : Blocks
            Slack variables.
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
        """Gradient of the smooth part.

        Parameters
        ----------
        data : Observed
            The observed cells.
        forward : Forward
            Forward pass.
        blocks : Blocks
            Slack variables.
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
    """A trial step of an epoch, which may have to be repeated.

    Parameters
    ----------
    forward : Forward
        Forward pass after the step.
    end : float
        Smooth part of Q after the step.
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
        Parameters of the previous epoch.
    blocks : Blocks
        Slack variables.
    schedule : CosineSchedule
        Schedule of ``mu``.
    mu : float
        Width of the smoothing.
    delta : float
        Bound of ``omega``, which shrinks when Q rises and grows when it falls.
    iteration : int
        Number of steps done.
    """

    found: Trial
    before: Theta  # theta of the previous epoch
    blocks: Blocks
    schedule: CosineSchedule
    mu: float
    delta: float
    iteration: int

    @property
    def theta(self) -> Theta:
        """Parameters of the network."""
        return self.found.forward.theta


def inner(a: Theta, b: Theta) -> float:
    """Inner product ``<a, b>`` over all parameters.

    Parameters
    ----------
    a : Theta
        First parameters.
    b : Theta
        Second parameters, of the same sizes.

    Returns
    -------
    float
    """
    parts = zip(a.parts, b.parts, strict=True)
    return float(sum(torch.linalg.vecdot(p.flatten(), q.flatten()) for p, q in parts))
