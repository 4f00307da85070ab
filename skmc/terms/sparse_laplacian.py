"""The Dirichlet energy of a fixed sparse graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skmc.linalg import Randomness, compressed_rows
from skmc.terms.laplacian import EVERY_TRANSFORM
from skmc.terms.term import Term, inner, per_member, random_weight
from skmc.terms.transforms import Rows, Transform


class SparseDirichletEnergy(Term):
    r"""`DirichletEnergy` for a Laplacian in compressed rows, shared by all members.

    :math:`F(X) = \lambda \operatorname{tr}(T(X)^\top L\, T(X))`, a *sum* over pairs of
    items. Time and memory are those of the cells of ``L`` that are stored.

    Parameters
    ----------
    starts : int64 Tensor of shape (k + 1,)
        Row ``i`` of ``L`` has the cells ``starts[i]:starts[i + 1]``.
    cols : int64 Tensor of shape (n_cells,)
        Column of each cell.
    values : Tensor of shape (n_cells,)
        The cells of a symmetric positive semi-definite matrix.
    transform : Rows, Columns or Blocks
        What the ``k`` items ``t_i`` are.
    weight : float or Tensor of shape (\*batch,), default=1.0
        ``lambda``, non-negative.
    """

    weight: Tensor
    starts: Tensor
    cols: Tensor
    values: Tensor

    def __init__(
        self,
        starts: Tensor,
        cols: Tensor,
        values: Tensor,
        transform: Transform = Rows(),
        weight: float | Tensor = 1.0,
    ):
        super().__init__()
        self.register_buffer("starts", starts)
        self.register_buffer("cols", cols)
        self.register_buffer("values", values)
        self.transform = transform
        self.add_weight("weight", weight)

    def _times(self, items: Tensor) -> Tensor:
        """``L T(X)``, of all members at once."""
        k = items.shape[-2]
        L = compressed_rows(self.starts, self.cols, self.values, (k, k))
        side_by_side = items.movedim(-2, 0)
        product = L @ side_by_side.reshape(k, -1)
        return product.view(side_by_side.shape).movedim(0, -2)

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self._times(items))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        times = self._times(self.transform(X))
        half = self.transform.adjoint(times, *X.shape[-2:])
        value = self.weight.to(X) * inner(X, half)
        return value, 2 * per_member(self.weight, X) * half

    @classmethod
    def examples(cls, shape: tuple[int, int], rng: Randomness) -> Sequence[Term]:
        found = []
        for transform in EVERY_TRANSFORM:
            k = transform.n_items(*shape)
            each = torch.arange(k)
            cols = torch.stack([each, each.roll(1), each.roll(-1)], -1).flatten()
            values = torch.tensor([2.0, -1.0, -1.0], dtype=rng.dtype).repeat(k)
            starts = torch.arange(0, 3 * k + 1, 3)
            found.append(cls(starts, cols, values, transform, random_weight(rng)))
        return found
