"""The observed cells of a matrix, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from skmc.linalg import work_of


@dataclass(frozen=True, eq=False)
class Observed:
    """Values and mask of a partly observed matrix, or of a batch of them.

    Parameters
    ----------
    values : Tensor of shape (\\*batch, n_rows, n_cols)
        Floating-point. Values where ``mask`` is False are never read (they may be NaN)
        and are replaced with zero.
    mask : bool Tensor, same shape
        True where the cell is observed.

    Raises
    ------
    TypeError
        ``values`` is not floating-point or ``mask`` is not boolean.
    ValueError
        Shapes differ, an observed value is not finite, or a member has no cell.

    Examples
    --------
    >>> import torch
    >>> from skmc import Observed
    >>> data = Observed(torch.tensor([[1.0, 9.0]]), torch.tensor([[True, False]]))
    >>> data.fill(torch.zeros(1, 2))
    tensor([[1., 0.]])
    >>> data.residual(torch.full((1, 2), 3.0))
    tensor([[2., 0.]])
    """

    values: Tensor
    mask: Tensor

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
    def n_observed(self) -> Tensor:  # (*batch,)
        """Number of observed cells of each member, ``(*batch,)``."""
        return self.indicator.sum((-2, -1))

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

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        return self.residual(X).square().sum((-2, -1))

    @property
    def energy(self) -> Tensor:
        """``|P(values)|_F^2``, shape ``(*batch,)``."""
        return self.values.square().sum((-2, -1))

    def sums(self, cells: Tensor, *, by_column: bool) -> Tensor:
        """Sums over observed cells, ``(*batch, 1, n_cols)`` or ``(*batch, 1, 1)``.

        Parameters
        ----------
        cells : Tensor of shape (\\*batch, n_rows, n_cols)
            The summands.
        by_column : bool
            Whether each column has a sum of its own.

        Returns
        -------
        Tensor
        """
        return (cells * self.indicator).sum(-2 if by_column else (-2, -1), keepdim=True)

    def spread(self, sums: Tensor) -> Tensor:
        """Statistics of columns, or of all cells, in a shape that broadcasts.

        Parameters
        ----------
        sums : Tensor of shape (\\*batch, 1, n_cols) or (\\*batch, 1, 1)
            As returned by `sums`.

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

    def hide(self, hidden: Tensor) -> Observed:
        """The same matrix without the cells where ``hidden`` is True.

        Parameters
        ----------
        hidden : bool Tensor of shape (\\*batch, n_rows, n_cols)
            True for cells to hide.

        Returns
        -------
        Observed
        """
        return Observed(self.values, self.mask & ~hidden)

    def select(self, members: Tensor) -> Observed:
        """Some members of the (one) batch axis.

        Parameters
        ----------
        members : bool or int Tensor
            Those to keep, along the batch axis.

        Returns
        -------
        Observed
        """
        return Observed(self.values[members], self.mask[members])

    def to(self, *args, **kwargs) -> Observed:
        """Move or cast the values as `torch.Tensor.to` does; the mask follows.

        Parameters
        ----------
        *args : device or dtype
            As `torch.Tensor.to` takes them.
        **kwargs : device or dtype
            As `torch.Tensor.to` takes them.

        Returns
        -------
        Observed
        """
        values = self.values.to(*args, **kwargs)
        return Observed(values, self.mask.to(values.device))
