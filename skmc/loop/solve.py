"""The function that runs a solver until every batch member has finished."""

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
    """Run a solver until every batch member has finished.

    Parameters
    ----------
    solver : Solver
        Defines one step.
    data : Observed of shape (\\*batch, n_rows, n_cols), or SparseObserved
        Observed cells.
    max_iter : int
        Maximum number of steps.
    tol : float, default=0.0
        Largest residual of a converged member, which ends with ``CONVERGED``.
    stop : sequence of stop rules, default=()
        Functions that map a `Progress` to the members to end with ``STOPPED``.
    callbacks : sequence of callables, default=()
        Functions that are called with the `Progress`; return values are ignored.
    check_every : int, default=25
        Number of steps between checks. A check evaluates residuals, stop rules,
        callbacks and history. The last step is followed by a check. Between checks,
        nothing waits for the device.

    Returns
    -------
    Solution
        A stopped member keeps its last iterate. A diverged member (not finite, or 1000
        times further from the observed cells than zero is) gets its finite iterate
        with the lowest objective. A ``KeyboardInterrupt`` ends the loop with the
        current iterates (``INTERRUPTED``) and is not raised again. Members that run
        when the time of `time_limit` has passed end with ``MAX_TIME``.

    Raises
    ------
    torch.linalg.LinAlgError
        A decomposition failed, and it is unknown for which of several members. If there
        is a single member, it has diverged instead.
    """
    run = Run(
        solver, data, tol=tol, stop=stop, callbacks=callbacks, check_every=check_every
    )
    store = STORE.get()
    if store is None:
        run.advance(max_iter)
        return run.solution()
    # This comes after init, which may advance a random generator that is shared.
    stored = store.begin(solver, data)
    if isinstance(stored, Solution):
        return stored
    if stored is not None:
        run.resume(stored)
    run.advance(max_iter, store.offer)
    solution = run.solution()
    if Status.INTERRUPTED not in solution.status:
        store.finish(solution)
    return solution


def solve_part(
    solver: Solver, data: Observed | SparseObserved, **params: Any
) -> Solution:
    """Call `solve`, and raise ``KeyboardInterrupt`` if it was interrupted.

    This is for solves that are part of a longer computation.

    Parameters
    ----------
    solver : Solver
        Defines one step.
    data : Observed or SparseObserved
        Observed cells.
    **params : dict
        Further parameters of `solve`.

    Returns
    -------
    Solution
    """
    solution = solve(solver, data, **params)
    if Status.INTERRUPTED in solution.status:
        raise KeyboardInterrupt
    return solution
