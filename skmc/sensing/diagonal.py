"""Measurements by matrices that share their singular vectors."""

from __future__ import annotations

from functools import cached_property

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from skmc.sensing.checks import real
from skmc.sensing.dense import DenseMeasurements
from skmc.sensing.measurements import Measurements


class DiagonalMeasurements(Measurements):
    """Measurements by ``A_i = Phi diag(values_i) Psi'``, with shared singular vectors.

    Parameters
    ----------
    Phi : Tensor or array of shape (n_rows, k)
        Left singular vectors: orthonormal columns.
    values : Tensor or array of shape (n, k)
        Diagonals of the measurements.
    Psi : Tensor or array of shape (n_cols, k)
        Right singular vectors: orthonormal columns.

    See Also
    --------
    RankOneMeasurements : Matrices of rank one.
    DenseMeasurements : Arbitrary matrices.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import DiagonalMeasurements
    >>> A = DiagonalMeasurements(torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.eye(2))
    >>> A.forward(torch.tensor([[3.0, 9.0], [9.0, 5.0]]))
    tensor([13.])
    """

    _each = ("values",)
    _shared = ("Phi", "Psi")
    values: Tensor
    Phi: Tensor
    Psi: Tensor

    def __init__(self, Phi: ArrayLike, values: ArrayLike, Psi: ArrayLike) -> None:
        self.Phi, self.Psi = real("Phi", Phi, 2), real("Psi", Psi, 2)
        self.values = real("values", values, 2)
        k = self.values.shape[1]
        for name, basis in (("Phi", self.Phi), ("Psi", self.Psi)):
            if basis.shape[1] != k:
                raise ValueError(
                    f"{name} has {basis.shape[1]} columns and values {k}; each column "
                    "needs its values."
                )
            products = basis.mT @ basis - torch.eye(k).to(basis)
            if not (products.abs() < torch.finfo(basis.dtype).eps ** 0.5).all():
                raise ValueError(
                    f"{name} must have orthonormal columns; torch.linalg.qr makes such."
                )
        self.matrix_shape = len(self.Phi), len(self.Psi)

    def forward(self, X: Tensor) -> Tensor:
        return ((self.Phi.mT @ X).mT * self.Psi).sum(-2) @ self.values.mT

    def adjoint(self, r: Tensor) -> Tensor:
        return (self.Phi * (r @ self.values)[..., None, :]) @ self.Psi.mT

    @property
    def energy(self) -> Tensor:
        return self.values.square().sum()

    def gram(self) -> Tensor:
        return self.values @ self.values.mT

    @cached_property
    def norm(self) -> Tensor:
        return torch.linalg.matrix_norm(self.values, 2)

    def least_norm(self, y: Tensor) -> Tensor:
        diagonal = DenseMeasurements(self.values[:, None]).least_norm(y)
        return (self.Phi * diagonal) @ self.Psi.mT
