"""Protocols of the storage of observed cells."""

from __future__ import annotations

from typing import Any, Protocol, Self

import torch
from torch import Tensor

from skmc.cells.scaling import Scaling


class Data(Protocol):
    """The data of a solve, as the loop needs them."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_rows, n_cols)``."""

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the batch axes; empty for a single matrix."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the values."""

    @property
    def device(self) -> torch.device:
        """Device of the values."""

    @property
    def work(self) -> int:
        """Work of one step, see `skmc.linalg.work_of`."""

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, or the sum of their weights."""

    @property
    def energy(self) -> Tensor:
        """Weighted sum of the squares of the observed cells."""

    def misfit(self, X: Any) -> Tensor:  # (*batch,)
        """Weighted squared distance of a completion from the observed cells."""

    def zero(self) -> Any:
        """The zero matrix."""


class Cells(Data, Protocol):
    """The observed cells of a matrix, as a fit needs them."""

    @property
    def remote(self) -> bool:
        """Whether the cells are in other processes with their own devices."""

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """The scaling of `Scaling.of`."""

    def scaled(self, scaling: Scaling) -> Self:
        """The same cells with scaled values."""

    def to(self, *args: Any) -> Self:
        """Move or cast the values as `torch.Tensor.to` does."""
