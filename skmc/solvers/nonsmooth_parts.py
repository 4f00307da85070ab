"""Parameters, forward passes and slack variables of `NonsmoothDescent`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import CosineSchedule
from skmc.models import hidden_layers, slope_at
from skmc.solvers.solver import State
from skmc.terms import L1Norm, NuclearNorm, SquaredNorm

Layers = Sequence[Tensor]


@dataclass(frozen=True, eq=False)
class Theta:
    """Weights and biases of a network, as in `Autoencoder`, in one vector.

    Steps and inner products are then one operation each.

    Parameters
    ----------
    vector : Tensor of shape (n_parameters,)
        All weights, then all biases.
    widths : tuple of int
        Number of inputs of the network and of outputs of each layer.
    """

    vector: Tensor
    widths: tuple[int, ...]

    @classmethod
    def of(cls, weights: Layers, biases: Layers) -> Theta:
        """Join weights and biases.

        Parameters
        ----------
        weights : sequence of Tensor of shape (width, next width)
            Weights of the layers.
        biases : sequence of Tensor of shape (1, next width)
            Biases of the layers.

        Returns
        -------
        Theta
        """
        widths = (len(weights[0]), *(W.shape[1] for W in weights))
        return cls(torch.cat([p.flatten() for p in (*weights, *biases)]), widths)

    def moved(self, vector: Tensor) -> Theta:
        """Replace all parameters.

        Parameters
        ----------
        vector : Tensor of shape (n_parameters,)
            Other parameters of the same network.

        Returns
        -------
        Theta
        """
        return Theta(vector, self.widths)

    @property
    def all_weights(self) -> Tensor:
        """The weights of all layers, (1, n_weights)."""
        return self.vector[None, : -sum(self.widths[1:])]

    @property
    def weights(self) -> Layers:
        """The weights of each layer."""
        return self.layers(self.all_weights)

    @property
    def biases(self) -> Layers:
        """The bias of each layer, (1, width)."""
        own = self.vector[None, -sum(self.widths[1:]) :]
        return own.split(list(self.widths[1:]), 1)

    def layers(self, all_weights: Tensor) -> Layers:
        """Divide a row of weights into those of each layer.

        Parameters
        ----------
        all_weights : Tensor of shape (1, n_weights)
            Numbers in the order of `all_weights`.

        Returns
        -------
        sequence of Tensor
        """
        shapes = list(pairwise(self.widths))
        parts = all_weights[0].split([m * n for m, n in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


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
    V : Tensor of shape (1, n_weights)
        Slack variables of the weights, as in `Theta.all_weights`.
    penalty : float
        Penalty ``alpha |h|_1 + beta |V|_*``.
    """

    h: Layers  # each (n_rows, width)
    V: Tensor  # (1, n_weights)
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
            *zip(forward.theta.weights, forward.theta.layers(self.V), strict=True),
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
        weights, biases = theta.weights, theta.biases
        hidden = hidden_layers(weights, biases, data.values)
        last = [data.values, *hidden][-1]
        output = torch.addmm(biases[-1], last, weights[-1])
        residual = data.residual(output)
        error = data.weighted(residual)
        loss = (error * residual).sum() + self.decay(theta.all_weights)
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
        V = torch.cat([V.flatten() for V, _ in pairs])[None]
        return Blocks(h, V, float(penalty))

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
        slack = (forward.theta.all_weights - blocks.V).square().sum()
        for z, h in zip(forward.hidden, blocks.h, strict=True):
            slack = slack + (z - h).square().sum()
        return forward.loss + float(slack) / (2 * mu)

    def gradient(
        self, data: Observed, forward: Forward, blocks: Blocks, mu: float
    ) -> Tensor:
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
        Tensor of shape (n_parameters,)
        """
        theta = forward.theta
        inputs, W = [data.values, *forward.hidden], theta.weights
        back = 2 * forward.error
        weights, biases = [], []
        for i in reversed(range(len(inputs))):
            weights.append(inputs[i].mT @ back)
            biases.append(back.sum(0, keepdim=True))
            if i:
                back = back @ W[i].mT + (inputs[i] - blocks.h[i - 1]) / mu
                back *= slope_at(inputs[i])
        grad = Theta.of(weights[::-1], biases[::-1])
        _, decay = self.decay.value_and_grad(theta.all_weights)
        grad.all_weights.add_(decay).add_(theta.all_weights - blocks.V, alpha=1 / mu)
        return grad.vector


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
    before : Tensor of shape (n_parameters,)
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
    before: Tensor  # theta of the previous epoch
    blocks: Blocks
    schedule: CosineSchedule
    mu: float
    delta: float
    iteration: int

    @property
    def theta(self) -> Theta:
        """Parameters of the network."""
        return self.found.forward.theta


def inner(a: Tensor, b: Tensor) -> float:
    """Inner product ``<a, b>`` of vectors.

    Parameters
    ----------
    a : Tensor of shape (k,)
        First vector.
    b : Tensor of shape (k,)
        Second vector.

    Returns
    -------
    float
    """
    return float(torch.linalg.vecdot(a, b))
