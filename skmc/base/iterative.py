"""The base class of completers that run an iterative solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc import patterns
from skmc.base import batching, fitting
from skmc.base.completer import BaseCompleter
from skmc.base.fitted import Completion, Fitted, ScaledRows
from skmc.base.trials import no_choice
from skmc.cells import Cells, Given
from skmc.linalg import Randomness, resolve_device
from skmc.loop import Solution
from skmc.new_rows import FoldIn, RowIndex
from skmc.solvers import Solver

# Share of the observed cells that are held out to choose a hyper-parameter.
HELD_OUT_SHARE = 0.1
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
    # Whether scaling="auto" subtracts the mean if all columns have the same unit.
    centre: ClassVar[bool] = True
    # False for fits that follow a schedule of max_iter steps and end as planned.
    warn_at_max_iter: ClassVar[bool] = True
    # Name of the parameter that sets the length of steps.
    step_parameter: ClassVar[str | None] = None
    # Names of the parameters that `_choose` chooses where they are "auto". If all have
    # values, it fits nothing.
    chosen: ClassVar[tuple[str, ...]] = ()
    # Whether the schedule may end before the observed cells are fitted.
    may_underfit: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "scaling": [StrOptions({"auto", "columns", "global"}), None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    _fit_cells = fitting.fit_given
    _choose = no_choice
    batch_key = batching.batch_key
    batch_prepare = batching.batch_prepare
    batch_run = batching.batch_run
    batch_accept = batching.batch_accept
    batch_memory = batching.batch_memory

    @abstractmethod
    def _make_solver(self, data: Any, params: Any, rng: Randomness) -> Solver:
        """Return the solver for scaled ``data`` without changing ``self``.

        ``params`` has all hyper-parameters as attributes, and ``last``: the `Fitted` of
        the fit from which this one starts, or None. In a batch, those named by
        ``completer_tags.batched`` are tensors of shape (n_members,).
        """

    def _left_out(self) -> list[str]:
        names = "max_iter", "tol", "scaling", "device", "random_state"
        known = {*vars(self), *dir(type(self))}  # max_iter may be a property
        return super()._left_out() + [name for name in names if name not in known]

    def _scaled(self, given: Given) -> Given:
        """Return the scaled cells on the device."""
        device = self.device if given.data.remote else resolve_device(self.device)
        data = given.data.to(device)
        scaling = data.scaling_of(self.scaling, centre=self.centre)
        return replace(given, data=data.scaled(scaling), scaling=scaling)

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        """Return a share of the observed cells, which are to be held out."""
        return patterns.random(cells, share, spare=True, random_state=seed)

    def _split(self, data: Cells, seed: int) -> tuple[Any, Any]:
        """Return nine tenths of the observed cells, and the others or None."""
        found: tuple[Any, Any] = data.split(HELD_OUT_SHARE, seed, self._drawn)
        return found

    def _units_per_cell(self, n_cols: int) -> float:
        """Return how many hidden units have an output for each cell of a row."""
        return 0.0

    def _params(
        self, chosen: Mapping[str, Any], last: Fitted | None = None
    ) -> SimpleNamespace:
        params = self.get_params(deep=False)
        return SimpleNamespace(**{**params, **chosen, "last": last})

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        """Return fitted attributes, of which ``_fitted`` answers all questions."""
        return {"_fitted": self._completion(given, outputs)}

    def _completion(self, given: Given, outputs: dict[str, Any]) -> Completion:
        """Make the answers from a completed matrix and a map of new rows."""
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
        """Return a warning about a fit that did not succeed, if it did not."""
        return fitting.advice_on(self, solution, misfit)


def _on_cpu(value: Any) -> Any:
    return [p.cpu() for p in value] if isinstance(value, list) else value.cpu()
