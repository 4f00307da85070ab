"""The rows of Dask collections, read one chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.blocks.observed import moments_of
from skmc.blocks.sorting import statistics
from skmc.cells import Observed, Scaling, to_cells
from skmc.linalg import LowRank, threads_for, work_of

TOGETHER = 8  # sums that one task adds up
ROWS_TRIED = 1000  # for choices on held-out cells


class ChunkedRows:
    """The cells of a Dask Array or DataFrame whose chunks are rows.

    Nothing but sums over the chunks is kept: each pass computes the chunks again, by
    Dask's current scheduler or client.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows.
    missing_values : float
        A number that marks missing cells, in addition to NaN.
    scaling : Scaling, optional
        How values are scaled when a chunk is read.
    """

    def __init__(self, X: Any, missing_values: float, scaling: Scaling | None = None):
        self.X, self.missing_values, self.scaling = X, missing_values, scaling
        if not hasattr(X, "map_partitions"):
            X = X.rechunk({1: -1})
        self.parts = list(np.ravel(X.to_delayed()))
        self.dtype, self.device = torch.float64, torch.device("cpu")
        self.remote = False  # sums are taken to this process
        self.batch_shape = torch.Size(())

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
        return Scaling.of_moments(self.moments, how, centre=centre)

    def split(
        self, share: float, seed: int, draw: Callable[[np.ndarray, float, int], Any]
    ) -> tuple[Observed, Observed | None]:
        """Split the first 1000 rows, see `Observed.split`.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Determines the cells.
        draw : callable
            As for `Observed.split`.

        Returns
        -------
        train : Observed
        held_out : Observed or None
        """
        return self.first_rows().split(share, seed, draw)

    def first_rows(self, n: int = ROWS_TRIED) -> Observed:
        """The first rows, scaled.

        Parameters
        ----------
        n : int, default=1000
            How many at most.

        Returns
        -------
        Observed
        """
        values = torch.from_numpy(self.head(n)).double()
        if self.scaling is not None:
            values = self.scaling.standardise(values)
        return Observed(values, ~torch.isnan(values))

    def scaled(self, scaling: Scaling) -> ChunkedRows:
        """Return the same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            How to scale.

        Returns
        -------
        ChunkedRows
        """
        found = ChunkedRows(self.X, self.missing_values, scaling)
        found.__dict__["statistics"] = self.statistics
        return found

    def _tasks(self, function: Callable[..., Any], *common: object) -> list[Any]:
        import dask

        task = dask.delayed(_called, pure=False)
        shared = [dask.delayed(x, pure=False, traverse=False) for x in common]
        return [
            task(function, part, self.missing_values, self.scaling, *shared)
            for part in self.parts
        ]

    def total(self, function: Callable[..., Any], *common: object) -> Any:
        """Add up ``function(values, seen, *common)`` over all chunks.

        Parameters
        ----------
        function : callable
            Maps float64 values and a bool mask, both (n_rows, n_cols), to a tuple of
            tensors. It must be importable.
        *common : object
            Arguments that all calls share.

        Returns
        -------
        tuple of tensors
        """
        import dask

        add = dask.delayed(_added, pure=False)
        parts = self._tasks(function, *common)
        while len(parts) > 1:
            groups = range(0, len(parts), TOGETHER)
            parts = [add(parts[k : k + TOGETHER]) for k in groups]
        return parts[0].compute()

    def head(self, n: int) -> np.ndarray:
        """The first rows, not scaled.

        Parameters
        ----------
        n : int
            How many at most.

        Returns
        -------
        ndarray of shape (k, n_cols)
        """
        return np.concatenate(list(self._first(n)))[:n]

    def _first(self, n: int) -> Iterator[np.ndarray]:
        for part in self.parts:
            cells = to_cells(part.compute(), missing_values=self.missing_values)
            yield cells
            n -= len(cells)
            if n <= 0:
                return

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Rows that are drawn at random, not scaled.

        Parameters
        ----------
        n : int
            How many at most.
        seed : int
            Determines the rows.

        Returns
        -------
        ndarray of shape (min(n, n_rows), n_cols)
            In their order.
        """
        import dask

        sizes = self.statistics["sizes"]
        m, ends = int(sizes.sum()), np.cumsum(sizes)
        rows = np.sort(np.random.RandomState(seed).permutation(m)[:n])
        taken = dask.delayed(_taken, pure=False)
        parts = [
            taken(part, rows[(rows >= end - size) & (rows < end)] - (end - size))
            for part, size, end in zip(self.parts, sizes, ends, strict=True)
        ]
        found = [np.asarray(to_cells(p)) for p in dask.compute(*parts)]
        cells: np.ndarray = to_cells(
            np.concatenate(found), missing_values=self.missing_values
        )
        return cells

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """ "row" and "col" as of `skmc.blocks.sorting.gathered`, and "sizes"."""
        import dask

        parts = dask.compute(*self._tasks(_counted))
        sizes = np.array([len(rows["count"]) for rows, _ in parts])
        rows = {
            name: np.concatenate([part[name] for part, _ in parts])
            for name in ("count", "mean")
        }
        cols = reduce(_merged, (part for _, part in parts))
        if not cols["count"].sum():
            raise ValueError("X has no observed cell; at least one is needed.")
        return {"row": rows, "col": cols, "sizes": sizes}

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        found = self.statistics
        return len(found["row"]["count"]), len(found["col"]["count"])

    @property
    def work(self) -> int:
        """Work of a pass over the largest chunk, see `skmc.linalg.work_of`."""
        n_cols = self.shape[1]
        return work_of(int(self.statistics["sizes"].max()) * n_cols, n_cols)

    @property
    def identity(self) -> list[Any]:
        """Numbers that differ between two sets of cells."""
        cols = self.statistics["col"]
        return [self.shape, *(cols[name] for name in ("count", "mean", "squares"))]

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        count = self.statistics["col"]["count"].sum()
        return torch.tensor(float(count), dtype=torch.float64)

    @cached_property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        found: Tensor = self.total(_energy)[0]
        return found

    def misfit(self, X: LowRank) -> Tensor:
        """``|P(X - M)|_F^2`` of the zero matrix: no other one is formed.

        Parameters
        ----------
        X : LowRank
            The zero matrix.

        Returns
        -------
        Tensor of shape ()
        """
        return self.energy

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0.

        Returns
        -------
        LowRank
        """
        return LowRank(*(torch.zeros(size, 0, dtype=self.dtype) for size in self.shape))

    def to(self, *args: Any) -> ChunkedRows:
        """Return the object itself: chunks are computed where Dask has them.

        Parameters
        ----------
        *args : device or dtype
            Ignored.

        Returns
        -------
        ChunkedRows
        """
        return self

    def moments(self, by_column: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, standard deviation and number of the unscaled cells.

        Parameters
        ----------
        by_column : bool
            Whether each column has its own.

        Returns
        -------
        tuple of float64 Tensor of shape (1, n_cols) or (1, 1)
        """
        return moments_of(self.statistics["col"], np.dtype(float), by_column)


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


def _energy(values: Tensor, seen: Tensor) -> tuple[Tensor]:
    return (values.square().sum(),)


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
