"""The steps of a fit from the data to the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from skmc.base.fitted import Fitted, Outcome, common_attributes
from skmc.base.reporting import diverged, out_of_time, record, unfinished
from skmc.base.trials import Choice, choose, no_choice
from skmc.cells import Given, Observed
from skmc.linalg import Randomness, seed_of
from skmc.loop import (
    CallbackHooks,
    HeldOut,
    OutOfTime,
    Solution,
    Status,
    solve,
    time_limit,
)
from skmc.solvers import ParametricSolver, Solver, modules_in
from skmc.terms import Sum, Term

if TYPE_CHECKING:
    from skmc.base.iterative import IterativeCompleter

# A relative misfit on the observed cells above this is reported as a poor fit.
POOR = 0.7


def fit_given(completer: IterativeCompleter, given: Given, y: object = None) -> Outcome:
    """Scale the data, choose hyper-parameters, solve, and make the result.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer being fitted, which is not changed.
    given : Given
        Input of `fit`.
    y : object, default=None
        Targets for scikit-learn's callbacks.

    Returns
    -------
    Outcome
    """
    with time_limit(completer.max_time):
        seed = seed_of(completer.random_state)
        given = completer._scaled(given)
        last, train = None, given.data
        rules: list[HeldOut] = []
        if getattr(completer, "warm_start", False):
            last = last_fit(completer, given)
        if getattr(completer, "early_stopping", False):
            train, rules = hold_out(completer, train, [seed])
        rng = Randomness.of([seed], dtype=train.dtype)
        attributes = partial(fitted_attributes, completer, given, {})
        hooks = CallbackHooks(completer, given.read, y, attributes)
        hooks.begin()
        choice = Choice()
        if type(completer)._choose is not no_choice:
            choice = choose(completer, train, seed, rng)
        solution = None
        if not choice.interrupted:
            params = completer._params(choice.params, last, given.known)
            with suppress(KeyboardInterrupt, OutOfTime):
                solver = completer._make_solver(train, params, rng)
                if getattr(completer, "warm_start", False):
                    resume(solver, last)
                solution = solve(
                    solver,
                    train,
                    max_iter=completer.max_iter,
                    tol=completer.tol,
                    stop=[*rules, hooks],
                    check_every=completer.check_every,
                )
        if solution is None:
            solution = Solution.before(train)
        outcome = outcome_of(completer, given, choice.params, solution, choice.hurried)
        if solution.status[0] is Status.DIVERGED and (
            names := faulty(solver, solution)
        ):
            remedy = f"correct {names}, whose value or gradient at this iterate is NaN"
            outcome.advice = diverged(solution, remedy)
        hooks.end(solution.outputs)
        return outcome


def faulty(solver: Solver, solution: Solution) -> str:
    """Names of the terms of an objective that are NaN at the best iterate.

    Parameters
    ----------
    solver : Solver
        Diverged solution.
    solution : Solution
        Without a batch axis.

    Returns
    -------
    str
        Names of the classes; empty if no term is at fault.
    """
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


def last_fit(completer: IterativeCompleter, given: Given) -> Fitted | None:
    """The fit from whose solution the next one starts.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer, which has such a fit once it is fitted.
    given : Given
        Input of the next fit.

    Returns
    -------
    Fitted or None

    Raises
    ------
    ValueError
        The matrix has another shape.
    """
    if not hasattr(completer, "_fitted"):
        return None
    shape = given.statistics.shape
    if completer._shape != shape:
        raise ValueError(
            f"X has shape {shape}, but the fit from which warm_start=True resumes had "
            f"{completer._shape}; set warm_start=False."
        )
    return completer._fitted


def resume(solver: Solver, last: Fitted | None) -> None:
    """Let a solver start from the parameters of the last fit, and return them.

    Parameters
    ----------
    solver : Solver
        Solver, which is changed if it trains parameters.
    last : Fitted or None
        The last fit.
    """
    if isinstance(solver, ParametricSolver):
        solver.remember = True
        solver.start = getattr(last, "warm", {}).get("parameters")


def hold_out(
    completer: IterativeCompleter, data: Observed, seeds: Sequence[int]
) -> tuple[Any, list[HeldOut]]:
    """Hold out cells for early stopping.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer, which draws the cells.
    data : Observed
        Matrix, or a batch of matrices.
    seeds : sequence of int
        One seed for each matrix.

    Returns
    -------
    data
        Cells to train on.
    rules : list of HeldOut
        Stop rules that use the held-out cells.
    """
    cells = torch.where(data.mask, data.values, torch.nan).cpu().numpy()
    matrices = cells if data.batch_shape else [cells]
    share = completer.validation_fraction
    pairs = zip(matrices, seeds, strict=True)
    hidden = np.stack([completer._drawn(c, share, seed) for c, seed in pairs])
    if not hidden.any():  # too few cells to hold any out
        return data, []
    if not hidden.any((1, 2)).all():
        raise ValueError(
            "early_stopping cannot hold out a cell in some matrices of the batch; "
            "fit those alone."
        )
    mask = torch.from_numpy(hidden).view(data.mask.shape).to(data.device)
    rule = HeldOut(replace(data, mask=mask), completer.n_iter_no_change)
    return data.hide(mask), [rule]


def outcome_of(
    completer: IterativeCompleter,
    given: Given,
    chosen: Mapping[str, Any],
    solution: Solution,
    hurried: bool = False,
) -> Outcome:
    """Make the fitted attributes from the solution of one fit.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer being fitted, which is not changed.
    given : Given
        Scaled observed cells.
    chosen : mapping
        Chosen hyper-parameters.
    solution : Solution
        Without a batch axis.
    hurried : bool, default=False
        Whether the time for the choice was too short.

    Returns
    -------
    Outcome
    """
    attributes = fitted_attributes(completer, given, chosen, solution.outputs)
    data = given.data
    misfit = (data.misfit(solution.X) / (data.energy or 1.0)).sqrt()
    return Outcome(
        attributes.pop("_fitted"),
        {**attributes, **record(solution)},
        out_of_time(solution, completer.max_time, hurried)
        or completer._advice(solution, float(misfit)),
        solution.status[0] is Status.INTERRUPTED,
    )


def fitted_attributes(
    completer: IterativeCompleter,
    given: Given,
    chosen: Mapping[str, Any],
    outputs: dict[str, Any],
) -> dict[str, Any]:
    """All attributes that prediction needs, by name.

    Parameters
    ----------
    completer : IterativeCompleter
        Completer being fitted, which is not changed.
    given : Given
        Scaled observed cells.
    chosen : mapping
        Chosen hyper-parameters.
    outputs : dict
        Outputs of the solver.

    Returns
    -------
    dict of str to object
    """
    public = {f"{k}_": v for k, v in chosen.items() if not k.startswith("_")}
    common = common_attributes(completer, given.statistics)
    return {**common, **public, **completer._attributes(given, outputs)}


def advice_on(
    completer: IterativeCompleter, solution: Solution, misfit: float
) -> str | None:
    """Make a warning about a fit that did not succeed.

    Parameters
    ----------
    completer : IterativeCompleter
        Fitted completer.
    solution : Solution
        Without a batch axis.
    misfit : float
        Relative distance from the observed cells.

    Returns
    -------
    str or None
        None if the fit succeeded.
    """
    step = completer.step_parameter
    if solution.status[0] is not Status.MAX_ITER:
        remedy = "let scaling standardize the data"
        if step:
            remedy = f"lower {step} (now {getattr(completer, step)!r})"
        return diverged(solution, remedy)
    if completer.warn_at_max_iter:
        return unfinished(solution, completer.tol)
    if misfit > POOR and completer.may_underfit:
        names = [name for name in completer.get_params() if name.startswith("lambda_")]
        lower = f" lower {' and '.join(names)}," if names else ""
        steps = f" or {step}" if step else ""
        return (
            f"has a relative error of {misfit:.2f} on the observed cells after "
            f"{int(solution.n_iter)} iterations. Raise max_iter{steps},{lower} or "
            "let scaling standardize the data."
        )
    return None
