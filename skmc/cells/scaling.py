"""Standardization from the observed cells alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

OFFSET = 100  # deviations; a smaller mean need not be subtracted


class _Summed(Protocol):
    """Observed cells whose sums are known."""

    @property
    def values(self) -> Tensor:
        """Values of the cells."""

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the batch axes; empty for a single matrix."""

    def sums(self, cells: Tensor, *, by_column: bool) -> Tensor:
        """Weighted sums of numbers, one for each cell, over all cells or by column."""

    def spread(self, sums: Tensor) -> Tensor:
        """The number of its column, or the only one, for each cell."""


@dataclass(frozen=True)
class Scaling:
    """``z = (x - shift) / scale`` with mean and standard deviation of observed cells.

    A constant column has ``scale`` zero: it is standardized to zero, and `undo` returns
    the constant whatever the model predicts.

    Parameters
    ----------
    shift : Tensor of shape (\\*batch, 1, n_cols) or (\\*batch, 1, 1)
        Mean of the observed cells, per column or overall; zero without centering.
    scale : Tensor of shape (\\*batch, 1, n_cols) or (\\*batch, 1, 1)
        Standard deviation of the same cells, or their root mean square without
        centering.
    """

    shift: Tensor  # (*batch, 1, n_cols) or (*batch, 1, 1)
    scale: Tensor

    @classmethod
    def of(cls, data: _Summed, how: str | None, *, centre: bool = True) -> Scaling:
        """Compute the scaling from the observed cells.

        A column without an observed cell gets the mean and deviation of all cells.
        """
        values = data.values
        if how is None:
            one = values.new_ones((*data.batch_shape, 1, 1))
            return cls(torch.zeros_like(one), one)
        z, unit = _normalised(data)
        eps = torch.finfo(values.dtype).eps
        moments = partial(_moments, data, z, eps)
        in_unit = cls.of_moments(moments, how, centre=centre).to(values.dtype)
        return cls(in_unit.shift * unit, in_unit.scale * unit)

    @classmethod
    def of_moments(
        cls,
        moments: Callable[[bool], tuple[Tensor, Tensor, Tensor]],
        how: str | None,
        *,
        centre: bool = True,
    ) -> Scaling:
        """Compute the scaling from means and deviations, by the rules of `of`."""
        if how is None:
            one = torch.ones(1, 1, dtype=torch.float64)
            return cls(torch.zeros_like(one), one)
        shift, scale, _ = moments(False)
        if how == "columns":
            means, deviations, count = moments(True)
            shift = torch.where(count > 0, means, shift)
            scale = torch.where(count > 0, deviations, scale)
        if not centre:
            near = shift.abs() < OFFSET * scale
            scale = torch.where(near, shift.hypot(scale), scale)
            shift = torch.where(near, torch.zeros_like(shift), shift)
        return cls(shift, scale)

    def kept(self, later: Scaling) -> Scaling:
        """Keep these units; columns that are new or were constant have later ones."""
        n_cols = self.scale.shape[-1]
        has = torch.zeros_like(later.scale, dtype=torch.bool)
        has[..., :n_cols] = self.scale > 0
        shift, scale = later.shift.clone(), later.scale.clone()
        shift[..., :n_cols], scale[..., :n_cols] = self.shift, self.scale
        shift = torch.where(has, shift, later.shift)
        return Scaling(shift, torch.where(has, scale, later.scale))

    def standardise(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Standardize a whole matrix."""
        return torch.where(self.scale > 0, (X - self.shift) / self.scale, 0.0)

    def undo(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        """Convert back to the units of the data."""
        return X * self.scale + self.shift

    def to(self, *args: Any) -> Scaling:
        """Move or cast both tensors."""
        return Scaling(self.shift.to(*args), self.scale.to(*args))


def _normalised(data: _Summed) -> tuple[Tensor, Tensor]:
    """Divide the values by the largest one; return both.

    Otherwise sums of squares of very large or very small numbers could overflow.
    """
    values = data.values
    dense = values if values.ndim > 1 else values[None]
    low, high = dense.amin((-2, -1), True), dense.amax((-2, -1), True)
    unit = torch.maximum(high, -low)
    unit = torch.where(unit > 0, unit, torch.ones_like(unit))
    return (values / data.spread(unit)).double(), unit


def _moments(
    data: _Summed, z: Tensor, eps: float, by_column: bool
) -> tuple[Tensor, Tensor, Tensor]:
    count = data.sums(z.new_ones(()).expand_as(z), by_column=by_column)
    some = torch.where(count > 0, count, 1)  # the weights may sum to less than 1
    mean = data.sums(z, by_column=by_column) / some
    squares = (z - data.spread(mean)).square_()
    deviation = (data.sums(squares, by_column=by_column) / some).sqrt()
    # A deviation within the rounding error of a constant is zero.
    noise = 32 * eps * mean.abs()
    deviation = torch.where(deviation > noise, deviation, torch.zeros_like(deviation))
    return mean, deviation, count
