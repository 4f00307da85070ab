"""The base class of completers that run an iterative solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from skmc import patterns
from skmc.base import batching, fitting
from skmc.base.completer import READING, BaseCompleter
from skmc.base.fitted import Completion, Fitted, ScaledRows
from skmc.base.reporting import warn_of_units
from skmc.base.trials import no_choice
from skmc.cells import Cells, Given
from skmc.linalg import Randomness, resolve_device
from skmc.loop import Solution
from skmc.new_rows import FoldIn, RowIndex
from skmc.parameters import Params
from skmc.solvers import Solver

EDGES = " edges"  # ends the name of a sparse graph among the outputs of a solver


class IterativeCompleter(BaseCompleter):
    """Base class that scales the cells, runs a solver and completes new rows.

    Subclasses define `_make_solver`, and `_choose` if they choose a hyper-parameter on
    held-out cells. Those with the parameters ``early_stopping``,
    ``validation_fraction`` and ``n_iter_no_change`` can stop at held-out cells, those
    with ``warm_start`` can start from the last fit.

    Parameters
    ----------
    {reading}
    """

    check_every: ClassVar[int] = 25
    # Whether scaling="auto" subtracts the mean of cells of the same unit.
    centre: ClassVar[bool] = True
    # False for fits that follow a schedule and normally end at max_iter.
    warn_at_max_iter: ClassVar[bool] = True
    # Name of the parameter that sets the step length.
    step_parameter: ClassVar[str | None] = None
    # Names of the parameters whose "auto" `_choose` replaces. If none of them is
    # "auto", it fits nothing.
    chosen: ClassVar[tuple[str, ...]] = ()
    # Whether the schedule may end before the observed cells are fitted.
    may_underfit: ClassVar[bool] = False

    _declared = (*READING, "max_iter", "tol", "scaling", "device", "random_state")

    _fit_cells = fitting.fit_given
    _choose = no_choice
    batch_key = batching.batch_key
    batch_prepare = batching.batch_prepare
    batch_run = batching.batch_run
    batch_accept = batching.batch_accept
    batch_memory = batching.batch_memory

    @abstractmethod
    def _make_solver(self, data: Any, params: Params, rng: Randomness) -> Solver:
        """Return the solver for scaled ``data`` without changing ``self``.

        ``params`` has all hyper-parameters as attributes; ``known``, the graphs that
        `fit` was given, by name; and ``last``, the `Fitted` of the fit from which this
        one starts, or None. In a batch, those named by
        ``completer_tags.batched`` are tensors of shape (n_members,).
        """

    def _scaled(self, given: Given) -> Given:
        """Return the scaled cells on the device."""
        device = self.device if given.data.remote else resolve_device(self.device)
        data = given.data if device == given.data.device else given.data.to(device)
        if given.scaling is not None:  # with its own units
            return replace(given, data=data)
        given = replace(given, data=data)
        in_memory = given.read is not None
        if self.scaling == "auto" and given.statistics.one_unit and in_memory:
            warn_of_units(self, data)
        scaling = given.scaling_of(self.scaling, centre=self.centre)
        return replace(given, data=data.scaled(scaling), scaling=scaling)

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        """Draw the share of the observed cells to hold out."""
        hidden = patterns.random(cells, share, spare=True, random_state=seed)
        # Columns that represent one cell of a table are held out together.
        return hidden[:, self._first_of_cells(cells.shape[1])]

    def _for_trials(self, data: Any) -> Cells:
        """Return the cells for trials, of which some are held out."""
        return data

    def _units_per_cell(self, n_cols: int) -> float:
        """Return the number of hidden units with an output for each cell of a row."""
        return 0.0

    def _params(
        self,
        chosen: Mapping[str, Any],
        last: Fitted | None = None,
        known: Mapping[str, Any] = MappingProxyType({}),
    ) -> SimpleNamespace:
        more = {**chosen, "last": last, "known": known}
        return SimpleNamespace(**{**self.get_params(deep=False), **more})

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        """Return fitted attributes, of which ``_fitted`` makes all predictions."""
        return {"_fitted": self._completion(given, outputs)}

    def _completion(self, given: Given, outputs: dict[str, Any]) -> Completion:
        """Make the result from a completed matrix and a map of new rows."""
        statistics, pictures = given.statistics, self.completer_tags.pictures
        whole = given.scaling.undo(outputs["X"]).cpu().numpy()
        if not pictures:
            whole = statistics.fill(given.cells, whole, of_fit=True)
        scaling = given.scaling.to("cpu", torch.float64)
        row_map = self._row_map(outputs, given.data)
        warm = {
            name: _on_cpu(value)
            for name, value in outputs.items()
            if name == "parameters" or name.endswith(EDGES)
        }
        return Completion(
            statistics,
            whole.astype(given.matrix.dtype),
            RowIndex(given.matrix),
            ScaledRows(scaling, statistics.varies, row_map),
            pictures,
            warm,
        )

    def _row_map(
        self, outputs: dict[str, Any], data: Any
    ) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the map that completes scaled new rows from their values and mask."""
        return FoldIn.later(outputs["X"], data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        """Return a warning if the fit did not succeed, else None."""
        return fitting.advice_on(self, solution, misfit)


def _on_cpu(value: Any) -> Any:
    return [p.cpu() for p in value] if isinstance(value, list) else value.cpu()
