"""Solving many fits at once, along a leading batch axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skmc.base import CannotBatch, IterativeCompleter, warn_user
from skmc.cells import Entries, Given
from skmc.linalg import memory_of, resolve_device, seed_of
from skmc.loop import Solution, Status, tensorwise

C = TypeVar("C", bound=IterativeCompleter)

# Errors after which the two halves of a batch are solved separately.
SPLIT_ON = (
    torch.cuda.OutOfMemoryError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
)
# On a CPU, larger matrices are fitted alone, because a batch gains nothing. Measured
# milliseconds per step and member of AIR on one core, alone and in a batch of 25, in
# single precision: 1.06 and 0.96 at 160 x 160, 2.2 and 2.1 at 240 x 240.
MAX_BATCHED_CELLS = 200 * 200
# On a CPU, the arrays of a batch should stay in the caches; this is a bound for an
# estimate from above. Measured microseconds per step and member of AIR in batches of 4,
# 8, 25 and 62, double precision: 41, 34, 25, 24 at 30 x 40 (0.6 MiB a member), 89, 85,
# 81, 103 at 60 x 60 (1.9 MiB), 324, 345, 377, 431 at 100 x 100 (5.2 MiB).
MAX_CACHED = 32 * 2**20
MAX_MEMORY_SHARE = 0.25  # share of the device's memory that a batch may use


def fit_batch(completers: Sequence[C], Xs: Sequence[Any]) -> list[C]:
    """Fit each completer to its matrix, all in one batched solve.

    The results are those of ``[c.fit(X) for c, X in zip(completers, Xs)]`` up to
    rounding: the fits do not interact, and each has its own random numbers. If the
    device runs out of memory, the two halves of the batch are solved one after the
    other.

    Parameters
    ----------
    completers : sequence of completers of one class
        Completers with equal parameters except those in ``completer_tags.batched``.
    Xs : sequence of containers
        Matrices of one shape and dtype, one per completer.

    Returns
    -------
    list
        The fitted completers.

    Raises
    ------
    CannotBatch
        The completers or matrices cannot share a batch. It is a `ValueError`.

    See Also
    --------
    BatchedGridSearchCV : Fits the candidates of a search in batches.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.model_selection import fit_batch
    >>> X = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    >>> X[2, 3] = np.nan
    >>> grid = [AIRCompleter(w, max_iter=50, random_state=0) for w in (0.1, 1.0)]
    >>> [c.lambda_row for c in fit_batch(grid, [X, X])]
    [0.1, 1.0]
    """
    for completer in completers:
        completer.batch_key()
    pairs = zip(completers, Xs, strict=True)
    members = [(completer, completer.batch_prepare(X)) for completer, X in pairs]
    fit_prepared(members)
    return list(completers)


def fit_prepared(members: Sequence[tuple[IterativeCompleter, Given]]) -> None:
    """Fit completers to matrices that they have read, in one batched solve."""
    seeds = [seed_of(completer.random_state) for completer, _ in members]
    solutions = _solutions(members, seeds)
    interrupted = False
    for (completer, prepared), solution in zip(members, solutions, strict=True):
        advice = completer.batch_accept(prepared, solution)
        if advice:
            warn_user(f"{type(completer).__name__} {advice}", ConvergenceWarning)
        interrupted |= solution.status[0] is Status.INTERRUPTED
    if interrupted:
        raise KeyboardInterrupt


def _solutions(
    members: Sequence[tuple[IterativeCompleter, Given]], seeds: Sequence[int]
) -> Iterator[Solution]:
    """Solve a batch, or its halves one after the other if it fails as a whole."""
    if not members:
        return
    completers, prepared = zip(*members, strict=True)
    try:
        run = completers[0].batch_run(completers, prepared, seeds)
        run.advance(completers[0].max_iter)
        solution = run.solution()
    except SPLIT_ON:
        if len(members) == 1:
            raise
    else:
        for k in range(len(members)):
            yield _member(solution, k)
        return
    half = (len(members) + 1) // 2
    yield from _solutions(members[:half], seeds[:half])
    yield from _solutions(members[half:], seeds[half:])


def _member(solution: Solution, k: int) -> Solution:
    """Return one member of a solution that has a single batch axis."""
    history = {
        name: values if values.ndim == 1 else values[:, k]
        for name, values in solution.history.items()
    }
    n_iter = int(solution.n_iter[k])
    n_checks = int((history["n_iter"] <= n_iter).sum()) if history else 0
    return Solution(
        result=tensorwise(itemgetter(k), solution.result),
        status=[solution.status[k]],
        n_iter=solution.n_iter[k],
        residual=solution.residual[k],
        history={name: values[:n_checks] for name, values in history.items()},
    )


def group_key(completer: object, X: Any) -> Any:
    """Key that is equal for fits that can share a batch."""
    if not isinstance(completer, IterativeCompleter):
        raise CannotBatch(f"{type(completer).__name__} has no batched solve")
    return completer.batch_key(), shape_of(X), str(getattr(X, "dtype", None))


def shape_of(X: Any) -> tuple[int, ...]:
    """Return the shape of a matrix in a container."""
    return X.matrix_shape if isinstance(X, Entries) else np.shape(X)


def batch_pays(completers: Sequence[Any], X: Any) -> bool:
    """Return whether fits can share one batch, and take less time there than alone."""
    try:
        keys = {group_key(completer, X) for completer in completers}
    except CannotBatch:
        return False
    on_device = resolve_device(completers[0].device).type != "cpu"
    return len(keys) == 1 and (on_device or math.prod(shape_of(X)) <= MAX_BATCHED_CELLS)


def largest_batch(completer: IterativeCompleter, X: Any, n_workers: int) -> int:
    """Return the number of fits in a batch for which the memory suffices."""
    device = resolve_device(completer.device)
    memory = MAX_MEMORY_SHARE * memory_of(device) / n_workers
    if device.type == "cpu":
        if math.prod(shape_of(X)) > MAX_BATCHED_CELLS:
            return 1
        memory = min(memory, MAX_CACHED)
    try:
        member = clone(completer).batch_memory(X)
    except (ValueError, TypeError, MemoryError):  # the fit will report the error
        return 1
    return max(1, int(memory / member))
