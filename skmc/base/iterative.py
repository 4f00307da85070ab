"""Completers whose answer comes out of the iteration loop."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import joblib
import numpy as np
import torch
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc import patterns
from skmc.base.batching import CannotBatch
from skmc.base.completer import BaseCompleter, Outcome
from skmc.base.device import resolve_device
from skmc.base.priors import Priors
from skmc.base.reporting import CallbackHooks, diverged, record, unfinished
from skmc.base.trials import Trials
from skmc.cells import Observed, Scaling
from skmc.linalg import Randomness, seed_of
from skmc.loop import HeldOut, Run, Solution, Status, solve
from skmc.new_rows import Deferred, FoldIn, RowIndex
from skmc.solvers import Solver

HELD_OUT = 0.1  # of the observed cells, to choose a hyper-parameter on
# A fit that leaves more of the data's norm unexplained than this, fits hardly at all.
POOR = 0.7
# Numbers held per parameter and per cell of a member, the slack of the allocator
# included: AIR, DMF and SNN at 300 x 200 and 400 x 50 took no more.
PER_PARAMETER, PER_CELL = 12, 20


@dataclass(frozen=True)
class Prepared:
    """A matrix that has been read and scaled, ready to be fitted.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_cols), or Entries
        The observed cells; NaN where one is missing.
    priors : Priors
        What they say before a method sees them.
    data : Observed or SparseObserved
        The scaled cells, on the device.
    scaling : Scaling
        Undone on output.
    """

    cells: Any
    priors: Priors
    data: Any
    scaling: Scaling


class IterativeCompleter(CallbackSupportMixin, BaseCompleter):
    """Scales the cells, runs a solver on them, and folds in new rows.

    Subclasses define `_make_solver`, and `_choose` if they choose a hyper-parameter on
    held-out cells. `EarlyStopping`, `WarmStart` and `LearnedLaplacians` are mixins.
    """

    max_iter: Any  # int, or a property
    tol: float
    scaling: str | None
    device: str | torch.device
    random_state: Any

    check_every: ClassVar[int] = 25
    # Whether scaling="auto" subtracts the mean from a matrix of one unit.
    centre: ClassVar[bool] = True
    # A fit that follows a schedule of max_iter steps ends there as planned.
    warn_at_max_iter: ClassVar[bool] = True
    # The parameter that sets the length of steps.
    step_parameter: ClassVar[str | None] = None
    # Whether a schedule may end before the observed cells are fitted.
    may_underfit: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "scaling": [StrOptions({"auto", "columns", "global"}), None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    def _choose(self, data: Any, trials: Trials) -> dict[str, Any]:
        """Hyper-parameters chosen on held-out cells, by name.

        They replace those of the constructor in `_make_solver`, and become fitted
        attributes, "rank" as ``rank_``. A name that begins with an underscore is
        passed on to `_make_solver` only.
        """
        return {}

    @abstractmethod
    def _make_solver(self, data: Any, params: Any, rng: Randomness) -> Solver:
        """The solver for scaled ``data``; ``self`` stays as it is.

        ``params`` has all hyper-parameters as attributes. In a batch those of
        ``completer_tags.batched`` are tensors of shape (n_members,).
        """

    def _fit_cells(self, cells: Any, priors: Priors, y: Any = None) -> Outcome:
        seed = seed_of(self.random_state)
        prepared = self._prepare(cells, priors)
        train, rules = self._hold_out(prepared.data, [cells], [seed])
        rng = Randomness.of([seed], dtype=train.values.dtype)
        trials = self._trials(train, seed, rng)
        fitted = partial(self._all_fitted, prepared)
        hooks = CallbackHooks(self, cells, y, lambda outputs: fitted({}, outputs))
        hooks.begin()
        chosen = self._choose(train, trials)
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
        outcome = self._outcome(prepared, chosen, solution)
        hooks.end(solution.outputs)
        return outcome

    def _prepare(self, cells: Any, priors: Priors) -> Prepared:
        values = torch.from_numpy(np.array(cells, order="C"))
        data = Observed(values, ~torch.isnan(values)).to(resolve_device(self.device))
        scaling = Scaling.of(data, self.scaling, centre=self.centre)
        return Prepared(cells, priors, scaling.apply(data), scaling)

    def _hold_out(
        self, data: Any, cells: Sequence[Any], seeds: Sequence[int]
    ) -> tuple[Any, list[HeldOut]]:
        """The cells to train on, and the rule that watches the others."""
        return data, []

    def _trials(self, train: Any, seed: int, rng: Randomness) -> Trials:
        split = partial(self._split, train, seed)
        return Trials(split, rng, self.tol, self.check_every)

    def _split(self, data: Any, seed: int) -> tuple[Any, Any]:
        """Nine tenths of the observed cells and the others, None if there are none."""
        cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
        hidden = patterns.random(cells, HELD_OUT, spare=True, random_state=seed)
        if not hidden.any():
            return data, None
        mask = torch.from_numpy(hidden).to(data.mask.device)
        return data.hide(mask), Observed(data.values, mask)

    def _params(self, chosen: Mapping[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**{**self.get_params(deep=False), **chosen})

    def _outcome(
        self,
        prepared: Prepared,
        chosen: Mapping[str, Any],
        solution: Solution,
        defer: bool = False,
    ) -> Outcome:
        """The fitted attributes, from the solution of one member."""
        attributes = self._all_fitted(prepared, chosen, solution.outputs)
        fold_in = attributes.get("_fold_in")
        if isinstance(fold_in, Deferred) and not defer:
            attributes["_fold_in"] = fold_in.made
        data = prepared.data
        misfit = (data.misfit(solution.X) / (data.energy or 1.0)).sqrt()
        return Outcome(
            {**attributes, **record(solution)},
            self._advice(solution, float(misfit)),
            solution.status[0] is Status.INTERRUPTED,
        )

    def _all_fitted(
        self, prepared: Prepared, chosen: Mapping[str, Any], outputs: dict[str, Any]
    ) -> dict[str, Any]:
        public = {f"{k}_": v for k, v in chosen.items() if not k.startswith("_")}
        common = self._common(prepared.priors)
        return {**common, **public, **self._fitted(prepared, outputs)}

    def _fitted(self, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
        """The attributes that `transform` and `score` need."""
        cells, completion = prepared.cells, outputs["X"]
        whole = prepared.scaling.undo(completion).cpu().numpy()
        return {
            "reconstruction_": prepared.priors.fill(cells, whole).astype(cells.dtype),
            "_scaling": prepared.scaling.to("cpu", torch.float64),
            "_fold_in": Deferred(self._row_map, outputs, prepared.data),
            "_rows": RowIndex(cells),
        }

    def _row_map(
        self, outputs: dict[str, Any], data: Any
    ) -> Callable[[Tensor, Tensor], Tensor]:
        """How scaled rows that are new are completed, ``(values, mask) -> values``."""
        return FoldIn.of(outputs["X"], data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        """What to say of a fit that did not end well, and what to change."""
        step = self.step_parameter
        if solution.status[0] is not Status.MAX_ITER:
            remedy = "let scaling standardise the data"
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
                f"is {misfit:.2f} of the way from the observed cells to their means "
                f"after {int(solution.n_iter)} iterations. Raise max_iter{steps},"
                f"{lower} or let scaling standardise the data."
            )
        return None

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        position = self._rows.find(cells)
        completed = self.reconstruction_[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            values = torch.from_numpy(cells[new].astype(float))
            # Nothing was learned of how a constant column goes with the others.
            mask = ~torch.isnan(values) & torch.from_numpy(self._priors.varies)
            zero = values.new_zeros(())
            scaled = self._scaling.standardise(torch.where(mask, values, zero))
            folded = self._fold_in(scaled, mask)
            completed[new] = self._scaling.undo(folded).numpy()
        return completed

    def batch_key(self) -> Hashable:
        """What estimators that can share a batch have in common.

        Returns
        -------
        hashable

        Raises
        ------
        CannotBatch
            It has no batched solve, fits of its own that choose hyper-parameters, or
            callbacks that watch a single fit.
        """
        name, batched = type(self).__name__, self.completer_tags.batched
        if not batched:
            raise CannotBatch(f"{name} has no batched solve")
        if type(self)._choose is not IterativeCompleter._choose:
            raise CannotBatch(f"{name} chooses hyper-parameters by fits of its own")
        if getattr(self, "_skl_callbacks", None):
            raise CannotBatch(f"the callbacks of {name} watch single fits")
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in params if name not in batched}
        return type(self), joblib.hash(shared)

    def batch_prepare(self, X: Any) -> Prepared:
        """Read and scale a matrix for a fit in a batch.

        Parameters
        ----------
        X : container as in `fit`
            The matrix.

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
        """A solve of several fits along a batch axis, before its first step.

        Parameters
        ----------
        estimators : sequence of completers
            One of each member; they share `batch_key`.
        prepared : sequence of Prepared
            One of each member, of one shape and dtype.
        seeds : sequence of int
            One of each member.

        Returns
        -------
        Run

        Raises
        ------
        CannotBatch
            The members do not fit into one batch.
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
        params = self._params({})
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

    def batch_accept(
        self, prepared: Prepared, solution: Solution, *, defer: bool = False
    ) -> str | None:
        """Take the fitted attributes from a member of a batch.

        Parameters
        ----------
        prepared : Prepared
            The member's matrix.
        solution : Solution
            Its solution.
        defer : bool, default=False
            Whether the map for new rows is made when the first new row comes: where
            only cells are scored, none does.

        Returns
        -------
        str or None
            What to say of a fit that did not end well.
        """
        outcome = self._outcome(prepared, {}, solution, defer)
        self._set_fitted(prepared.priors, outcome)
        return outcome.advice

    def batch_memory(self, X: Any) -> int:
        """Memory of one member of a batch.

        Parameters
        ----------
        X : container as in `fit`
            The matrix.

        Returns
        -------
        int
            In bytes.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = self.batch_prepare(X).data
        rng = Randomness.of([0], dtype=data.values.dtype)
        solver: Any = self._make_solver(data, self._params({}), rng)
        parts = [
            part
            for value in vars(solver).values()
            for part in (value if isinstance(value, list | tuple) else [value])
            if isinstance(part, torch.nn.Module)
        ]
        learned = sum(p.numel() for part in parts for p in part.parameters())
        numbers = PER_PARAMETER * learned + PER_CELL * data.values.numel()
        return numbers * data.values.itemsize
