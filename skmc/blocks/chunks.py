"""Passes over the chunks of Dask collections, one chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.sorting import statistics
from skmc.cells import Scaling, to_cells
from skmc.linalg import threads_for, work_of

TOGETHER = 8  # number of sums that one task adds


class Chunks:
    """The chunks of a Dask Array or DataFrame, which are rows.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows of the matrix.
    missing_values : float
        Number that marks missing cells, in addition to NaN.
    scaling : Scaling, optional
        Scaling of the values when a chunk is read.
    """

    def __init__(self, X: Any, missing_values: float, scaling: Scaling | None = None):
        self.X, self.missing_values, self.scaling = X, missing_values, scaling
        if not hasattr(X, "map_partitions"):
            X = X.rechunk({1: -1})
        self.parts = list(np.ravel(X.to_delayed()))

    def _tasks(self, function: Callable[..., Any], *common: object) -> list[Any]:
        import dask

        task = dask.delayed(_called, pure=False)
        shared = [dask.delayed(x, pure=False, traverse=False) for x in common]
        return [
            task(function, part, self.missing_values, self.scaling, *shared)
            for part in self.parts
        ]

    def total(self, function: Callable[..., Any], *common: object) -> Any:
        """Sum ``function(values, seen, *common)`` over all chunks."""
        import dask

        add = dask.delayed(_added, pure=False)
        sums = self._tasks(function, *common)
        while len(sums) > 1:
            groups = range(0, len(sums), TOGETHER)
            sums = [add(sums[k : k + TOGETHER]) for k in groups]
        return sums[0].compute()

    def head(self, n: int) -> np.ndarray:  # (k, n_cols)
        """The first rows, not scaled."""
        return np.concatenate(list(self._first(n)))[:n]

    def _first(self, n: int) -> Iterator[np.ndarray]:
        for part in self.parts:
            cells = to_cells(part.compute(), missing_values=self.missing_values)
            yield cells
            n -= len(cells)
            if n <= 0:
                return

    def sample(self, n: int, seed: int) -> np.ndarray:  # (min(n, n_rows), n_cols)
        """Draw rows at random, not scaled."""
        import dask

        sizes = self.statistics["sizes"]
        m, ends = int(sizes.sum()), np.cumsum(sizes)
        rows = np.sort(np.random.RandomState(seed).permutation(m)[:n])
        taken = dask.delayed(_taken, pure=False)
        tasks = [
            taken(part, rows[(rows >= end - size) & (rows < end)] - (end - size))
            for part, size, end in zip(self.parts, sizes, ends, strict=True)
        ]
        rows_of_chunks = [np.asarray(to_cells(p)) for p in dask.compute(*tasks)]
        cells: np.ndarray = to_cells(
            np.concatenate(rows_of_chunks), missing_values=self.missing_values
        )
        return cells

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """ "row" and "col" as of `skmc.blocks.sorting.gathered`, and "sizes"."""
        import dask

        of_chunks = dask.compute(*self._tasks(_counted))
        sizes = np.array([len(rows["count"]) for rows, _ in of_chunks])
        rows = {
            name: np.concatenate([part[name] for part, _ in of_chunks])
            for name in ("count", "mean")
        }
        cols = reduce(_merged, (part for _, part in of_chunks))
        if not cols["count"].sum():
            raise ValueError("X has no observed cell; at least one is needed.")
        return {"row": rows, "col": cols, "sizes": sizes}


def _called(
    function: Callable[..., Any],
    part: Any,
    missing_values: float,
    scaling: Scaling | None,
    *common: object,
) -> Any:
    cells = to_cells(part, missing_values=missing_values)
    values = torch.from_numpy(np.array(cells))  # Dask's arrays may be read-only
    seen = ~torch.isnan(values)
    values = torch.where(seen, values.double(), 0.0)
    with torch.no_grad(), threads_for(work_of(values.numel(), values.shape[1])):
        if scaling is not None:
            values = torch.where(seen, scaling.standardise(values), 0.0)
        return function(values, seen, *common)


def _added(parts: list[tuple]) -> tuple:
    return tuple(sum(terms[1:], start=terms[0]) for terms in zip(*parts, strict=True))


def _taken(part: Any, rows: np.ndarray) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def _counted(values: Tensor, seen: Tensor) -> tuple[dict, dict]:
    rows, cols = (place.numpy() for place in seen.nonzero(as_tuple=True))
    cells = values[seen].numpy()
    shape = seen.shape
    return statistics(rows, cells, shape[0]), _by_column(cols, cells, shape[1])


def _by_column(cols: np.ndarray, cells: np.ndarray, n: int) -> dict[str, np.ndarray]:
    order = np.argsort(cols, kind="stable")
    return statistics(cols[order], cells[order], n)


def _merged(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, Any]:
    count = a["count"] + b["count"]
    share = b["count"] / np.maximum(count, 1)
    apart = b["mean"] - a["mean"]
    return {
        "count": count,
        "mean": a["mean"] + share * apart,
        "squares": a["squares"] + b["squares"] + a["count"] * share * apart**2,
        "low": np.minimum(a["low"], b["low"]),
        "high": np.maximum(a["high"], b["high"]),
    }
