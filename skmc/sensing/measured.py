"""The data of matrix sensing, for the loop and the solvers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.sensing.operators import Measurements


@dataclass(frozen=True, eq=False)
class Measured(Observed):
    """Measurements ``y = A(M)`` of a matrix as what `Observed` is of its cells.

    ``values`` is ``A*(y)`` and `residual` ``A*(A(X) - y)``, the slopes of ``1/2 |A(X) -
    y|^2`` at zero and at ``X``. Misfit and energy are those of the measurements. For
    `CellMeasurements` of different cells all this is what `Observed` has; ``mask`` is
    True everywhere.

    Parameters
    ----------
    values, mask : Tensor
        See `of`, which makes them.
    operator : Measurements
        ``A``.
    y : Tensor of shape (n,)
        Their results.

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
    def of(cls, operator: Measurements, y: Tensor) -> Measured:
        """From measurements and their results alone.

        Parameters
        ----------
        operator : Measurements
            The measurements.
        y : Tensor of shape (n,)
            Their results.

        Returns
        -------
        Measured
        """
        values = operator.adjoint(y)
        return cls(values, torch.ones_like(values, dtype=torch.bool), operator, y)

    @property
    def n_observed(self) -> Tensor:  # type: ignore[override]
        """How many measurements there are."""
        return self.y.new_tensor(float(len(self.y)))

    @property
    def energy(self) -> Tensor:
        """``|y|^2``, shape ()."""
        return self.y.square().sum()

    def residual(self, X: Tensor) -> Tensor:
        """``A*(A(X) - y)``.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        return self.operator.adjoint(self.operator.forward(X) - self.y)

    def misfit(self, X: Tensor) -> Tensor:
        """``|A(X) - y|^2``; NaN where ``X`` is not finite.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape ()
        """
        return (self.operator.forward(X) - self.y).square().sum(-1)
