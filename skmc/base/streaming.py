"""``partial_fit`` of factorizations of cells in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from skmc.base.partial import LearnsMore, MoreCells
from skmc.base.priors import Priors
from skmc.cells import Entries, Scaling, SparseObserved
from skmc.linalg import RowModel, threads_for, work_of
from skmc.new_rows import RowStream


class StreamsRows(LearnsMore):
    """Mixin for a `FactoredCompleter` with one `RowModel` and ``_seen``.

    List it before the base class. It needs the parameter ``biases``.
    """

    biases: str | None
    _values: np.ndarray
    _sums: tuple[torch.Tensor, torch.Tensor, torch.Tensor]

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted: dict[str, Any] = super()._fitted(prepared, outputs)  # type: ignore[misc]
        if type(prepared.cells) is Entries:
            place = prepared.cells.rows * prepared.data.shape[1] + prepared.cells.cols
            order = np.argsort(place, kind="stable")  # of `_seen`
            fitted["_values"] = prepared.cells.values[order]
        return fitted

    def _fit_more(self, more: MoreCells) -> tuple[Priors, dict[str, Any]]:
        self._check_can_stream()
        model: RowModel = self._models[0]  # type: ignore[attr-defined]
        starts, cols = self._seen  # type: ignore[attr-defined]
        values = self._values
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        touched, local = np.unique(more.rows, return_inverse=True)
        known = touched[touched < len(starts) - 1]
        old = np.flatnonzero(np.isin(rows, known))
        shape = len(touched), more.shape[1]
        before = _cells(
            np.searchsorted(touched, rows[old]), cols[old], values[old], shape
        )
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
        scaling = Scaling.of(whole, self.scaling, centre=self.centre)  # type: ignore[attr-defined]
        row_biases = self.biases in ("both", "rows")
        with threads_for(work_of(len(after.values))):
            stream = self._stream().extended(*more.shape, row_biases)
            stream = stream.replaced(
                torch.from_numpy(touched),
                before,
                after,
                scaling,
                model,
                row_biases=row_biases,
                col_biases=self.biases in ("both", "columns"),
            )
        model = replace(model, F=stream.cols[:, :-1], offset=stream.cols[:, -1])
        return Priors.of(rows, cols, values, more.shape), {
            "row_factors_": stream.rows.numpy(),
            "col_factors_": stream.cols.numpy(),
            "_models": [model],
            "_scaling": scaling,
            "_seen": (whole.starts.numpy(), cols.astype(np.int32)),
            "_values": values,
            "_sums": (stream.gram, stream.right, stream.origin),
        }

    def _stream(self) -> RowStream:
        factors = self._factors()  # type: ignore[attr-defined]
        if hasattr(self, "_sums"):
            return RowStream(factors.left, factors.right, *self._sums)
        starts, cols = self._seen  # type: ignore[attr-defined]
        values = self._values
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        shape = len(factors.left), len(factors.right)
        return RowStream.of(
            factors.left, factors.right, _cells(rows, cols, values, shape)
        )

    def _check_can_stream(self) -> None:
        reason = None
        if isinstance(self._seen, str):  # type: ignore[attr-defined]
            reason = "cells that are not in memory"
        elif hasattr(self, "_fitted_cells"):
            reason = "features, graphs or weights"
        elif getattr(self, "alpha", None) is not None:
            reason = "alpha"
        if reason:
            raise ValueError(
                f"partial_fit cannot continue a fit with {reason}; call fit with all "
                "cells."
            )


def _cells(rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> SparseObserved:
    rows, cols = (np.asarray(x).astype(np.int64) for x in (rows, cols))
    return SparseObserved.of(rows, cols, np.asarray(values), shape)
