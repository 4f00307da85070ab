"""Iterating a solver until every member of the batch has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skmc.cells import Observed, SparseObserved
from skmc.loop.run import Run
from skmc.loop.scope import STORE
from skmc.loop.solution import Callback, Solution, Status, StopRule
from skmc.solvers import Solver


def solve(
    solver: Solver,
    data: Observed | SparseObserved,
    *,
    max_iter: int,
    tol: float = 0.0,
    stop: Sequence[StopRule] = (),
    callbacks: Sequence[Callback] = (),
    check_every: int = 25,
) -> Solution:
    """Iterate until every member of the batch has ended.

    Parameters
    ----------
    solver : Solver
        What one step is.
    data : Observed of shape (\\*batch, n_rows, n_cols), or SparseObserved
        The observed cells.
    max_iter : int
        Steps at most.
    tol : float
        A member ends as ``CONVERGED`` once its residual is at most ``tol``.
    stop : sequence of stop rules
        Each maps a `Progress` to the members that should end (``STOPPED``).
    callbacks : sequence of callables
        Each is shown the `Progress`; what it returns is ignored.
    check_every : int
        Residuals, stop rules, callbacks and history are evaluated every so many
        steps and after the last: in between, nothing waits for the device.

    Returns
    -------
    Solution
        A member which stopped keeps the iterate it stopped at. One which diverged
        (not finite, or 1000 times further from the observed cells than zero is) gets
        its finite iterate of lowest objective. A ``KeyboardInterrupt`` ends the loop
        with the iterates so far (``INTERRUPTED``); it is not raised again.

    Raises
    ------
    torch.linalg.LinAlgError
        A decomposition failed, and which of several members it was is not known. A
        single one has diverged.
    """
    run = Run(
        solver,
        data,
        tol=tol,
        stop=stop,
        callbacks=callbacks,
        check_every=check_every,
    )
    store = STORE.get()
    if store is None:
        run.advance(max_iter)
        return run.solution()
    # After init, which may draw from a generator that others draw from, too.
    kept = store.begin(solver, data)
    if isinstance(kept, Solution):
        return kept
    if kept is not None:
        run.resume(kept)
    run.advance(max_iter, store.offer)
    solution = run.solution()
    if Status.INTERRUPTED not in solution.status:
        store.finish(solution)
    return solution


def solve_part(
    solver: Solver, data: Observed | SparseObserved, **params: Any
) -> Solution:
    """`solve` as a part of something longer, which an interruption ends as well.

    Parameters
    ----------
    solver : Solver
        What one step is.
    data : Observed or SparseObserved
        The observed cells.
    **params : dict
        As of `solve`.

    Returns
    -------
    Solution
    """
    solution = solve(solver, data, **params)
    if Status.INTERRUPTED in solution.status:
        raise KeyboardInterrupt
    return solution
