"""Completers whose answer comes out of the iteration loop."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral, Real
from typing import ClassVar, TypeVar

import numpy as np
import torch
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc import patterns
from skmc.base.completer import BaseCompleter
from skmc.base.reporting import CallbackHooks, diverged, record, unfinished
from skmc.cells import Observed, Scaling, SparseObserved
from skmc.linalg import Randomness, seed_of
from skmc.loop import HeldOut, Solution, Status, solve, solve_part
from skmc.new_rows import FoldIn, RowIndex
from skmc.solvers import ParametricSolver, Solver

T = TypeVar("T")
Data = TypeVar("Data", Observed, SparseObserved)

HELD_OUT = 0.1  # of the observed cells, to choose a hyper-parameter on
# A fit that leaves more of the data's norm unexplained than this, fits hardly at all.
POOR = 0.7


class IterativeCompleter(CallbackSupportMixin, BaseCompleter):
    """Scales the cells, runs a solver on them, and folds in new rows.

    Subclasses define `_make_solver`. Those with ``early_stopping`` validate on
    held-out cells.
    """

    check_every: ClassVar[int] = 25
    # Whether scaling="auto" takes the mean from a matrix of one unit.
    centre: ClassVar[bool] = True
    # A fit that follows a schedule of max_iter steps ends there as planned.
    warn_at_max_iter: ClassVar[bool] = True
    # Whether it descends from near zero without an "lr", and may have to go on.
    flows: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict] = {
        **BaseCompleter._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "scaling": [StrOptions({"auto", "columns", "global"}), None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }
    _early_stopping_constraints: ClassVar[dict] = {
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    _warm_start_constraints: ClassVar[dict] = {"warm_start": ["boolean"]}

    @abstractmethod
    def _make_solver(self, data: Observed, draw: Randomness) -> Solver:
        """The solver for scaled ``data``; parameters may be tensors ``(*batch,)``."""

    def _fit_cells(self, cells: np.ndarray, y=None) -> None:
        seed = seed_of(getattr(self, "random_state", 0))
        data, scaling = self._prepare(cells)
        train, rules = self._hold_out(data, [cells], [seed])
        draw = Randomness.of([seed], dtype=data.values.dtype)
        hooks = CallbackHooks(
            self, cells, y, partial(self._fitted, cells, data, scaling)
        )
        hooks.begin()
        try:
            solver = self._make_solver(train, draw)
        except KeyboardInterrupt:
            solution = Solution.before(train)
        else:
            solution = solve(
                solver,
                train,
                max_iter=self.max_iter,
                tol=self.tol,
                stop=[*rules, hooks],
                check_every=self.check_every,
            )
        self._finish(cells, data, scaling, solution)
        hooks.end(solution.outputs)
        if solution.status[0] is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _prepare(self, cells: np.ndarray) -> tuple[Observed, Scaling]:
        values = torch.from_numpy(np.array(cells, order="C"))
        data = Observed(values, ~torch.isnan(values)).to(resolve_device(self.device))
        scaling = Scaling.of(data, self.scaling, centre=self.centre)
        return scaling.apply(data), scaling

    def _hold_out(
        self, data: Observed, cells: list[np.ndarray], seeds: list[int]
    ) -> tuple[Observed, list[HeldOut]]:
        """The cells to train on, and the rule that watches the others."""
        if not getattr(self, "early_stopping", False):
            return data, []
        hidden = np.stack(
            [
                patterns.random(
                    c, self.validation_fraction, spare=True, random_state=seed
                )
                for c, seed in zip(cells, seeds, strict=True)
            ]
        )
        if not hidden.any():  # too few cells to spare any
            return data, []
        if not hidden.any((1, 2)).all():
            raise ValueError(
                "early_stopping finds no cell to spare in some matrices of the batch; "
                "fit those alone."
            )
        mask = torch.from_numpy(hidden).view(data.mask.shape).to(data.mask.device)
        rule = HeldOut(Observed(data.values, mask), self.n_iter_no_change)
        return data.hide(mask), [rule]

    def _goes_on(self, data: Data) -> bool:
        """Whether this fit is to start from the solution of the last one."""
        if not (self.warm_start and hasattr(self, "_scaling")):  # type: ignore[attr-defined]
            return False
        if (had := self._solved_shape()) != data.shape:
            raise ValueError(
                f"X has shape {data.shape}, but the fit that warm_start=True goes on "
                f"from had {had}; set warm_start=False."
            )
        return True

    def _from_last(self, solver: ParametricSolver, data: Observed) -> Solver:
        """Have ``solver`` start from the parameters of the last fit, if it should."""
        solver.remember = self.warm_start and not data.batch_shape  # type: ignore[attr-defined]
        if self._goes_on(data):
            solver.start = getattr(self, "_parameters", None)
        return solver

    def _solved_shape(self) -> tuple[int, int]:
        return self.reconstruction_.shape  # type: ignore[attr-defined]

    def _choose(
        self,
        data: Data,
        candidates: Iterable[T],
        solver_of: Callable[[T, Data], Solver],
        *,
        max_iter: int,
        patience: int = 2,
    ) -> T:
        """The candidate that completes a held-out tenth of the observed cells best.

        Candidates are tried in order until the error has risen ``patience`` times in a
        row; with too few cells to spare any, the first is taken. The cells are drawn
        by ``random_state``, the same ones at every call with an integer.
        """
        candidates = iter(candidates)
        best = next(candidates)
        train, held_out = self._spare_some(data, seed_of(self.random_state))
        if held_out is None:
            return best
        lowest, risen = math.inf, 0
        for candidate in itertools.chain([best], candidates):
            trial = solve_part(
                solver_of(candidate, train),
                train,
                max_iter=max_iter,
                tol=self.tol,
                check_every=self.check_every,
            )
            error = float(held_out.misfit(trial.X))
            if error < lowest:
                best, lowest, risen = candidate, error, 0
            else:
                risen += 1
            if risen == patience:
                break
        return best

    def _spare_some(self, data, seed: int) -> tuple:
        """Nine tenths of the observed cells and the others, None if there are none."""
        cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
        hidden = patterns.random(cells, HELD_OUT, spare=True, random_state=seed)
        if not hidden.any():
            return data, None
        mask = torch.from_numpy(hidden).to(data.mask.device)
        return data.hide(mask), Observed(data.values, mask)

    def _finish(
        self,
        cells: np.ndarray,
        data: Observed,
        scaling: Scaling,
        solution: Solution,
    ) -> None:
        """Set the fitted attributes from one member's solution, warn if need be."""
        advice = self._take(cells, data, scaling, solution)
        if advice:
            warnings.warn(
                f"{type(self).__name__} {advice}", ConvergenceWarning, stacklevel=6
            )

    def _take(
        self,
        cells: np.ndarray,
        data: Observed,
        scaling: Scaling,
        solution: Solution,
    ) -> str | None:
        """Set the fitted attributes; what there is to be said of the fit."""
        fitted = self._fitted(cells, data, scaling, solution.outputs)
        for name, value in fitted.items():
            setattr(self, name, value)
        learned = solution.outputs.get("parameters")
        self._parameters = None if learned is None else [p.cpu() for p in learned]
        record(self, solution)
        misfit = (data.misfit(solution.X) / (data.energy or 1.0)).sqrt()
        return self._advice(solution, float(misfit))

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        """What to say of a fit that did not end well, and what to change."""
        if solution.status[0] is not Status.MAX_ITER:
            return diverged(self, solution, "let scaling standardise the data")
        if self.warn_at_max_iter:
            return unfinished(self, solution)
        if misfit > POOR and (hasattr(self, "lr") or self.flows):
            weights = [name for name in self.get_params() if name.startswith("lambda_")]
            lower = f" lower {' and '.join(weights)}," if weights else ""
            steps = " or lr" if hasattr(self, "lr") else ""
            return (
                f"is {misfit:.2f} of the way from the observed cells to their means "
                f"after {self.n_iter_} iterations. Raise max_iter{steps},{lower} or "
                "let scaling standardise the data."
            )
        return None

    def _fitted(self, cells, data, scaling, outputs) -> dict:
        """The attributes that `transform` and `score` need."""
        completion = outputs["X"]
        whole = scaling.undo(completion).cpu().numpy()
        return {
            "reconstruction_": self._with_priors(cells, whole).astype(cells.dtype),
            "_scaling": scaling.to("cpu", torch.float64),
            "_fold_in": self._row_map(outputs, data),
            "_rows": RowIndex(cells),
        }

    def _laplacians(self, outputs) -> dict[str, np.ndarray]:
        """Those among a solver's outputs whose term has a weight."""
        weights = {"rows": self.lambda_row, "columns": self.lambda_col}  # type: ignore[attr-defined]
        return {
            name: value.cpu().numpy()
            for name, value in outputs.items()
            if name not in ("X", "parameters") and weights.get(name, 1) != 0
        }

    def _row_map(self, outputs, data: Observed) -> Callable[[Tensor, Tensor], Tensor]:
        """How scaled rows that are new are completed, ``(values, mask) -> values``."""
        return FoldIn.of(outputs["X"], data)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        position = self._rows.find(cells)
        completed = self.reconstruction_[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            values = torch.from_numpy(cells[new].astype(float))
            # Nothing was learned of how a constant column goes with the others.
            mask = ~torch.isnan(values) & torch.from_numpy(self._varies)
            zero = values.new_zeros(())
            scaled = self._scaling.standardise(torch.where(mask, values, zero))
            folded = self._fold_in(scaled, mask)
            completed[new] = self._scaling.undo(folded).numpy()
        return completed


def resolve_device(device: str | torch.device) -> torch.device:
    """``"auto"`` is CUDA if there is one.

    Parameters
    ----------
    device : str or device
        Where to compute.

    Returns
    -------
    device
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} is not available ({str(error).splitlines()[0]}); use "
            "'auto' or 'cpu'."
        ) from error
    return resolved


def memory_of(device: torch.device) -> int:
    """Bytes of memory that a device has in all.

    Parameters
    ----------
    device : device
        Where to compute.

    Returns
    -------
    int
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
