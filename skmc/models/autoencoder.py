"""Fully connected networks that map a row to itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import Randomness, affine


def bent(a: Tensor) -> Tensor:
    """``1.7159 tanh(2a/3)``, whose value at 1 is 1 (LeCun)."""
    return 1.7159 * torch.tanh(a * (2 / 3))


def slope_at(z: Tensor) -> Tensor:
    """The derivative of `bent` as a function of its value ``z``."""
    return (2 / 3) * (1.7159 - z.square() / 1.7159)


def hidden_layers(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    rows: Tensor,  # (*batch, k, n_cols)
) -> list[Tensor]:
    """Outputs of all layers but the last one."""
    outputs = []
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        rows = bent(affine(b, rows, W))
        outputs.append(rows)
    return outputs


class Autoencoder(nn.Module):
    r"""A fully connected network that maps rows to rows.

    .. math::

        x \mapsto W_l^\top g(\cdots g(W_0^\top x + b_0) \cdots) + b_l, \qquad
        g(a) = 1.7159 \tanh(2a/3)

    The last layer is linear, or also applies ``g``, as in the autoencoder of another
    autoencoder's codes.

    Parameters
    ----------
    weights : sequence of Tensor
        ``W[i]`` of shape (\*batch, width of layer i, width of layer i + 1); the first
        width and the last are ``n_cols``. There is at most one batch axis.
    biases : sequence of Tensor
        ``b[i]`` of shape (\*batch, 1, width of layer i + 1).
    bent_output : bool
        Whether `bent` is applied to the output.

    References
    ----------
    Fan, Chow. Deep learning based matrix completion. Neurocomputing 266 (2017).
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        *,
        bent_output: bool = False,
    ):
        super().__init__()
        self.weights = nn.ParameterList(weights)
        self.biases = nn.ParameterList(biases)
        self.bent_output = bent_output

    @classmethod
    def random(
        cls,
        widths: Sequence[int],
        rng: Randomness,
        *,
        gain: float = 4.0,
        **params: bool,
    ) -> Autoencoder:
        """Draw weights within ``+-gain sqrt(6 / (fan_in + fan_out))``; no biases."""
        sizes = list(itertools.pairwise(widths))
        weights = [rng.uniform(a, b, gain * (6 / (a + b)) ** 0.5) for a, b in sizes]
        return cls(
            weights, [torch.zeros_like(W[..., :1, :]) for W in weights], **params
        )

    def hidden(
        self,
        rows: Tensor,  # (*batch, k, n_cols)
    ) -> list[Tensor]:
        """Outputs of the hidden layers, each of shape (\\*batch, k, width)."""
        return hidden_layers(list(self.weights), list(self.biases), rows)

    def forward(self, rows: Tensor) -> Tensor:  # (*batch, k, n_cols), the same
        *_, last = [rows, *self.hidden(rows)]
        linear = affine(self.biases[-1], last, self.weights[-1])
        return bent(linear) if self.bent_output else linear
