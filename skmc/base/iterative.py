"""The base class of completers that run an iterative solver."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import joblib
import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc import patterns
from skmc.base.batching import CannotBatch
from skmc.base.completer import BaseCompleter, Outcome
from skmc.base.device import resolve_device
from skmc.base.priors import Priors
from skmc.base.reporting import (
    CallbackHooks,
    diverged,
    out_of_time,
    record,
    unfinished,
)
from skmc.base.trials import Trials
from skmc.cells import Observed, Scaling
from skmc.linalg import Randomness, seed_of
from skmc.loop import (
    HeldOut,
    Run,
    Solution,
    Status,
    seconds_left,
    solve,
    time_limit,
)
from skmc.new_rows import FoldIn, RowIndex
from skmc.solvers import Solver

# Share of the observed cells that are held out to choose a hyper-parameter.
HELD_OUT_SHARE = 0.1
CHOICE_SHARE = 0.5  # of max_time, for the choice of hyper-parameters
# A relative misfit on the observed cells above this is reported as a poor fit.
POOR = 0.7
# Upper bounds of the numbers stored per parameter, per cell and per output of a hidden
# unit of a fit, the overhead of the allocator included: measured for AIR, DMF and SNN
# at 300 x 200 and 400 x 50, the last one for networks at 60 x 40 to 300 x 20.
PER_PARAMETER, PER_CELL, PER_OUTPUT = 12, 20, 6


@dataclass(frozen=True)
class Prepared:
    """A matrix that has been read and scaled.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_cols), or Entries
        Observed cells; NaN where a cell is missing.
    priors : Priors
        Statistics of the observed cells.
    data : Observed or SparseObserved
        Scaled observed cells on the device.
    scaling : Scaling
        Scaling of ``data``, which is undone on output.
    """

    cells: Any
    priors: Priors
    data: Any
    scaling: Scaling


class SolveAttributes:
    """Parameters of completers that run a solver, and the attributes that it sets.

    Parameters are annotated here, and declared with a default where they belong to the
    constructor.
    """

    max_iter: Any  # an int, or a property that returns one
    tol: float
    max_time: float | None = None  # in seconds
    scaling: str | None
    device: str | torch.device
    random_state: Any
    history_: dict[str, np.ndarray]
    n_iter_: int
    status_: str
    _scaling: Scaling
    _fold_in: Callable[[Tensor, Tensor], Tensor]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "scaling": [StrOptions({"auto", "columns", "global"}), None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }


class IterativeCompleter(SolveAttributes, BaseCompleter):
    """Base class that scales the cells, runs a solver and completes new rows.

    Subclasses define `_make_solver`, and `_choose` if they choose a hyper-parameter on
    held-out cells. `EarlyStopping`, `WarmStart` and `LearnedLaplacians` are mixins.

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

    def _choose(self, data: Any, trials: Trials) -> dict[str, Any]:
        """Choose hyper-parameters on held-out cells and return them by name.

        They replace those of the constructor in `_make_solver`, and become fitted
        attributes: "rank" becomes ``rank_``. Names that begin with an underscore are
        only passed on to `_make_solver`.
        """
        return {}

    @abstractmethod
    def _make_solver(self, data: Any, params: Any, rng: Randomness) -> Solver:
        """Return the solver for scaled ``data`` without changing ``self``.

        ``params`` has all hyper-parameters as attributes. In a batch, those named by
        ``completer_tags.batched`` are tensors of shape (n_members,).
        """

    def _fit_cells(self, cells: Any, priors: Priors, y: Any = None) -> Outcome:
        with time_limit(self.max_time):
            return self._solved(cells, priors, y)

    def _solved(self, cells: Any, priors: Priors, y: Any) -> Outcome:
        seed = seed_of(self.random_state)
        prepared = self._prepare(cells, priors)
        train, rules = self._hold_out(prepared.data, [cells], [seed])
        rng = Randomness.of([seed], dtype=train.values.dtype)
        trials = self._trials(train, seed, rng)
        fitted = partial(self._all_fitted, prepared)
        hooks = CallbackHooks(self, cells, y, lambda outputs: fitted({}, outputs))
        hooks.begin()
        with time_limit(CHOICE_SHARE * seconds_left()):
            chosen = self._choose(train, trials)
            hurried = trials.n_solutions > 0 and seconds_left() <= 0
        solution = Solution.before(train)
        if not trials.interrupted:
            with trials.interruptible():
                solution = solve(
                    self._make_solver(train, self._params(chosen), rng),
                    train,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    stop=[*rules, hooks],
                    check_every=self.check_every,
                )
        outcome = self._outcome(prepared, chosen, solution, hurried)
        hooks.end(solution.outputs)
        return outcome

    def _prepare(self, cells: Any, priors: Priors) -> Prepared:
        values = torch.from_numpy(np.array(cells, order="C"))
        weights = getattr(cells, "weights", None)
        if weights is not None:
            weights = torch.from_numpy(weights)
        data = Observed(values, ~torch.isnan(values), weights=weights)
        data = data.to(resolve_device(self.device))
        scaling = Scaling.of(data, self.scaling, centre=self.centre)
        return Prepared(cells, priors, scaling.apply(data), scaling)

    def _hold_out(
        self, data: Any, cells: Sequence[Any], seeds: Sequence[int]
    ) -> tuple[Any, list[HeldOut]]:
        """Return the cells to train on, and stop rules that use held-out cells."""
        return data, []

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        """Return a share of the observed cells, which are to be held out."""
        return patterns.random(cells, share, spare=True, random_state=seed)

    def _trials(self, train: Any, seed: int, rng: Randomness) -> Trials:
        split = partial(self._split, train, seed)
        return Trials(split, rng, self.tol, self.check_every)

    def _split(self, data: Any, seed: int) -> tuple[Any, Any]:
        """Return nine tenths of the observed cells, and the others or None."""
        cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
        hidden = self._drawn(cells, HELD_OUT_SHARE, seed)
        if not hidden.any():
            return data, None
        mask = torch.from_numpy(hidden).to(data.mask.device)
        return data.hide(mask), replace(data, mask=mask)

    def _units_per_cell(self, n_cols: int) -> float:
        """Return how many hidden units have an output for each cell of a row."""
        return 0.0

    def _without_trials(self, data: Any) -> dict[str, Any]:
        """Return the result of `_choose` in a batch, where it has nothing to try."""
        return self._choose(data, Trials(_nothing_to_try, Randomness.of([])))

    def _params(self, chosen: Mapping[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**{**self.get_params(deep=False), **chosen})

    def _outcome(
        self,
        prepared: Prepared,
        chosen: Mapping[str, Any],
        solution: Solution,
        hurried: bool = False,
    ) -> Outcome:
        """Compute the fitted attributes from the solution of one fit."""
        attributes = self._all_fitted(prepared, chosen, solution.outputs)
        data = prepared.data
        misfit = (data.misfit(solution.X) / (data.energy or 1.0)).sqrt()
        return Outcome(
            {**attributes, **record(solution)},
            out_of_time(solution, self.max_time, hurried)
            or self._advice(solution, float(misfit)),
            solution.status[0] is Status.INTERRUPTED,
        )

    def _all_fitted(
        self, prepared: Prepared, chosen: Mapping[str, Any], outputs: dict[str, Any]
    ) -> dict[str, Any]:
        public = {f"{k}_": v for k, v in chosen.items() if not k.startswith("_")}
        common = self._common(prepared.priors)
        return {**common, **public, **self._fitted(prepared, outputs)}

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        """Compute the attributes that `transform` and `score` need."""
        cells, completion = prepared.cells, outputs["X"]
        whole = prepared.scaling.undo(completion).cpu().numpy()
        if not self.completer_tags.pictures:
            whole = prepared.priors.fill(cells, whole)
        return {
            "reconstruction_": whole.astype(cells.dtype),
            "_scaling": prepared.scaling.to("cpu", torch.float64),
            "_fold_in": self._row_map(outputs, prepared.data),
            "_rows": RowIndex(getattr(cells, "given", cells)),
        }

    def _row_map(
        self, outputs: dict[str, Any], data: Any
    ) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the map that completes scaled new rows from their values and mask."""
        return FoldIn.later(outputs["X"], data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        """Return a warning about a fit that did not succeed, if it did not."""
        step = self.step_parameter
        if solution.status[0] is not Status.MAX_ITER:
            remedy = "let scaling standardize the data"
            if step:
                remedy = f"lower {step} (now {getattr(self, step)!r})"
            return diverged(solution, remedy)
        if self.warn_at_max_iter:
            return unfinished(solution, self.tol)
        if misfit > POOR and self.may_underfit:
            weights = [name for name in self.get_params() if name.startswith("lambda_")]
            lower = f" lower {' and '.join(weights)}," if weights else ""
            steps = f" or {step}" if step else ""
            return (
                f"has a relative error of {misfit:.2f} on the observed cells after "
                f"{int(solution.n_iter)} iterations. Raise max_iter{steps},{lower} or "
                "let scaling standardize the data."
            )
        return None

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        completed = np.empty(cells.shape)
        position = np.full(len(cells), -1)
        if hasattr(self, "_rows"):  # the rows of the fit were in memory
            position = self._rows.find(cells)
            completed = self.reconstruction_[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            values = torch.from_numpy(cells[new].astype(float))
            # The fit has learned nothing about how constant columns depend on others.
            mask = ~torch.isnan(values) & torch.from_numpy(self._priors.varies)
            zero = values.new_zeros(())
            scaled = self._scaling.standardise(torch.where(mask, values, zero))
            folded = self._fold_in(scaled, mask)
            completed[new] = self._scaling.undo(folded).numpy()
        return completed

    def batch_key(self) -> Hashable:
        """Key that is equal for estimators that can share a batch.

        Returns
        -------
        hashable

        Raises
        ------
        CannotBatch
            The completer has no batched solve, chooses hyper-parameters by fits of its
            own, or has callbacks or a time limit.
        """
        name, batched = type(self).__name__, self.completer_tags.batched
        if not batched:
            raise CannotBatch(f"{name} has no batched solve")
        if type(self)._choose is not IterativeCompleter._choose:
            auto = [p for p in self.chosen if getattr(self, p) == "auto"]
            if auto or not self.chosen:
                what = " and ".join(auto) or "hyper-parameters"
                raise CannotBatch(f"{name} chooses {what} by fits of its own")
        if self.max_time is not None:
            raise CannotBatch(f"max_time={self.max_time:g} is for single fits")
        if getattr(self, "_skl_callbacks", None):
            raise CannotBatch(f"the callbacks of {name} need single fits")
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in params if name not in batched}
        return type(self), joblib.hash(shared)

    def batch_prepare(self, X: Any) -> Prepared:
        """Read and scale a matrix for a fit in a batch.

        Parameters
        ----------
        X : container as in `fit`
            Matrix to fit.

        Returns
        -------
        Prepared
        """
        self._validate_params()
        cells, priors = self._read_to_fit(X)
        self._warn_of_empty(priors)
        return self._prepare(cells, priors)

    def batch_run(
        self,
        estimators: Sequence[IterativeCompleter],
        prepared: Sequence[Prepared],
        seeds: Sequence[int],
    ) -> Run:
        """Set up one solve of several fits, which run along a batch axis.

        Parameters
        ----------
        estimators : sequence of completers
            Completers to fit, with equal `batch_key`.
        prepared : sequence of Prepared
            Matrices of one shape and dtype, one per completer.
        seeds : sequence of int
            Random seeds, one per completer.

        Returns
        -------
        Run
            The solve before its first step.

        Raises
        ------
        CannotBatch
            The matrices or completers cannot share a batch.
        """
        kinds = {(p.cells.shape, str(p.cells.dtype)) for p in prepared}
        if len(kinds) > 1:
            raise CannotBatch(f"Xs must share one shape and dtype, got {sorted(kinds)}")
        key, batched = self.batch_key(), self.completer_tags.batched
        for other in estimators:
            if other.batch_key() != key:
                raise CannotBatch(
                    f"{other!r} cannot share a batch with {self!r}: only {batched} may "
                    "differ"
                )
        data = Observed(
            torch.stack([p.data.values for p in prepared]),
            torch.stack([p.data.mask for p in prepared]),
        )
        train, rules = self._hold_out(data, [p.cells for p in prepared], seeds)
        dtype = train.values.dtype
        rng = Randomness.of(seeds, (len(prepared),), dtype)
        params = self._params(self._without_trials(train))
        for name in batched:
            if name != "random_state":
                values = [float(getattr(member, name)) for member in estimators]
                setattr(params, name, torch.tensor(values, dtype=torch.float64))
        return Run(
            self._make_solver(train, params, rng),
            train,
            tol=self.tol,
            stop=rules,
            check_every=self.check_every,
            compact=True,
        )

    def batch_accept(self, prepared: Prepared, solution: Solution) -> str | None:
        """Set the fitted attributes from the solution of one fit of a batch.

        Parameters
        ----------
        prepared : Prepared
            Matrix of this fit.
        solution : Solution
            Solution of this fit, without the batch axis.

        Returns
        -------
        str or None
            A warning about a fit that did not succeed, without the completer's name.
        """
        chosen = self._without_trials(prepared.data)
        outcome = self._outcome(prepared, chosen, solution)
        self._set_fitted(prepared.priors, outcome)
        return outcome.advice

    def batch_memory(self, X: Any) -> int:
        """Estimate the memory that one fit of a batch needs.

        Parameters
        ----------
        X : container as in `fit`
            Matrix to fit.

        Returns
        -------
        int
            Number of bytes.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = self.batch_prepare(X).data
        rng = Randomness.of([0], dtype=data.values.dtype)
        # A stage before the last one is not to be trained.
        params = self._params({**self._without_trials(data), "max_iter": 1})
        solver: Any = self._make_solver(data, params, rng)
        parts = [
            part
            for value in vars(solver).values()
            for part in (value if isinstance(value, list | tuple) else [value])
            if isinstance(part, torch.nn.Module)
        ]
        learned = sum(p.numel() for part in parts for p in part.parameters())
        per_cell = PER_CELL + PER_OUTPUT * self._units_per_cell(data.shape[1])
        numbers = PER_PARAMETER * learned + per_cell * data.values.numel()
        return int(numbers * data.values.itemsize)


def _nothing_to_try() -> tuple[Any, Any]:
    raise CannotBatch("hyper-parameters are chosen by fits of their own")
