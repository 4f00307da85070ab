"""The base class of completers that run an iterative solver."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar, cast

import joblib
import numpy as np
import torch
from torch import Tensor

from skmc import patterns
from skmc.base.completer import READING, BaseCompleter
from skmc.base.factored import without_constants
from skmc.base.fitted import Completion, Fitted, Outcome, ScaledRows, WarmStart
from skmc.base.reporting import (
    diverged,
    out_of_time,
    record,
    unfinished,
    warn_of_empty,
    warn_of_units,
)
from skmc.base.trials import CHOICE_SHARE, HELD_OUT_SHARE, Choice, Trials
from skmc.blocks import BlockObserved, ChunkedRows
from skmc.cells import Cells, Container, Given, Observed, SparseObserved
from skmc.cells.copies import merged
from skmc.linalg import (
    NeighborGraph,
    Randomness,
    resolve_device,
    seed_of,
    threads_for,
    work_of,
)
from skmc.loop import (
    CallbackHooks,
    HeldOut,
    OutOfTime,
    Run,
    Solution,
    Status,
    seconds_left,
    solve,
    time_limit,
)
from skmc.new_rows import FoldIn, RowIndex
from skmc.parameters import Params
from skmc.solvers import (
    DescentResult,
    ParametricResult,
    ParametricSolver,
    Result,
    Solver,
    modules_in,
)
from skmc.terms import Sum, Term

# A relative misfit on the observed cells above this is reported as a poor fit.
POOR = 0.7
# Upper bounds of the numbers of elements per parameter, per cell and per output of a
# hidden unit, including the overhead of the allocator: measured for AIR, DMF and SNN
# at 300 x 200 and 400 x 50, and for networks at 60 x 40 to 300 x 20.
PER_PARAMETER, PER_CELL, PER_OUTPUT = 12, 20, 6


class CannotBatch(ValueError):
    """Fits cannot share a batch; the message gives the reason."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorResult(Result):
    """A completion by posterior means, and the map that completes other rows so."""

    of_rows: FoldIn


class IterativeCompleter(BaseCompleter):
    """Base class that scales the cells, runs a solver and completes new rows.

    Subclasses define `_make_solver`, and `_choose` if they choose a hyper-parameter on
    held-out cells. Those with the parameters ``early_stopping``,
    ``validation_fraction`` and ``n_iter_no_change`` can stop at held-out cells, those
    with ``warm_start`` can start from the last fit.

    Parameters
    ----------
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    See Also
    --------
    BaseCompleter : For methods without a solver.
    """

    check_every: ClassVar[int] = 25
    # Whether scaling="auto" subtracts the mean of cells of the same unit.
    centre: ClassVar[bool] = True
    # False for fits that follow a schedule and normally end at max_iter.
    warn_at_max_iter: ClassVar[bool] = True
    # Name of the parameter that sets the step length.
    step_parameter: ClassVar[str | None] = None
    # Names of the parameters whose "auto" `_choose` replaces. It runs trials only if
    # one of them is "auto".
    chosen: ClassVar[tuple[str, ...]] = ()
    # Whether the schedule may end before the observed cells are fitted.
    may_underfit: ClassVar[bool] = False

    history_: dict[str, np.ndarray] = field(init=False)
    n_iter_: int = field(init=False)
    status_: str = field(init=False)

    _declared = (*READING, "max_iter", "tol", "scaling", "device", "random_state")

    @abstractmethod
    def _make_solver(self, data: Any, params: Params, rng: Randomness) -> Solver:
        """Return the solver for scaled ``data`` without changing ``self``.

        ``params`` has all hyper-parameters as attributes; ``start``, that of the
        `Choice`; ``known``, the graphs that `fit` was given, by name; and ``last``, the
        `Fitted` of the fit from which this one starts, or None. In a batch, parameters
        named by ``completer_tags.batched`` are tensors of shape (n_members,).
        """

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        """Scale the data, choose hyper-parameters, solve, and make the result."""
        with time_limit(self.max_time):
            seed = seed_of(self.random_state)
            given, interrupted = self._scaled(given), False
            try:
                given = self._in_best_units(given)
            except KeyboardInterrupt:
                interrupted = True
            last, train = None, without_constants(given.data, given.scaling)
            first = None if given.layout is None else given.first_columns
            rules: list[HeldOut] = []
            if getattr(self, "warm_start", False):
                last = self._last_fit(given)
            if getattr(self, "early_stopping", False):
                train, rules = self._hold_out(train, [seed], first)
            rng = Randomness.of([seed], dtype=train.dtype)
            attributes = partial(self._fitted_attributes, given, {})
            hooks = CallbackHooks(self, given.read, y, attributes)
            hooks.begin()
            choice = self._chosen(train, seed, rng, first, given, interrupted)
            solution = None
            if not choice.interrupted:
                params = self._params(choice.params, choice.start, last, given.known)
                with suppress(KeyboardInterrupt, OutOfTime):
                    solver = self._make_solver(train, params, rng)
                    if getattr(self, "warm_start", False):
                        _resume(solver, last)
                    solution = solve(
                        solver,
                        train,
                        max_iter=choice.params.get("max_iter", self.max_iter),
                        tol=self.tol,
                        stop=[*rules, hooks],
                        check_every=self.check_every,
                    )
            if solution is None:
                solution = Solution.before(train)
            else:
                solution = self._finish(given.data, solution)
                if choice.noise is not None:
                    solution = self._with_posteriors(given.data, solution, choice.noise)
            outcome = self._outcome(given, choice.params, solution, choice.hurried)
            diverging = solution.status[0] is Status.DIVERGED
            if diverging and (names := _faulty(solver, solution)):
                remedy = (
                    f"correct {names}, whose value or gradient at this iterate is NaN"
                )
                outcome.advice = diverged(solution, remedy)
            hooks.end(solution.result)
            return outcome

    def _choose(self, data: Any, trials: Trials) -> Choice:
        """Choose hyper-parameters on held-out cells; by default, none.

        The values replace those of the constructor in ``_make_solver``, and become
        fitted attributes: "rank" becomes ``rank_``.
        """
        return Choice()

    def _finish(self, data: Any, solution: Solution) -> Solution:
        """Improve the solution after the loop, with all cells; by default, as it is."""
        return solution

    def _with_posteriors(
        self, data: Any, solution: Solution, noise: tuple[float, float | None]
    ) -> Solution:
        """Replace missing cells by their posterior means given the others of their row.

        In a completion of low rank, a row with few cells has a least-squares solution
        that can be arbitrarily far away. If there are fewer rows than columns, columns
        are the samples instead.
        """
        X, values = solution.X.double().cpu(), data.values.double().cpu()
        root = data.times.double().cpu().sqrt()
        of_rows = FoldIn.with_noise(X, noise[0])
        with threads_for(work_of(X.numel(), min(X.shape))):
            if X.shape[0] >= X.shape[1]:
                completed = of_rows(values, root)
            else:
                completed = FoldIn.with_noise(X.mT, cast(float, noise[1]))(
                    values.mT, root.mT
                ).mT
        completed = torch.where(data.mask, solution.X, completed.to(solution.X))
        return replace(solution, result=PosteriorResult(X=completed, of_rows=of_rows))

    def _chosen(
        self,
        data: Cells,
        seed: int,
        rng: Randomness,
        first: np.ndarray | None,
        given: Given,
        interrupted: bool = False,
    ) -> Choice:
        """Choose the hyper-parameters in half of the time left."""
        trials = self._trials(data, seed, rng, first, given)
        trials.interrupted = interrupted
        with time_limit(CHOICE_SHARE * seconds_left()):
            choice = self._choose(data, trials)
            hurried = trials.n_solutions > 0 and seconds_left() <= 0
            hurried |= choice.hurried
        return replace(choice, hurried=hurried, interrupted=trials.interrupted)

    def _in_best_units(self, given: Given) -> Given:
        """Scale the cells in another way if this completes them better."""
        return given

    def _trials(
        self,
        data: Cells,
        seed: int,
        rng: Randomness,
        first: np.ndarray | None,
        given: Given,
    ) -> Trials:
        """Trials on nine tenths of the cells."""
        return Trials(
            lambda: self._split(data, seed, first),
            rng,
            self.tol,
            self.check_every,
            given.known,
            given.scaling,
            first,
        )

    def _last_fit(self, given: Given) -> Fitted | None:
        """The fit from whose solution the next one starts."""
        if not hasattr(self, "_fitted"):
            return None
        shape = given.statistics.shape
        if self._shape != shape:
            raise ValueError(
                f"X has shape {shape}, but the fit from which warm_start=True resumes "
                f"had {self._shape}; set warm_start=False."
            )
        return self._fitted

    def _hold_out(
        self, data: Observed, seeds: Sequence[int], first: np.ndarray | None = None
    ) -> tuple[Any, list[HeldOut]]:
        """Hold out cells for early stopping."""
        hidden = self._hidden(data, self.validation_fraction, seeds, first)
        if hidden.any() and not hidden.any((1, 2)).all():
            raise ValueError(
                "early_stopping cannot hold out a cell in some matrices of the batch; "
                "fit those alone."
            )
        train, held_out = data.without(hidden)
        if held_out is None:
            return data, []
        return train, [HeldOut(held_out, self.n_iter_no_change)]

    def _split(
        self, data: Cells, seed: int, first: np.ndarray | None = None
    ) -> tuple[Any, Any]:
        """Split the cells for trials into training cells and a held-out tenth."""
        cells = self._for_trials(data)
        if isinstance(cells, BlockObserved):
            return cells.split(HELD_OUT_SHARE, seed)
        if isinstance(cells, SparseObserved):
            return cells.split(HELD_OUT_SHARE, seed, first)
        rows: Any = cells.first_rows() if isinstance(cells, ChunkedRows) else cells
        return rows.without(self._hidden(rows, HELD_OUT_SHARE, [seed], first))

    def _hidden(
        self,
        data: Observed,
        share: float,
        seeds: Sequence[int],
        first: np.ndarray | None,
    ) -> np.ndarray:  # (n_members, n_rows, n_cols)
        """Draw the cells to hold out in each matrix of a batch, or in the only one.

        The columns that represent one cell of a table are held out with the first one.
        """
        cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
        matrices = cells if data.batch_shape else [cells]
        pairs = zip(matrices, seeds, strict=True)
        drawn = np.stack([self._drawn(c, share, seed) for c, seed in pairs])
        return drawn if first is None else drawn[..., first]

    def _outcome(
        self,
        given: Given,
        chosen: Mapping[str, Any],
        solution: Solution,
        hurried: bool = False,
    ) -> Outcome:
        """Make the fitted attributes from the solution of one fit."""
        attributes = self._fitted_attributes(given, chosen, solution.result)
        data = given.data
        misfit = (data.misfit(solution.X) / (data.energy or 1.0)).sqrt()
        return Outcome(
            attributes.pop("_fitted"),
            {**attributes, **record(solution)},
            out_of_time(solution, self.max_time, hurried)
            or self._advice(solution, float(misfit)),
            solution.status[0] is Status.INTERRUPTED,
        )

    def _fitted_attributes(
        self, given: Given, chosen: Mapping[str, Any], result: Result
    ) -> dict[str, Any]:
        """All attributes that prediction needs, by name."""
        public = {f"{name}_": value for name, value in chosen.items()}
        common = self._common_attributes(given.statistics)
        return {**common, **public, **self._attributes(given, result)}

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
        """Draw the share of the observed cells to hold out.

        Cells that a copy of the row still shows are held out with it. Empty rows, and
        columns that are empty or zero after scaling, do not change the others.
        """
        if self.completer_tags.pictures:
            return patterns.random(cells, share, spare=True, random_state=seed)
        distinct, place = merged(cells)
        seen = ~np.isnan(distinct)
        seen &= (seen & (distinct != 0)).any(0)
        hidden = np.zeros(distinct.shape, bool)
        if seen.any():
            core = np.ix_(seen.any(1), seen.any(0))
            hidden[core] = self._drawn_distinct(distinct[core], share, seed)
        return hidden[place] & ~np.isnan(cells)

    def _drawn_distinct(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        """Draw among rows and columns with a cell, without copies."""
        return patterns.random(cells, share, spare=True, random_state=seed)

    def _for_trials(self, data: Any) -> Cells:
        """Return the cells for trials, of which some are held out."""
        return data

    def _units_per_cell(self, n_cols: int) -> float:
        """Return the number of hidden units with an output for each cell of a row."""
        return 0.0

    def _params(
        self,
        chosen: Mapping[str, Any],
        start: object = None,
        last: Fitted | None = None,
        known: Mapping[str, Any] = MappingProxyType({}),
    ) -> SimpleNamespace:
        more = {**chosen, "start": start, "last": last, "known": known}
        return SimpleNamespace(**{**self.get_params(deep=False), **more})

    def _attributes(self, given: Given, result: Any) -> dict[str, Any]:
        """Return fitted attributes, of which ``_fitted`` makes all predictions.

        ``result`` is that of the solver, or a plain `Result` of zeros if the fit was
        interrupted before its first iterate.
        """
        return {"_fitted": self._completion(given, result)}

    def _completion(self, given: Given, result: Result) -> Completion:
        """Make the result from a completed matrix and a map of new rows."""
        statistics, pictures = given.statistics, self.completer_tags.pictures
        completion = given.scaling.undo(result.X).cpu().numpy()
        if not pictures:
            completion = statistics.fill(given.cells, completion, of_fit=True)
        scaling = given.scaling.to("cpu", torch.float64)
        row_map = self._row_map(result, given.data)
        return Completion(
            statistics,
            completion.astype(given.matrix.dtype),
            RowIndex(given.matrix),
            ScaledRows(scaling, statistics.varies, row_map),
            pictures,
            _warm_start(result),
        )

    def _row_map(self, result: Any, data: Any) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the map that completes scaled new rows from their values and mask."""
        if isinstance(result, PosteriorResult):
            return result.of_rows
        return FoldIn.later(result.X, data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        """Return a warning if the fit did not succeed, else None."""
        step = self.step_parameter
        if solution.status[0] is not Status.MAX_ITER:
            remedy = "let scaling standardize the data"
            if step:
                remedy = f"lower {step} (now {getattr(self, step)!r})"
            return diverged(solution, remedy)
        if self.warn_at_max_iter:
            return unfinished(solution, self.tol)
        if misfit > POOR and self.may_underfit:
            names = [name for name in self.get_params() if name.startswith("lambda_")]
            lower = f" lower {' and '.join(names)}," if names else ""
            steps = f" or {step}" if step else ""
            return (
                f"has a relative error above {POOR:g} on the observed cells after "
                f"{int(solution.n_iter)} iterations. Raise max_iter{steps},{lower} or "
                "let scaling standardize the data."
            )
        return None

    def batch_key(self) -> Hashable:
        """Key that is equal for estimators that can share a batch.

        Returns
        -------
        hashable

        Raises
        ------
        CannotBatch
            The completer has no batched solve, chooses hyper-parameters by its own
            fits, or has callbacks or a time limit.
        """
        name, batched = type(self).__name__, self.completer_tags.batched
        if not batched:
            raise CannotBatch(f"{name} has no batched solve")
        if auto := self._searched():
            raise CannotBatch(f"{name} chooses {' and '.join(auto)} by fits of its own")
        if self.max_time is not None:
            raise CannotBatch(f"max_time={self.max_time:g} is for single fits")
        if getattr(self, "_skl_callbacks", None):
            raise CannotBatch(f"the callbacks of {name} need single fits")
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in params if name not in batched}
        return type(self), joblib.hash(shared)

    def batch_prepare(self, X: Container) -> Given:
        """Read and scale a matrix for a fit in a batch.

        Parameters
        ----------
        X : container as in `fit`
            Matrix to fit.

        Returns
        -------
        Given

        Raises
        ------
        ValueError
            The completer is fitted and has ``warm_start=True``.
        """
        if getattr(self, "warm_start", False) and hasattr(self, "_fitted"):
            raise ValueError(
                "Fits in a batch start from scratch; set warm_start=False, or clone "
                "the completers."
            )
        self._validate_params()
        with threads_for(0):
            given = self._given(X, {})
        warn_of_empty(self, given.statistics)
        return self._scaled(given)

    def batch_run(
        self,
        estimators: Sequence[IterativeCompleter],
        prepared: Sequence[Given],
        seeds: Sequence[int],
    ) -> Run:
        """Set up one solve of several fits, which run along a batch axis.

        Parameters
        ----------
        estimators : sequence of completers
            Completers to fit, with equal `batch_key`.
        prepared : sequence of Given
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
        kinds = {(p.data.shape, str(p.matrix.dtype)) for p in prepared}
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
            free_means=prepared[0].data.free_means,
        )
        train, rules = data, list[HeldOut]()
        if getattr(self, "early_stopping", False):
            train, rules = self._hold_out(data, seeds)
        dtype = train.dtype
        rng = Randomness.of(seeds, (len(prepared),), dtype)
        params = self._params(self._without_trials(train))
        given = [
            {**member.get_params(deep=False), **member._without_trials(train)}
            for member in estimators
        ]
        for name in batched:
            if name != "random_state":
                values = [float(own_params[name]) for own_params in given]
                setattr(params, name, torch.tensor(values, dtype=torch.float64))
        return Run(
            self._make_solver(train, params, rng),
            train,
            tol=self.tol,
            stop=rules,
            check_every=self.check_every,
            compact=True,
        )

    def batch_accept(self, prepared: Given, solution: Solution) -> str | None:
        """Set the fitted attributes from the solution of one fit of a batch.

        Parameters
        ----------
        prepared : Given
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
        self._set_fitted(prepared.statistics, outcome, prepared.layout)
        return outcome.advice

    def batch_memory(self, X: Container) -> int:
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
        rng = Randomness.of([0], dtype=data.dtype)
        # A stage before the last one must not be trained here.
        params = self._params({**self._without_trials(data), "max_iter": 1})
        solver: Any = self._make_solver(data, params, rng)
        modules = modules_in([*vars(solver).values()])
        learned = sum(p.numel() for module in modules for p in module.parameters())
        per_cell = PER_CELL + PER_OUTPUT * self._units_per_cell(data.shape[1])
        numbers = PER_PARAMETER * learned + per_cell * data.values.numel()
        return int(numbers * data.values.itemsize)

    def _searched(self) -> list[str]:
        """Return the names of the parameters that `_choose` finds by trials."""
        return [name for name in self.chosen if getattr(self, name) == "auto"]

    def _without_trials(self, data: Cells) -> dict[str, Any]:
        """Return the choices of a completer in a batch, if it needs no trials."""
        return self._choose(data, Trials(_nothing_to_try, Randomness.of([]))).params


def _warm_start(result: Result) -> WarmStart:
    parameters, edges = None, {}
    if isinstance(result, ParametricResult) and result.parameters is not None:
        parameters = [parameter.cpu() for parameter in result.parameters]
    if isinstance(result, DescentResult):
        edges = {
            name: L.edges.cpu()
            for name, L in result.laplacians.items()
            if isinstance(L, NeighborGraph)
        }
    return WarmStart(parameters, edges)


def _nothing_to_try() -> tuple[Any, Any]:
    raise CannotBatch("hyper-parameters are chosen by fits of their own")


def _faulty(solver: Solver, solution: Solution) -> str:
    """Names of the terms of an objective that are NaN at the best iterate."""
    if not isinstance(solution.X, Tensor) or not solution.X.isfinite().all():
        return ""
    X, names = solution.X.double(), []  # avoids overflow
    for module in modules_in([*vars(solver).values()]):
        for term in module.modules():
            if isinstance(term, Term) and not isinstance(term, Sum):
                with suppress(RuntimeError):  # of terms that are not functions of X
                    value, grad = term.to(X).value_and_grad(X)
                    if value.isnan() or grad.isnan().any():
                        names.append(type(term).__name__)
    return " and ".join(names)


def _resume(solver: Solver, last: Fitted | None) -> None:
    """Let a solver start from the parameters of the last fit, and return them."""
    if isinstance(solver, ParametricSolver):
        solver.remember = True
        solver.start = last.warm.parameters if isinstance(last, Completion) else None
