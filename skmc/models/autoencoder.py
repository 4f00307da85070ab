"""Fully connected networks that map a row to itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import Randomness


def bent(a: Tensor) -> Tensor:
    """``1.7159 tanh(2a/3)``, whose value and slope at 1 are about 1 (LeCun).

    Parameters
    ----------
    a : Tensor
        What a layer adds up.

    Returns
    -------
    Tensor of the same shape
    """
    return 1.7159 * torch.tanh(a * (2 / 3))


def slope_at(z: Tensor) -> Tensor:
    """The slope of `bent` where its value is ``z``.

    Parameters
    ----------
    z : Tensor
        Values of `bent`.

    Returns
    -------
    Tensor of the same shape
    """
    return (2 / 3) * (1.7159 - z.square() / 1.7159)


class Autoencoder(nn.Module):
    r"""``x -> W[l]' g(... g(W[0]' x + b[0]) ...) + b[l]``, rows to rows.

    Every hidden layer bends, ``g(a) = 1.7159 tanh(2a/3)``; the last one is linear, or
    bends as well, as an autoencoder of another's codes does.

    Parameters
    ----------
    weights : sequence of Tensor
        ``W[i]`` of shape (width of layer i, width of layer i + 1); the first width and
        the last are ``n_cols``.
    biases : sequence of Tensor
        ``b[i]`` of shape (1, width of layer i + 1).
    bent_output : bool
        Whether `bent` is applied to the output, too.

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
        cls, widths: Sequence[int], rng: Randomness, *, gain: float = 4.0, **params
    ) -> Autoencoder:
        """Weights uniform in ``+-gain sqrt(6 / (fan_in + fan_out))``, biases zero.

        Parameters
        ----------
        widths : sequence of int
            Of all layers, those of input and output included.
        rng : Randomness
            Where random numbers come from.
        gain : float, default=4.0
            Multiplies the bound.
        **params : dict
            For the constructor.

        Returns
        -------
        Autoencoder
        """
        sizes = list(itertools.pairwise(widths))
        weights = [rng.uniform(a, b, gain * (6 / (a + b)) ** 0.5) for a, b in sizes]
        return cls(weights, [torch.zeros_like(W[:1]) for W in weights], **params)

    def hidden(self, rows: Tensor) -> list[Tensor]:
        """What the hidden layers make of rows ``(k, n_cols)``, each ``(k, width)``.

        Parameters
        ----------
        rows : Tensor of shape (k, n_cols)
            Zero where missing.

        Returns
        -------
        list of Tensor
        """
        outputs = []
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            rows = bent(torch.addmm(b, rows, W))
            outputs.append(rows)
        return outputs

    def forward(self, rows: Tensor) -> Tensor:  # (k, n_cols) -> (k, n_cols)
        *_, last = [rows, *self.hidden(rows)]
        linear = torch.addmm(self.biases[-1], last, self.weights[-1])
        return bent(linear) if self.bent_output else linear
