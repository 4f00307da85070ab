"""Scores of draws of held-out cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import BaseCompleter
from skmc.cells import Entries
from skmc.metrics import crps
from skmc.model_selection.i_score import energy_i_score
from skmc.tables import Source, drawn_by

OF_ALL_CELLS = "energy_i_score"  # the metric that holds out no cells


def metrics_of_draws(
    named: Mapping[str, Any], metrics: Sequence[str], draws: int
) -> Sequence[str]:
    """Check the arguments of a comparison of draws."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws!r}.")
    if tuple(metrics) == ("nmae",):
        metrics = ("crps",)
    names = ("crps", OF_ALL_CELLS)
    if not metrics or not set(metrics) <= set(names):
        raise ValueError(
            f"metrics of draws must be among {names}, got {list(metrics)}."
        )
    if not any(hasattr(completer, "sample") for completer in named.values()):
        raise ValueError(
            f"draws={draws} needs a completer with the method sample, such as "
            f"GaussianCompleter; {', '.join(named)} have none."
        )
    return metrics


@dataclass(frozen=True)
class DrawScore:
    """CRPS of draws of held-out cells, in standard deviations of their columns.

    If no cells are held out, the energy-I-Score.

    Parameters
    ----------
    n_draws : int
        Number of draws.
    seed : int
        Seed of the draws.
    units : ndarray of shape (n_cols,)
        Units of the columns.
    source : Source or None
        Table of the cells, if they are not those of a matrix. Its categories are not
        scored.
    """

    n_draws: int
    seed: int
    units: np.ndarray
    source: Source | None

    def __call__(
        self, completer: BaseCompleter, train: Entries, test: Entries
    ) -> dict[str, float]:
        sample = getattr(completer, "sample", None)
        if sample is None:
            raise TypeError("not fitted, because it has no method sample")
        if not len(test):
            score = energy_i_score(completer, train.to_cells(), self.n_draws, self.seed)
            return {OF_ALL_CELLS: score}
        given, scored = train.to_cells(), np.ones(len(test), bool)
        if self.source is None:
            completer.fit(given)
            draws = np.asarray(sample(given, self.n_draws, self.seed), float)
        else:
            draws = drawn_by(completer, self.source, given, self.n_draws, self.seed)
            scored = self.source.table.measured[test.cols]
        rows, cols = test.rows[scored], test.cols[scored]
        values = draws[:, rows, cols] / self.units[cols]
        truth = test.values[scored] / self.units[cols]
        return {"crps": crps(values[:, None], truth[None])}


def deviations(cells: Entries) -> np.ndarray:  # (n_cols,)
    """Standard deviations of the columns; 1 for constant or empty columns."""
    cols, n_cols = cells.cols, cells.matrix_shape[1]
    count = np.maximum(np.bincount(cols, minlength=n_cols), 1)
    mean = np.bincount(cols, cells.values, n_cols) / count
    squares = np.square(cells.values - mean[cols])
    variance = np.bincount(cols, squares, n_cols) / count
    return np.where(variance > 0, np.sqrt(variance), 1.0)
