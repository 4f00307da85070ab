"""Single blocks: reading, selection of cells, and calls for chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.fragments import arrow
from skmc.cells import Scaling, SparseObserved, SparseValues


@dataclass(frozen=True)
class CellSelection:
    """A selection of cells that is independent of the block layout.

    Parameters
    ----------
    seed : int
        Seed of the selection.
    share : float in (0, 1)
        Share of the cells that is held out.
    held_out : bool
        Whether to select the held-out cells or the others.
    """

    seed: int
    share: float
    held_out: bool

    def __call__(
        self,
        row: np.ndarray,  # (n_cells,)
        col: np.ndarray,  # (n_cells,)
    ) -> np.ndarray:  # (n_cells,)
        """Select some of the given cells."""
        # The finalizer of SplitMix64.
        z = row.astype(np.uint64) << np.uint64(32) | col.astype(np.uint64)
        z += np.uint64((self.seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return (z < np.uint64(self.share * 2.0**64)) == self.held_out


def loaded(
    path: Path,
    side: str,
    first: int,
    shape: tuple[int, int],
    choice: CellSelection | None,
    scaling: Scaling | None,
) -> SparseObserved:
    """Read and scale a block."""
    table = arrow().parquet.read_table(path, memory_map=True)
    cells = {name: table[name].to_numpy().copy() for name in table.column_names}
    if choice is not None:
        row, col = cells["row"], cells["col"]
        places = (row + first, col) if side == "row" else (col, row + first)
        kept = choice(*places)
        cells = {name: column[kept] for name, column in cells.items()}
    columns = {name: torch.from_numpy(column) for name, column in cells.items()}
    row, col, values = columns["row"], columns["col"], columns["value"]
    if scaling is not None:
        column = col if side == "row" else row + first
        shift, scale = (
            s[0, column] if s.shape[1] > 1 else s[0]
            for s in (scaling.shift, scaling.scale)
        )
        values = Scaling(shift, scale).standardise(values)
    return SparseObserved(row, col, values, shape, columns.get("weight"))


def over_chunks(
    block: SparseObserved,
    own: Sequence[Tensor],  # (n_rows of the block, k)
    function: Callable[..., Any],
    device: torch.device | str,
    small: bool,
    *common: object,
) -> list[Any]:
    """`SparseObserved.map` for one block, on a device."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not small:  # cached attributes of the block and its chunks are released
        block, function = replace(block), partial(_of_copy, function)
    if torch.device(device).type == "cpu":
        return list(block.map(function, own, *common))
    moved = [_moved(x, device) for x in common]
    results = block.to(device).map(function, [x.to(device) for x in own], *moved)
    return [_moved(result, "cpu") for result in results]


def _of_copy(function: Callable[..., Any], cells: SparseValues, *rest: object) -> Any:
    return function(replace(cells), *rest)


def _moved(x: Any, device: torch.device | str) -> Any:
    if isinstance(x, tuple):
        return tuple(_moved(part, device) for part in x)
    return x.to(device) if hasattr(x, "to") else x
