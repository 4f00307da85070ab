"""Measurements by matrices of rank one."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from skmc.sensing.checks import real
from skmc.sensing.measurements import Measurements


class RankOneMeasurements(Measurements):
    """Measurements by ``A_i = a_i b_i'``, that is ``y_i = a_i' X b_i``.

    Parameters
    ----------
    a : Tensor or array of shape (n, n_rows)
        Left vectors.
    b : Tensor or array of shape (n, n_cols)
        Right vectors.

    See Also
    --------
    DenseMeasurements : Arbitrary matrices.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import RankOneMeasurements
    >>> A = RankOneMeasurements(torch.ones(1, 2), torch.tensor([[1.0, -1.0]]))
    >>> A.forward(torch.tensor([[5.0, 2.0], [1.0, 1.0]]))
    tensor([3.])
    """

    _each = ("a", "b")
    a: Tensor
    b: Tensor

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        self.a, self.b = real("a", a, 2), real("b", b, 2)
        if len(self.a) != len(self.b):
            raise ValueError(
                f"a has {len(self.a)} rows and b {len(self.b)}; each measurement needs "
                "one of both."
            )
        self.matrix_shape = self.a.shape[1], self.b.shape[1]

    def forward(self, X: Tensor) -> Tensor:
        return ((self.a @ X) * self.b).sum(-1)

    def adjoint(self, r: Tensor) -> Tensor:
        return self.a.mT @ (r[..., None] * self.b)

    @property
    def energy(self) -> Tensor:
        return (self.a.square().sum(-1) * self.b.square().sum(-1)).sum()

    def gram(self) -> Tensor:
        return (self.a @ self.a.mT) * (self.b @ self.b.mT)

    @cached_property
    def _spectrum(self) -> tuple[Tensor, Tensor]:
        return torch.linalg.eigh(self.gram().double())

    def least_norm(self, y: Tensor) -> Tensor:
        """Least-norm solution, without dense measurements if they are few.

        With fewer measurements than cells it is computed from `gram`. Singular values
        then count as zero up to ``sqrt(eps n)`` times the largest one.

        Parameters
        ----------
        y : Tensor of shape (n,)
            Results of the measurements.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        if len(self) > math.prod(self.matrix_shape):
            return super().least_norm(y)
        energy, U = self._spectrum
        kept = energy > torch.finfo(energy.dtype).eps * len(U) * energy[-1]
        X = torch.zeros(self.matrix_shape, dtype=y.dtype, device=y.device)
        for _ in range(2):  # the second round restores digits lost by squaring
            missed = (U.mT @ (y - self.forward(X)).double()) / energy
            X = X + self.adjoint((U @ torch.where(kept, missed, 0.0)).to(y))
        return X
