"""``partial_fit`` of factors: new systems of rows, and sums for those of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from numpy.typing import ArrayLike

from skmc.base import FittedFactors, MoreCells
from skmc.blocks import StoredCells
from skmc.cells import Given, Priors, Scaling, SparseObserved
from skmc.linalg import threads_for, work_of
from skmc.new_rows import RowStream


def with_more(
    fitted: FittedFactors,
    more: MoreCells,
    biases: str | None,
    scaling_of: Callable[[Given], Scaling],
) -> FittedFactors:
    """Update the factors of one model to more cells.

    Parameters
    ----------
    fitted : FittedFactors
        Factors of the cells so far.
    more : MoreCells
        Cells to add.
    biases : {"both", "rows", "columns"} or None
        Biases of the model.
    scaling_of : callable
        Function that makes the scaling of all cells.

    Returns
    -------
    FittedFactors
    """
    fitted = _in_memory(fitted)
    model, values = fitted.models[0], cast(np.ndarray, fitted.values)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    touched, local = np.unique(more.rows, return_inverse=True)
    known = touched[touched < len(starts) - 1]
    old = np.flatnonzero(np.isin(rows, known))
    shape = len(touched), more.shape[1]
    before = _cells(np.searchsorted(touched, rows[old]), cols[old], values[old], shape)
    kept = ~np.isin(
        before.rows.numpy() * shape[1] + before.cols.numpy(),
        local * shape[1] + more.cols,
    )
    after = _cells(
        np.concatenate([before.rows[kept], local]),
        np.concatenate([before.cols[kept], more.cols]),
        np.concatenate([before.values[kept], more.values.astype(values.dtype)]),
        shape,
    )
    rows = np.concatenate([np.delete(rows, old), touched[after.rows]])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    cols = np.concatenate([np.delete(cols, old), after.cols.numpy()])[order]
    values = np.concatenate([np.delete(values, old), after.values.numpy()])[order]
    whole = SparseObserved(
        torch.from_numpy(rows),
        torch.from_numpy(cols.astype(np.int64)),
        torch.from_numpy(values),
        more.shape,
    )
    one_unit = fitted.statistics.one_unit
    statistics = Priors.of(rows, cols, values, more.shape, one_unit=one_unit)
    given = Given(whole, statistics)
    scaling = scaling_of(given)
    row_biases = biases in ("both", "rows")
    with threads_for(work_of(len(after.values))):
        stream = _stream(fitted).extended(*more.shape, row_biases)
        stream = stream.replaced(
            torch.from_numpy(touched),
            before,
            after,
            scaling,
            model,
            row_biases=row_biases,
            col_biases=biases in ("both", "columns"),
        )
    model = replace(model, F=stream.cols[:, :-1], offset=stream.cols[:, -1])
    return replace(
        fitted,
        statistics=statistics,
        scaling=scaling,
        models=[model],
        left=stream.rows.numpy(),
        right=stream.cols.numpy(),
        seen=(whole.starts.numpy(), cols.astype(np.int32)),
        values=values,
        sums=(stream.gram, stream.right, stream.origin),
    )


def _stream(fitted: FittedFactors) -> RowStream:
    factors = fitted.factors()
    if fitted.sums is not None:
        return RowStream(factors.left, factors.right, *fitted.sums)
    starts, cols = fitted.seen
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = len(factors.left), len(factors.right)
    cells = _cells(rows, cols, fitted.values, shape)
    return RowStream.of(factors.left, factors.right, cells)


def _in_memory(fitted: FittedFactors) -> FittedFactors:
    """The same factors with their cells in memory, or raise an error."""
    reason = None
    if isinstance(fitted.seen, StoredCells):
        starts, cols, values, weights = fitted.seen.all()
        reason = None if weights is None else "weights"
        fitted = replace(fitted, seen=(starts, cols), values=values)
    elif fitted.identity is not None:
        reason = "features, graphs or weights"
    elif fitted.alpha is not None:
        reason = "alpha"
    if reason:
        raise ValueError(
            f"partial_fit cannot continue a fit with {reason}; call fit with all cells."
        )
    return fitted


def _cells(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None, shape: tuple[int, int]
) -> SparseObserved:
    rows, cols = (np.asarray(x).astype(np.int64) for x in (rows, cols))
    return SparseObserved.of(rows, cols, np.asarray(values), shape)
