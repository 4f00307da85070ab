"""The observed cells of a matrix in blocks that are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.block import CellSelection, loaded, over_chunks
from skmc.blocks.stored_cells import StoredCells
from skmc.blocks.workers import OnCluster, logged
from skmc.blocks.writing import BlockFolder
from skmc.cells import Scaling, SparseObserved
from skmc.linalg import LowRank, work_of

SMALL = 2**23  # cells that are kept in memory, about 64 bytes each


class BlockObserved:
    """The observed cells of a matrix in blocks; the counterpart of `SparseObserved`.

    A pass reads a block while it computes with another. Up to `SMALL` cells are kept.

    Parameters
    ----------
    folder : BlockFolder
        Folder of the blocks.
    scaling : Scaling, optional
        Scaling of the values when a block is read.
    choice : CellSelection, optional
        Selection of the cells to use; all by default.
    systems_on : device, default="cpu"
        Device on which systems of rows are solved. Factors are kept on the CPU.
    side : {"row", "col"}, default="row"
        Side of the matrix: "col" is the transpose, whose blocks are those of the
        columns.
    """

    def __init__(
        self,
        folder: BlockFolder,
        scaling: Scaling | None = None,
        choice: CellSelection | None = None,
        systems_on: torch.device | str = "cpu",
        side: Literal["row", "col"] = "row",
    ):
        self.folder, self.scaling, self.choice = folder, scaling, choice
        self.systems_on, self.side = systems_on, side
        self._starts = folder.starts[side].tolist()  # first rows, and the end
        self.shape = folder.shape if side == "row" else folder.shape[::-1]
        self.dtype = torch.from_numpy(np.empty(0, folder.dtype)).dtype
        self.device = torch.device("cpu")
        self.batch_shape = torch.Size(())
        self.sides: tuple[tuple, tuple] = ((), ())  # no linear priors
        self._small = int(folder.statistics["row"]["count"].sum()) <= SMALL

    @property
    def remote(self) -> bool:
        """Whether blocks are loaded in other processes with their own devices."""
        return isinstance(self.folder.runner, OnCluster)

    def positions(self) -> StoredCells:
        """The cells, read from the blocks."""
        return self.folder.cells

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """Scaling by the rules of `Scaling.of`."""
        scaling = Scaling.of_moments(self.moments, how, centre=centre)
        return scaling.to(self.dtype)

    def scaled(self, scaling: Scaling) -> BlockObserved:
        """Return the same cells with scaled values."""
        return BlockObserved(self.folder, scaling, self.choice, self.systems_on)

    def split(self, share: float, seed: int) -> tuple[BlockObserved, BlockObserved]:
        """Split the cells into training cells and a held-out share."""
        choices = [CellSelection(seed, share, held) for held in (False, True)]
        arguments = [(self.folder, self.scaling, x, self.systems_on) for x in choices]
        return BlockObserved(*arguments[0]), BlockObserved(*arguments[1])

    def to(self, device: torch.device | str) -> BlockObserved:
        """Return the same cells with another device for their systems."""
        return BlockObserved(self.folder, self.scaling, self.choice, device)

    def in_single(self) -> BlockObserved:
        """Return the object itself: blocks have the precision of their files."""
        return self

    def moments(self, by_column: bool) -> tuple[Tensor, Tensor, Tensor]:  # (1, n_cols)
        """Mean, standard deviation and number of the unscaled cells, weighted."""
        sums = self.folder.statistics["col"]
        if "weighted_count" in sums:
            names = ("count", "mean", "squares")
            sums = {name: sums[f"weighted_{name}"] for name in names}
        return moments_of(sums, self.folder.dtype, by_column)

    @property
    def identity(self) -> list[Any]:
        """Data that distinguish two sets of cells."""
        statistics = self.folder.statistics
        return [self.shape, *(x for side in statistics.values() for x in side.values())]

    @cached_property
    def T(self) -> BlockObserved:
        """The transpose."""
        arguments = self.folder, self.scaling, self.choice, self.systems_on
        return BlockObserved(*arguments, "col" if self.side == "row" else "row")

    @cached_property
    def _handles(self) -> Sequence[Any]:
        loaders = [
            partial(
                loaded,
                self.folder.path / self.side / f"{k:06d}.parquet",
                self.side,
                first,
                (last - first, self.shape[1]),
                self.choice,
                self.scaling,
            )
            for k, (first, last) in enumerate(pairwise(self._starts))
        ]
        return self.folder.runner.load(loaders, self._small)

    def map(
        self,
        function: Callable[..., Any],
        own: Sequence[Tensor] = (),  # (n_rows, k)
        *common: object,
    ) -> Iterator[Any]:
        """Call ``function(chunk, own, *common)`` for all chunks of rows, in order."""
        each = ([x[a:b] for x in own] for a, b in pairwise(self._starts))
        common = (function, self.systems_on, self._small, *common)
        runs = self.folder.runner.map(over_chunks, self._handles, *common, each=each)
        for results in logged(runs, f"block of {self.side}s", len(self._handles)):
            yield from results

    @property
    def work(self) -> int:
        """Work of a pass, see `skmc.linalg.work_of`."""
        return work_of(int(self.folder.statistics["row"]["count"].sum()))

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0."""
        return LowRank(*(torch.zeros(size, 0, dtype=self.dtype) for size in self.shape))

    @cached_property
    def _sums(self) -> tuple[Tensor, Tensor]:
        """Number of cells and sum of their squares."""
        numbers, squares = zip(*self.map(_energy), strict=True)
        count = torch.tensor(float(sum(numbers)), dtype=self.dtype)
        return count, torch.stack(squares).sum()

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        return self._sums[0]

    @property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        return self._sums[1]

    @cached_property
    def counts(self) -> Tensor:
        """Number of cells of each row, or the sum of their weights, ``(n_rows,)``."""
        return torch.cat(list(self.map(_counts)))

    def misfit(self, X: LowRank) -> Tensor:  # ()
        """``|P(X - M)|_F^2``, by one pass."""
        return torch.stack(list(self.map(_misfit, (X.left,), X.right))).sum()


def moments_of(
    found: dict[str, np.ndarray], dtype: np.dtype, by_column: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, standard deviation and number of the cells of columns, or of all cells."""
    count, mean, squares = (found[k] for k in ("count", "mean", "squares"))
    if not by_column:
        n, mean_of_all = count.sum(), count @ mean / count.sum()
        squares = squares.sum() + count @ np.square(mean - mean_of_all)
        count, mean = np.array([n]), np.array([mean_of_all])
        squares = np.array([squares])
    deviation = np.sqrt(squares / np.where(count > 0, count, 1))
    # A deviation within the rounding error of a constant is zero.
    deviation[deviation <= 32 * np.finfo(dtype).eps * np.abs(mean)] = 0
    return tuple(torch.from_numpy(x)[None] for x in (mean, deviation, count))  # type: ignore[return-value]


def _energy(data: SparseObserved, own: Sequence[Tensor]) -> tuple[int, Tensor]:
    return len(data.values), data.energy


def _counts(data: SparseObserved, own: Sequence[Tensor]) -> Tensor:
    return data.counts


def _misfit(data: SparseObserved, own: Sequence[Tensor], right: Tensor) -> Tensor:
    return data.misfit(LowRank(own[0], right))
