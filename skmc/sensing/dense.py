"""Measurements by arbitrary matrices, and measurements times a factor."""

from __future__ import annotations

from functools import cached_property

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from skmc.sensing.checks import real
from skmc.sensing.measurements import Measurements


class DenseMeasurements(Measurements):
    """Measurements by arbitrary matrices ``A_i``.

    Parameters
    ----------
    A : Tensor or array of shape (n, n_rows, n_cols)
        Matrices ``A_i``.

    See Also
    --------
    CellMeasurements : Single cells.
    RankOneMeasurements : Matrices of rank one.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import DenseMeasurements
    >>> A = DenseMeasurements(torch.eye(4).view(4, 2, 2))
    >>> A.forward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 2., 3., 4.])
    """

    _each = ("A",)
    A: Tensor

    def __init__(self, A: ArrayLike) -> None:
        self.A = real("A", A, 3)
        self.matrix_shape = self.A.shape[1], self.A.shape[2]

    def forward(self, X: Tensor) -> Tensor:
        return X.flatten(-2) @ self.A.flatten(1).mT

    def adjoint(self, r: Tensor) -> Tensor:
        return (r @ self.A.flatten(1)).unflatten(-1, self.matrix_shape)

    @property
    def energy(self) -> Tensor:
        return self.A.square().sum()

    def dense(self) -> Tensor:
        return self.A


class ScaledMeasurements(Measurements):
    """Measurements by ``factor A_i``, without a copy of the ``A_i``.

    Parameters
    ----------
    operator : Measurements
        Measurements with the matrices ``A_i``.
    factor : float, not zero
        Factor of the matrices.
    """

    def __init__(self, operator: Measurements, factor: float) -> None:
        self.operator, self.factor = operator, factor
        self.matrix_shape = operator.matrix_shape

    def __len__(self) -> int:
        return len(self.operator)

    def __getitem__(self, index: object) -> Measurements:
        return ScaledMeasurements(self.operator[index], self.factor)

    @property
    def size(self) -> int:
        """Number of stored elements."""
        return self.operator.size

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.operator.device

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Measurements:
        return ScaledMeasurements(self.operator.to(device, dtype), self.factor)

    def forward(self, X: Tensor) -> Tensor:
        return self.operator.forward(X) * self.factor

    def adjoint(self, r: Tensor) -> Tensor:
        return self.operator.adjoint(r) * self.factor

    @property
    def energy(self) -> Tensor:
        return self.operator.energy * self.factor**2

    def dense(self) -> Tensor:
        return self.operator.dense() * self.factor

    def gram(self) -> Tensor:
        return self.operator.gram() * self.factor**2

    @cached_property
    def norm(self) -> Tensor:
        return self.operator.norm * abs(self.factor)

    def least_norm(self, y: Tensor) -> Tensor:
        return self.operator.least_norm(y) / self.factor
