"""What every kind of storage of observed cells can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from skmc.cells.scaling import Scaling


class Data(Protocol):
    """What the loop needs of the data of a solve."""

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
        """Work of a step, see `skmc.linalg.work_of`."""

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, or the sum of their weights."""

    @property
    def energy(self) -> Tensor:
        """Sum of the squares of the observed cells, weighted."""

    def misfit(self, X: Any) -> Tensor:
        """Squared distance of a completion from the observed cells, weighted.

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
    """What a fit needs of the observed cells of a matrix."""

    @property
    def remote(self) -> bool:
        """Whether the cells are in other processes, with devices of their own."""

    @property
    def identity(self) -> list[Any]:
        """What differs between two sets of cells."""

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """The scaling of `Scaling.of`.

        Parameters
        ----------
        how : {"auto", "columns", "global"} or None
            As for `Scaling.of`.
        centre : bool, default=True
            As for `Scaling.of`.

        Returns
        -------
        Scaling
        """

    def scaled(self, scaling: Scaling) -> Self:
        """The same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            How to scale.

        Returns
        -------
        Cells
        """

    def split(
        self, share: float, seed: int, draw: Callable[..., Any]
    ) -> tuple[Cells, Cells | None]:
        """Cells to train on, and a share of the cells, which is held out.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Determines the cells.
        draw : callable
            Chooses the cells of a dense matrix, see `Observed.split`.

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
            As `torch.Tensor.to` takes them.

        Returns
        -------
        Cells
        """
