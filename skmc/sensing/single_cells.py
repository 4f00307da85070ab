"""Measurements of single cells."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from skmc.sensing.checks import copied, is_shape
from skmc.sensing.measurements import Measurements


class CellMeasurements(Measurements):
    """Measurements of single cells, ``y_i = X[rows[i], cols[i]]``: matrix completion.

    Parameters
    ----------
    rows, cols : Tensor or array of int, shape (n,)
        Zero-based positions; a cell may be measured more than once.
    matrix_shape : tuple of int
        Shape of the matrix, ``(n_rows, n_cols)``.

    See Also
    --------
    DenseMeasurements : Arbitrary matrices.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import CellMeasurements
    >>> A = CellMeasurements([0, 1], [1, 0], (2, 2))
    >>> A.forward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([2., 3.])
    """

    _each = ("rows", "cols")
    rows: Tensor
    cols: Tensor

    def __init__(
        self, rows: ArrayLike, cols: ArrayLike, matrix_shape: tuple[int, int]
    ) -> None:
        if not is_shape(matrix_shape):
            raise ValueError(
                f"matrix_shape must be (n_rows, n_cols), got {matrix_shape!r}."
            )
        self.matrix_shape = (int(matrix_shape[0]), int(matrix_shape[1]))
        for name, index, size in zip(
            ("rows", "cols"), (rows, cols), self.matrix_shape, strict=True
        ):
            index = copied(name, index, 1)
            if (
                index.is_floating_point()
                or index.is_complex()
                or index.dtype is torch.bool
            ):
                raise TypeError(
                    f"{name} has dtype {index.dtype}; it must be integers, the "
                    "positions of cells."
                )
            index = index.long()  # shorter integers may overflow
            outside = (index < 0) | (index >= size)
            if outside.any():
                place = int(outside.nonzero()[0])
                raise ValueError(
                    f"{name} contains {int(index[place])} at position {place}, outside "
                    f"0..{size - 1}; correct it or give a larger matrix_shape."
                )
            setattr(self, name, index)
        if len(self.rows) != len(self.cols):
            raise ValueError(
                f"rows has length {len(self.rows)} and cols {len(self.cols)}; each "
                "cell needs one of both."
            )

    @property
    def _dtype(self) -> torch.dtype:
        return torch.float64

    @property
    def _place(self) -> Tensor:
        return self.rows * self.matrix_shape[1] + self.cols

    def forward(self, X: Tensor) -> Tensor:
        return X[..., self.rows, self.cols]

    def adjoint(self, r: Tensor) -> Tensor:
        cells = r.new_zeros(*r.shape[:-1], math.prod(self.matrix_shape))
        return cells.index_add(-1, self._place, r).unflatten(-1, self.matrix_shape)

    @property
    def energy(self) -> Tensor:
        return torch.tensor(float(len(self)), dtype=self._dtype, device=self.device)

    @cached_property
    def _count(self) -> Tensor:  # measurements of each cell, (n_rows, n_cols)
        return self.adjoint(torch.ones_like(self.rows, dtype=self._dtype))

    def gram(self) -> Tensor:
        return (self._place[:, None] == self._place).to(self._dtype)

    @cached_property
    def norm(self) -> Tensor:
        return self._count.max().sqrt()

    def least_norm(self, y: Tensor) -> Tensor:
        return self.adjoint(y) / self._count.clamp_min(1).to(y)
