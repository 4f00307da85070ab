"""Standardisation from the observed cells alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.observed import Observed


@dataclass(frozen=True)
class Scaling:
    """``z = (x - shift) / scale`` with mean and standard deviation of observed cells.

    A constant column has ``scale`` zero: it is only shifted, and `undo` returns the
    constant whatever the model says.
    """

    shift: Tensor  # (*batch, 1, n_cols) or (*batch, 1, 1)
    scale: Tensor

    @classmethod
    def of(cls, data: Observed, how: str | None) -> Scaling:
        """``how`` is "columns", "global" or None.

        A column without an observed cell gets the mean and deviation of all cells.
        """
        values = data.values
        if how is None:
            one = values.new_ones((*data.batch_shape, 1, 1))
            return cls(torch.zeros_like(one), one)
        # Sums of squares of very large or small numbers leave the floating range.
        unit = values.abs().amax((-2, -1), keepdim=True)
        unit = torch.where(unit > 0, unit, torch.ones_like(unit))
        z = (values / unit).double()
        P = data.mask.double()
        shift, scale = _moments(z, P, (-2, -1))
        if how == "columns":
            seen = data.mask.any(-2, keepdim=True)
            by_column = _moments(z, P, (-2,))
            shift = torch.where(seen, by_column[0], shift)
            scale = torch.where(seen, by_column[1], scale)
        return cls(shift.to(values.dtype) * unit, scale.to(values.dtype) * unit)

    def standardise(self, X: Tensor) -> Tensor:
        return (X - self.shift) / torch.where(self.scale > 0, self.scale, 1)

    def apply(self, data: Observed) -> Observed:
        return Observed(self.standardise(data.values), data.mask)

    def undo(self, X: Tensor) -> Tensor:
        return X * self.scale + self.shift

    def to(self, *args, **kwargs) -> Scaling:
        return Scaling(self.shift.to(*args, **kwargs), self.scale.to(*args, **kwargs))


def _moments(z: Tensor, P: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    count = P.sum(dims, keepdim=True).clamp_min(1)
    mean = (z * P).sum(dims, keepdim=True) / count
    deviation = (((z - mean) * P).square().sum(dims, keepdim=True) / count).sqrt()
    # What is left of a constant after rounding is not a deviation.
    noise = 1e-6 * mean.abs()
    return mean, torch.where(deviation > noise, deviation, torch.zeros_like(deviation))
