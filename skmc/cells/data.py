"""Protocols of the storage of observed cells."""

from __future__ import annotations

from collections.abc import Callable
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

    def misfit(self, X: Any) -> Tensor:
        """Weighted squared distance of a completion from the observed cells.

        Parameters
        ----------
        X : Tensor or LowRank
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """

    def zero(self) -> Any:
        """The zero matrix.

        Returns
        -------
        Tensor or LowRank
        """


class Cells(Data, Protocol):
    """The observed cells of a matrix, as a fit needs them."""

    @property
    def remote(self) -> bool:
        """Whether the cells are in other processes with their own devices."""

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""

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

    def scaled(self, scaling: Scaling) -> Self:
        """The same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            Scaling of the values.

        Returns
        -------
        Cells
        """

    def split(
        self,
        share: float,
        seed: int,
        draw: Callable[..., Any],
        first_columns: Any = None,
    ) -> tuple[Cells, Cells | None]:
        """Split the cells into training cells and a held-out share.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Seed of the choice of the cells.
        draw : callable
            Chooses the cells of a dense matrix, see `Observed.split`.
        first_columns : int ndarray of shape (n_cols,) or None, default=None
            Where ``draw`` does not choose the cells: for each column, the one together
            with which it is held out.

        Returns
        -------
        train : Cells
        held_out : Cells or None
            None if there are too few cells to hold any out.
        """

    def to(self, *args: Any) -> Self:
        """Move or cast the values as `torch.Tensor.to` does.

        Parameters
        ----------
        *args : device or dtype
            Arguments of `torch.Tensor.to`.

        Returns
        -------
        Cells
        """
