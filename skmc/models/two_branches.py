"""A network with one branch for the row and one for the column of a cell."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import Randomness


class Branch(nn.Module):
    r"""``tanh(... tanh(E + b[0]) W[1] + b[1] ...) W[l]``: items to vectors.

    An item is a one-hot vector, so the first layer is a table ``E`` with one row for
    each item. Without a hidden layer the branch is that table.

    Parameters
    ----------
    weights : sequence of Tensor
        ``E`` of shape (\*batch, n_items, width), then (\*batch, width, next width).
    biases : sequence of Tensor
        One fewer than weights, each (\*batch, 1, width).
    """

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]):
        super().__init__()
        self.weights = nn.ParameterList(weights)
        self.biases = nn.ParameterList(biases)

    @classmethod
    def random(cls, widths: Sequence[int], std: float, rng: Randomness) -> Branch:
        """Draw weights: N(0, std^2) in the table, N(0, 1/fan_in) in further layers."""
        first, *rest = itertools.pairwise(widths)
        weights = [rng.normal(*first, std)]
        weights += [rng.normal(a, b, a**-0.5) for a, b in rest]
        return cls(weights, [torch.zeros_like(W[..., :1, :]) for W in weights[:-1]])

    def forward(self) -> Tensor:  # (*batch, n_items, last width)
        table, *weights = self.weights
        items = table
        for W, b in zip(weights, self.biases, strict=True):
            items = torch.tanh(items + b) @ W
        return items


class BiBranch(nn.Module):
    """``X[i, j] = <row branch (i), column branch (j)>``.

    Parameters
    ----------
    rows : Branch
        Embeddings of the rows.
    cols : Branch
        Embeddings of the columns.
    """

    def __init__(self, rows: Branch, cols: Branch):
        super().__init__()
        self.rows = rows
        self.cols = cols

    def forward(self) -> Tensor:  # (*batch, n_rows, n_cols)
        return self.rows() @ self.cols().mT
