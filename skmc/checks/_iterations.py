"""Checks of completers that run a solver."""

from __future__ import annotations

import contextlib
import re
import warnings
from unittest import mock

import numpy as np

from skmc.cells import Entries
from skmc.checks.expect import close, expect, warns
from skmc.checks.problems import Case, low_rank, rank_two, small_problem
from skmc.checks.registry import check, having, of_iterative
from skmc.compatibility import CALLBACKS
from skmc.metrics import relative_error, rmse

SCALING = (
    "work with the scaled data that _make_solver gets, and add no weight that depends "
    "on the units of X"
)
STEPS = (
    "make steps that stay finite: do not divide by what may be 0, and give iterates "
    "that are not finite to the loop, which keeps the best finite one"
)


@check(
    "return the objective of the new iterate in each State; set "
    "completer_tags.monotone=False if it may rise",
    of_iterative,
)
def the_objective_falls(case: Case) -> None:
    """The objective is lower at the end or zero; it never rises if the tags say so."""
    truth, hidden = rank_two()
    cells = Entries.of_matrix(np.where(hidden, np.nan, truth), one_unit=True)
    completer = case.make(tol=0.0).fit(cells)
    objective = completer.history_["objective"]
    first, last = objective[0], objective[-1]
    falls = last < first or last < 1e-20  # an exact start leaves errors of rounding
    expect(falls, f"the objective is {first:.6g} at first, {last:.6g} at last")
    rise = np.diff(objective).max(initial=0)
    expect(
        not case.tags.monotone or rise <= 1e-12 * first,
        f"the objective rises by {rise:.3g}, but completer_tags.monotone is True",
    )


@check(STEPS, of_iterative)
def constant_and_tiny_matrices(case: Case) -> None:
    """Constant matrices are completed exactly, and tiny ones with finite values."""
    constant = np.ma.masked_array(np.full((5, 4), 7.0))
    constant[1, 2] = np.ma.masked
    close(case.make().fit_transform(constant), 7.0, "a constant matrix of 7")
    for shape in [(1, 1), (1, 5), (5, 1), (2, 2)]:
        X = np.ma.masked_array(np.arange(np.prod(shape), dtype=float).reshape(shape))
        if X.size > 1:
            X[-1, -1] = np.ma.masked
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*no observed cell")
            completed = case.make().fit_transform(X)
        expect(np.isfinite(completed).all(), f"{shape}: the completion is not finite")


@check(SCALING, of_iterative)
def units_do_not_matter(case: Case) -> None:
    """With standardized columns, the completion is the same in other units."""
    _, masked = small_problem()
    units, origin = 10.0 ** np.arange(-3, 3), 100.0 * np.arange(6)
    plain, moved = (case.make(scaling="columns") for _ in range(2))
    expected = plain.fit_transform(masked) * units + origin
    in_units = moved.fit_transform(masked * units + origin)
    close(in_units, expected, "the units of the columns matter", 1e-4, 1e-5)


@check(SCALING, of_iterative)
def scaling_is_undone(case: Case) -> None:
    """Completed cells are in the units of X, whatever the scaling."""
    _, masked = small_problem()
    for scaling in ("auto", "columns", "global", None):
        units = 1.0 if scaling is None else 1000.0
        completer = case.make(scaling=scaling, max_iter=100)
        completed = completer.fit_transform(masked * units) / units
        away = np.abs(completed - masked.mean()).max() / masked.std()
        expect(away < 6, f"scaling={scaling!r}: {away:.1f} standard deviations off")


@check(SCALING, of_iterative)
def offsets_do_not_hide_deviations(case: Case) -> None:
    """Deviations are kept despite a large offset, as in seconds since 1970."""
    _, masked = small_problem()
    for scaling in ("auto", "columns", "global"):
        offset = 1.7e9 * (np.arange(6) == 0) if scaling == "columns" else 1e7
        far = masked + offset
        moved = case.make(scaling=scaling).fit_transform(far) - offset
        plain = case.make(scaling=scaling)
        expected = plain.fit_transform(far - offset)  # with equal rounding
        close(moved, expected, f"scaling={scaling!r}: the offset matters", 1e-5, 5e-5)


def _with_callbacks(case: Case) -> bool:
    return CALLBACKS and of_iterative(case)


class _Interrupt:
    """A callback that interrupts at the first check."""

    n_calls = 0

    def setup(self, estimator: object, context: object) -> None: ...
    def teardown(self, estimator: object, context: object) -> None: ...
    def on_fit_task_begin(self, estimator: object, context: object) -> None: ...

    def on_fit_task_end(self, estimator: object, context: object) -> None:
        self.n_calls += 1
        if self.n_calls == 1:
            raise KeyboardInterrupt


@check("leave the loop over steps to skmc.loop.solve", _with_callbacks)
def interrupting_leaves_a_usable_completer(case: Case) -> None:
    """Ctrl-C ends a fit with the iterate reached so far."""
    _, masked = small_problem()
    completer = case.make(tol=0.0, max_iter=200).set_callbacks(_Interrupt())
    with contextlib.suppress(KeyboardInterrupt):
        completer.fit(masked)
        ended = completer.n_iter_ <= completer.check_every
        expect(ended, "an interrupted fit raises nothing")
        return  # it has converged before the first check
    expect(completer.status_ == "interrupted", f"status_ is {completer.status_!r}")
    expect(
        completer.n_iter_ == completer.check_every,
        f"the interrupted fit has {completer.n_iter_} iterations",
    )
    completed = completer.transform(masked)
    expect(np.isfinite(completed).all(), "the completion is not finite")
    kept = completed[~masked.mask] == masked.data[~masked.mask]
    expect(kept.all(), "observed cells are changed")


@check("compare candidates by the trials that _choose gets", of_iterative)
def interrupting_a_choice_leaves_a_usable_completer(case: Case) -> None:
    """Ctrl-C during the choice of a hyper-parameter leaves a working completer."""
    _, masked = small_problem()
    completer = case.make()
    with (
        contextlib.suppress(KeyboardInterrupt),
        mock.patch.object(case.cls, "_for_trials", side_effect=KeyboardInterrupt),
    ):
        completer.fit(masked)
        expect(completer.status_ != "interrupted", "the interruption was not passed on")
    expect(np.isfinite(completer.transform(masked)).all(), "it is not finite")


@check(STEPS, of_iterative)
def overflow_is_a_divergence(case: Case) -> None:
    """Completions of unscaled float32 cells whose squares overflow are finite."""
    rng = np.random.RandomState(0)
    X = (1e18 * rng.randn(20, 12)).astype(np.float32)
    X = np.ma.masked_array(X, rng.rand(20, 12) < 0.3)
    completed = case.make(scaling=None).fit_transform(X)
    expect(np.isfinite(completed).all(), "the completion is not finite")


@check(STEPS, of_iterative)
def no_tolerance_is_no_crash(case: Case) -> None:
    """Steps after convergence stay finite."""
    X = low_rank(20, 15, rank=3).astype(np.float32)
    completer = case.make(tol=0.0, max_iter=300).fit(X)
    expect(np.isfinite(completer.reconstruction_).all(), "it is not finite")


@check(
    "set the class attribute step_parameter = 'lr', or give the parameter another name",
    having("lr"),
)
def divergence_has_a_status_and_a_finite_answer(case: Case) -> None:
    """A warning names a too high learning rate, and the completion is finite."""
    truth, hidden = rank_two()
    for dtype in (np.float32, np.float64):
        X = np.ma.masked_array(truth.astype(dtype), hidden)
        completer = case.make(lr=1e3, max_iter=200)
        with warns(r"diverged; .* lower lr \(now 1000.0\)", "fit with lr=1000"):
            completed = completer.fit_transform(X)
        expect(completer.status_ == "diverged", f"status_ is {completer.status_!r}")
        expect(np.isfinite(completed).all(), "the completion is not finite")
        error = relative_error(completed, truth, hidden)
        expect(error < 1.1, f"the error of the answer is {error:.3g}")


@check("set the class attribute may_underfit = True", having("lr"))
def poor_fits_say_so(case: Case) -> None:
    """A fit that ends far from the observed cells issues a warning."""
    truth, hidden = rank_two()
    X = np.ma.masked_array(1e6 * truth, hidden)
    completer = case.make(scaling=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        completer.fit(X)
    pattern = r"\.\d+ (on the observed cells|of the way) .* scaling"
    warned = any(re.search(pattern, str(w.message)) for w in caught)
    misfit = relative_error(completer.reconstruction_, X.data, ~hidden)
    # Fits that start at the truncated SVD converge at any scale.
    expect(
        warned == (misfit > 0.7),
        f"the misfit is {misfit:.2f}, and there is {'a' if warned else 'no'} warning",
    )


@check("leave early stopping to IterativeCompleter", having("early_stopping"))
def early_stopping_keeps_the_best_iterate(case: Case) -> None:
    """Early stopping returns the iterate that is best on the held-out cells."""
    truth, hidden = rank_two()
    noisy = truth + 0.5 * np.random.RandomState(0).randn(*truth.shape)
    X = np.ma.masked_array(noisy, hidden)
    params = {"early_stopping": True, "n_iter_no_change": 100, "max_iter": 1500}
    completer = case.make(**params, lr=0.01, scaling=None).fit(X)
    expect(completer.status_ == "stopped", f"status_ is {completer.status_!r}")
    history = completer.history_["validation"]
    best = int(completer.history_["n_iter"][history.argmin()])
    n_iter, n_checks = completer.n_iter_, completer.n_iter_ // completer.check_every
    expect(n_iter == best + 100, f"best iterate {best}, stopped at {n_iter}")
    expect(len(history) == n_checks, f"{len(history)} values at {n_checks} checks")
    cells = X.filled(np.nan)
    held_out = completer._drawn(cells, completer.validation_fraction, 0)
    error = rmse(completer.reconstruction_, noisy, held_out)
    close(history.min(), error, "the answer is not the best iterate", 1e-6)
    expect(history[-1] > history.min(), "the last iterate is the best one")
