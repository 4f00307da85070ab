"""The data of matrix sensing, for the loop and the solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import work_of
from skmc.sensing.measurements import Measurements


@dataclass(frozen=True, eq=False)
class Measured(Observed):
    """Measurements ``y = A(M)`` of a matrix, in place of observed cells.

    `residual` is ``A*(A(X) - y)``, the gradient of ``1/2 |A(X) - y|^2`` at ``X``, and
    ``values`` is ``A*(y)``, minus the gradient at zero. Misfit and energy are those of
    the measurements. For `CellMeasurements` of different cells all of these agree with
    those of `Observed`, but ``mask`` is True everywhere.

    Parameters
    ----------
    values, mask : Tensor of shape (n_rows, n_cols)
        Tensors from `of`.
    operator : Measurements
        Measurements ``A``.
    y : Tensor of shape (n,)
        Results of the measurements.
    weights : None
        Measurements have no weights.
    free_means : bool, default=False
        Measurements have no columns with means of their own.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import CellMeasurements
    >>> from skmc.sensing.measured import Measured
    >>> data = Measured.of(CellMeasurements([0], [1], (1, 2)), torch.tensor([3.0]))
    >>> data.values, data.misfit(torch.tensor([[5.0, 5.0]]))
    (tensor([[0., 3.]]), tensor(4.))
    """

    operator: Measurements
    y: Tensor

    @classmethod
    def of(
        cls,
        operator: Measurements,
        y: Tensor,  # (n,)
    ) -> Measured:
        """Make the data from measurements and their results."""
        values = operator.adjoint(y)
        return cls(values, torch.ones_like(values, dtype=torch.bool), operator, y)

    @property
    def work(self) -> int:
        """Work of a product with the matrix or of ``A``, whichever is larger."""
        return max(super().work, work_of(self.operator.size))

    @property
    def n_observed(self) -> Tensor:
        """Number of measurements."""
        return self.y.new_tensor(float(len(self.y)))

    @property
    def energy(self) -> Tensor:
        """``|y|^2``, shape ()."""
        return self.y.square().sum()

    def residual(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """``A*(A(X) - y)``."""
        return self.operator.adjoint(self.operator.forward(X) - self.y)

    def misfit(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # ()
        """``|A(X) - y|^2``; NaN where ``X`` is not finite."""
        return (self.operator.forward(X) - self.y).square().sum(-1)

    def hide(
        self,
        hidden: Tensor,  # (n,)
    ) -> Measured:
        """Leave out some measurements."""
        if hidden.shape != self.y.shape:
            raise ValueError(
                f"hidden has shape {tuple(hidden.shape)}; it must be "
                f"{tuple(self.y.shape)}, one for each measurement."
            )
        kept = (~hidden).nonzero()[:, 0]
        return Measured.of(self.operator[kept], self.y[kept])

    def select(self, members: Tensor) -> Measured:
        raise NotImplementedError("Measurements of a matrix have no batch axis.")

    def to(self, *args: Any) -> Measured:
        y = self.y.to(*args)
        operator = self.operator.to(y.device, y.dtype)
        values, mask = self.values.to(y), self.mask.to(y.device)
        return Measured(values, mask, operator, y)
