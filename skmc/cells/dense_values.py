"""Values and mask of a matrix as tensors, and the products that solvers use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from skmc.cells.scaling import Scaling
from skmc.linalg import work_of


@dataclass(frozen=True, eq=False)
class DenseValues:
    """The values of observed cells as a matrix, or a batch of them.

    Parameters
    ----------
    values : Tensor of shape (\\*batch, n_rows, n_cols)
        See `Observed`.
    mask : bool Tensor, same shape
        See `Observed`.
    weights : Tensor of the same shape or None, default=None
        See `Observed`.
    free_means : bool, default=False
        See `Observed`.
    """

    values: Tensor
    mask: Tensor
    weights: Tensor | None = field(default=None, kw_only=True)
    free_means: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.values.is_floating_point():
            raise TypeError(f"values must be floating-point, got {self.values.dtype}.")
        if self.mask.dtype is not torch.bool:
            raise TypeError(f"mask must be boolean, got {self.mask.dtype}.")
        if self.values.shape != self.mask.shape or self.values.ndim < 2:
            raise ValueError(
                "values and mask must share a shape (*batch, n_rows, n_cols), got "
                f"{tuple(self.values.shape)} and {tuple(self.mask.shape)}."
            )
        wrong = self.mask & ~torch.isfinite(self.values)
        if wrong.any():
            place = tuple(wrong.nonzero()[0].tolist())
            raise ValueError(f"values is not finite at observed cell {place}.")
        if not self.mask.flatten(-2).any(-1).all():
            raise ValueError("mask has no observed cell; at least one is needed.")
        zero = self.values.new_zeros(())
        object.__setattr__(self, "values", torch.where(self.mask, self.values, zero))

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_rows, n_cols)``."""
        return self.values.shape[-2], self.values.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the values."""
        return self.values.device

    @property
    def work(self) -> int:
        """The work of a product with the matrix, summed over the members."""
        return work_of(self.values.numel(), min(self.shape))

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the batch axes."""
        return self.values.shape[:-2]

    @cached_property
    def indicator(self) -> Tensor:
        """The mask as zeros and ones of the values' dtype."""
        return self.mask.to(self.values.dtype)

    @cached_property
    def times(self) -> Tensor:
        """Weight of each cell, 0 where it is missing."""
        if self.weights is None:
            return self.indicator
        return torch.where(self.mask, self.weights, self.weights.new_zeros(()))

    @cached_property
    def n_observed(self) -> Tensor:  # (*batch,)
        """Number of observed cells of each member, or the sum of their weights."""
        return self.times.sum((-2, -1))

    @cached_property
    def column_weights(self) -> Tensor:  # (*batch, 1, n_cols)
        """Number of observed cells of each column, or the sum of their weights."""
        return self.times.sum(-2, keepdim=True)

    @cached_property
    def largest_weight(self) -> Tensor:
        """The largest weight of a cell of each member, 1 without weights."""
        return self.times.amax((-2, -1))

    def weighted(self, cells: Tensor) -> Tensor:
        """Multiply by the weights of the cells, which leaves zeros unchanged.

        Parameters
        ----------
        cells : Tensor of shape (\\*batch, n_rows, n_cols)
            Numbers that are 0 where a cell is missing.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return cells if self.weights is None else cells * self.times

    def residual(self, X: Tensor) -> Tensor:
        """``P(X - values)``: the misfit on the observed cells, zero elsewhere.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return (X - self.values).mul_(self.indicator)

    def misfit(self, X: Tensor) -> Tensor:
        """``|P(X - values)|_F^2``, ``(*batch,)``; NaN where ``X`` is not finite.

        With weights, a weighted sum of squares.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        return self.weighted(self.residual(X).square()).sum((-2, -1))

    @property
    def energy(self) -> Tensor:
        """``|P(values)|_F^2``, shape ``(*batch,)``; weighted like `misfit`."""
        return self.weighted(self.values.square()).sum((-2, -1))

    def sums(self, cells: Tensor, *, by_column: bool) -> Tensor:
        """Sums over observed cells, ``(*batch, 1, n_cols)`` or ``(*batch, 1, 1)``.

        Parameters
        ----------
        cells : Tensor of shape (\\*batch, n_rows, n_cols)
            The summands.
        by_column : bool
            Whether to sum each column separately.

        Returns
        -------
        Tensor
        """
        return (cells * self.times).sum(-2 if by_column else (-2, -1), keepdim=True)

    def spread(self, sums: Tensor) -> Tensor:
        """Broadcast statistics of columns, or of all cells, over the rows.

        Parameters
        ----------
        sums : Tensor of shape (\\*batch, 1, n_cols) or (\\*batch, 1, 1)
            Result of `sums`.

        Returns
        -------
        Tensor
        """
        return sums

    def zero(self) -> Tensor:
        """The zero matrix.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return torch.zeros_like(self.values)

    def fill(self, X: Tensor) -> Tensor:
        """The observed values, with ``X`` elsewhere.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return torch.where(self.mask, self.values, X)

    def towards(self, X: Tensor) -> Tensor:
        """``X + W (P(M) - X) / max W``, the minimum of a majorizer of the misfit.

        Without weights this is `fill`. With weights, ``|Z - towards(X)|^2 max W`` minus
        a constant equals ``misfit(Z)`` at ``Z = X`` and is no smaller elsewhere. So a
        step that reduces the former also reduces the latter.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        if self.weights is None:
            return self.fill(X)
        share = self.times / self.largest_weight[..., None, None]
        return torch.lerp(X, self.values, share)

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """The scaling of `Scaling.of`.

        Parameters
        ----------
        how : {"columns", "global"} or None
            See `Scaling.of`.
        centre : bool, default=True
            See `Scaling.of`.

        Returns
        -------
        Scaling
        """
        return Scaling.of(self, how, centre=centre)

    def scaled(self, scaling: Scaling) -> Self:
        """The same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            Scaling of the values.

        Returns
        -------
        DenseValues
            Cells of the same class.
        """
        by_column = scaling.shift.shape[-1] > 1
        return replace(
            self, values=scaling.standardise(self.values), free_means=by_column
        )

    def centre(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Subtract the column means from a whole matrix, if they are free.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A matrix.

        Returns
        -------
        means : Tensor of shape (\\*batch, 1, n_cols), or a zero
        rest : Tensor of shape (\\*batch, n_rows, n_cols)
        """
        if not self.free_means:
            return X.new_zeros(()), X
        means = X.mean(-2, keepdim=True)
        return means, X - means
