"""The observed cells of a matrix in blocks that are not in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.parts import arrow
from skmc.blocks.running import OnCluster, logged
from skmc.blocks.writing import BlockFolder
from skmc.cells import Scaling, SparseObserved
from skmc.linalg import LowRank, RowModel, work_of


@dataclass(frozen=True)
class Choice:
    """Some of the cells, the same ones in every division into blocks.

    Parameters
    ----------
    seed : int
        Determines the cells.
    share : float in (0, 1)
        Share of the cells that is held out.
    held_out : bool
        Whether the cells that are held out are chosen, or the others.
    """

    seed: int
    share: float
    held_out: bool

    def __call__(self, row: np.ndarray, col: np.ndarray) -> np.ndarray:
        """Choose among some cells.

        Parameters
        ----------
        row, col : int ndarray of shape (n_cells,)
            Positions.

        Returns
        -------
        bool ndarray of shape (n_cells,)
        """
        # The finalizer of SplitMix64.
        z = row.astype(np.uint64) << np.uint64(32) | col.astype(np.uint64)
        z += np.uint64((self.seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return (z < np.uint64(self.share * 2.0**64)) == self.held_out


@dataclass(frozen=True, eq=False)
class Block:
    """The cells of consecutive rows, or of consecutive columns, of a matrix.

    Parameters
    ----------
    row : int32 Tensor of shape (n_cells,)
        Position within the block, ascending.
    col : int32 Tensor of shape (n_cells,)
        Position on the other side.
    values : Tensor of shape (n_cells,)
        Scaled values.
    shape : tuple of int
        Number of rows of the block, and of the other side.
    weights : Tensor of shape (n_cells,), optional
        How often each cell counts.
    """

    row: Tensor
    col: Tensor
    values: Tensor
    shape: tuple[int, int]
    weights: Tensor | None = None

    def __sizeof__(self) -> int:  # Dask prefers to run tasks where their data are
        parts = (self.row, self.col, self.values, self.weights)
        return sum(x.nbytes for x in parts if x is not None)

    def cells(self, device: Any = "cpu") -> SparseObserved:
        """Convert to the type that solvers use.

        Parameters
        ----------
        device : device
            Where to compute.

        Returns
        -------
        SparseObserved
        """
        row, col = self.row.to(device).long(), self.col.to(device).long()
        weights = None if self.weights is None else self.weights.to(device)
        values = self.values.to(device)
        return SparseObserved(row, col, values, self.shape, weights=weights)


def loaded(
    path: Path,
    side: str,
    first: int,
    shape: tuple[int, int],
    choice: Choice | None,
    scaling: Scaling | None,
) -> Block:
    """Read and scale a block.

    Parameters
    ----------
    path : Path
        File of the block.
    side : {"row", "col"}
        Whether it is a block of rows or of columns.
    first : int
        Its first row.
    shape : tuple of int
        Number of rows of the block, and of the other side.
    choice : Choice or None
        Which cells to keep.
    scaling : Scaling or None
        How to scale the values.

    Returns
    -------
    Block
    """
    table = arrow().parquet.read_table(path, memory_map=True)
    cells = {name: table[name].to_numpy().copy() for name in table.column_names}
    if choice is not None:
        row, col = cells["row"], cells["col"]
        places = (row + first, col) if side == "row" else (col, row + first)
        kept = choice(*places)
        cells = {name: column[kept] for name, column in cells.items()}
    parts = {name: torch.from_numpy(column) for name, column in cells.items()}
    row, col, values = parts["row"], parts["col"], parts["value"]
    if scaling is not None:
        column = (col if side == "row" else row + first).long()
        shift, scale = (
            s[0, column] if s.shape[1] > 1 else s[0]
            for s in (scaling.shift, scaling.scale)
        )
        values = Scaling(shift, scale).standardise(values)
    return Block(row, col, values, shape, parts.get("weight"))


class BlockObserved:
    """The observed cells of a matrix in blocks, the counterpart of `SparseObserved`.

    A pass reads one block at a time, or on a cluster one for each worker.

    Parameters
    ----------
    folder : BlockFolder
        Where the blocks are.
    scaling : Scaling, optional
        How values are scaled when a block is read.
    choice : Choice, optional
        Which cells to use; all by default.
    systems_on : device, default="cpu"
        Where systems of rows are solved. Factors are kept on the CPU.
    """

    def __init__(
        self,
        folder: BlockFolder,
        scaling: Scaling | None = None,
        choice: Choice | None = None,
        systems_on: torch.device | str = "cpu",
    ):
        self.folder, self.scaling, self.choice = folder, scaling, choice
        self.systems_on = systems_on
        self.shape = folder.shape
        self.dtype = torch.from_numpy(np.empty(0, folder.dtype)).dtype
        self.device = torch.device("cpu")
        self.batch_shape = torch.Size(())
        self.sides: tuple[tuple, tuple] = ((), ())  # no linear priors

    @property
    def remote(self) -> bool:
        """Whether blocks are loaded in other processes, with devices of their own."""
        return isinstance(self.folder.runner, OnCluster)

    def positions(self) -> str:
        """The folder in which the positions of the cells are found.

        Returns
        -------
        str
        """
        return str(self.folder.path)

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """Scaling by the rules of `Scaling.of`.

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
        found = Scaling.of_moments(self.moments, how, centre=centre)
        return found.to(self.dtype)

    def scaled(self, scaling: Scaling) -> BlockObserved:
        """Return the same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            How to scale.

        Returns
        -------
        BlockObserved
        """
        return BlockObserved(self.folder, scaling, self.choice, self.systems_on)

    def split(
        self, share: float, seed: int, draw: Any = None
    ) -> tuple[BlockObserved, BlockObserved]:
        """Cells to train on, and a share of the cells, which is held out.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Determines the cells by a hash of their positions.
        draw : object
            Ignored.

        Returns
        -------
        train : BlockObserved
        held_out : BlockObserved
        """
        kept, held_out = (Choice(seed, share, held) for held in (False, True))
        return (
            BlockObserved(self.folder, self.scaling, kept, self.systems_on),
            BlockObserved(self.folder, self.scaling, held_out, self.systems_on),
        )

    def to(self, device: torch.device | str) -> BlockObserved:
        """Return the same cells, whose systems are solved on a device.

        Parameters
        ----------
        device : device
            Blocks are moved there when they are used. "auto" is CUDA if the process
            that reads a block has a CUDA device.

        Returns
        -------
        BlockObserved
        """
        return BlockObserved(self.folder, self.scaling, self.choice, device)

    def in_single(self) -> BlockObserved:
        """Return the object itself: blocks have the precision of their files.

        Returns
        -------
        BlockObserved
        """
        return self

    def moments(self, by_column: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, standard deviation and number of the unscaled cells, weighted.

        Parameters
        ----------
        by_column : bool
            Whether each column has its own.

        Returns
        -------
        tuple of float64 Tensor of shape (1, n_cols) or (1, 1)
        """
        found = self.folder.statistics["col"]
        if "weighted_count" in found:
            names = ("count", "mean", "squares")
            found = {name: found[f"weighted_{name}"] for name in names}
        return moments_of(found, self.folder.dtype, by_column)

    @property
    def identity(self) -> list[Any]:
        """Numbers that differ between two sets of cells."""
        found = self.folder.statistics
        return [self.shape, *(x for side in found.values() for x in side.values())]

    @cached_property
    def _handles(self) -> dict[str, Sequence[Any]]:
        handles = {}
        for side, n_others in (("row", self.shape[1]), ("col", self.shape[0])):
            starts = self.folder.starts[side].tolist()
            loaders = [
                partial(
                    loaded,
                    self.folder.path / side / f"{k:06d}.parquet",
                    side,
                    first,
                    (last - first, n_others),
                    self.choice,
                    self.scaling,
                )
                for k, (first, last) in enumerate(pairwise(starts))
            ]
            handles[side] = self.folder.runner.load(loaders)
        return handles

    def map(
        self, side: str, function: Any, own: Tensor | None, *common: Any
    ) -> Iterator[Any]:
        """Call ``function(block, own, *common)`` for all blocks of a side, in order.

        Parameters
        ----------
        side : {"row", "col"}
            Blocks of rows or of columns.
        function : callable
            Function to call; it must be importable.
        own : Tensor of shape (n, k) or None
            A tensor whose rows belong to the rows of the blocks.
        *common : object
            Arguments that all calls share.

        Returns
        -------
        iterator
            The results, each of which is logged.
        """
        each = None
        if own is not None:
            sizes = np.diff(self.folder.starts[side]).tolist()
            each = [part.clone() for part in own.split(sizes)]
        found = self.folder.runner.map(
            function, self._handles[side], *common, each=each
        )
        return logged(found, f"block of {side}s", len(self._handles[side]))

    def solved(self, model: RowModel) -> Tensor:
        """Solve a row model for all rows.

        Parameters
        ----------
        model : RowModel
            A model of rows.

        Returns
        -------
        Tensor of shape (n_rows, rank)
        """
        return torch.cat(list(self.map("row", _solved, None, model)))

    @property
    def work(self) -> int:
        """Work of a pass, see `skmc.linalg.work_of`."""
        return work_of(int(self.folder.statistics["row"]["count"].sum()))

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0.

        Returns
        -------
        LowRank
        """
        return LowRank(*(torch.zeros(size, 0, dtype=self.dtype) for size in self.shape))

    @cached_property
    def _sums(self) -> tuple[Tensor, Tensor]:
        """Number of cells and sum of their squares."""
        found = list(self.map("row", _energy, None))
        count = torch.tensor(float(sum(n for n, _ in found)), dtype=self.dtype)
        return count, torch.stack([square for _, square in found]).sum()

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        return self._sums[0]

    @property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        return self._sums[1]

    def counts(self, side: str) -> Tensor:
        """Number of cells of each row or column, or the sum of their weights.

        Parameters
        ----------
        side : {"row", "col"}
            Which of them.

        Returns
        -------
        Tensor of shape (n,)
        """
        if side not in self._counts:
            self._counts[side] = torch.cat(list(self.map(side, _counts, None)))
        return self._counts[side]

    @cached_property
    def _counts(self) -> dict[str, Tensor]:
        return {}

    def misfit(self, X: LowRank) -> Tensor:
        """``|P(X - M)|_F^2``, by one pass.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape ()
        """
        parts = self.map("row", _misfit, X.left, X.right)
        return torch.stack(list(parts)).sum()


def moments_of(
    found: dict[str, np.ndarray], dtype: np.dtype, by_column: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, standard deviation and number of the cells of columns, or of all cells.

    Parameters
    ----------
    found : dict of ndarray
        "count", which may be a sum of weights, "mean" and "squares" of each column.
    dtype : dtype
        Type of the cells.
    by_column : bool
        Whether each column has its own.

    Returns
    -------
    tuple of float64 Tensor of shape (1, n_cols) or (1, 1)
    """
    count, mean, squares = (found[k] for k in ("count", "mean", "squares"))
    if not by_column:
        n, whole = count.sum(), count @ mean / count.sum()
        squares = squares.sum() + count @ np.square(mean - whole)
        count, mean = np.array([n]), np.array([whole])
        squares = np.array([squares])
    deviation = np.sqrt(squares / np.where(count > 0, count, 1))
    # The rounding of a constant is not a deviation.
    deviation[deviation <= 32 * np.finfo(dtype).eps * np.abs(mean)] = 0
    return tuple(torch.from_numpy(x)[None] for x in (mean, deviation, count))  # type: ignore[return-value]


def _solved(block: Block, own: None, model: RowModel) -> Tensor:
    return block.cells().solved(model)


def _energy(block: Block, own: None) -> tuple[int, Tensor]:
    return len(block.values), block.cells().energy


def _counts(block: Block, own: None) -> Tensor:
    return block.cells().counts


def _misfit(block: Block, left: Tensor, right: Tensor) -> Tensor:
    return block.cells().misfit(LowRank(left, right))
