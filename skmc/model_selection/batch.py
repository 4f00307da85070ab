"""Solving many fits at once, along a leading batch axis."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, TypeVar

import torch
from sklearn.exceptions import ConvergenceWarning

from skmc.base import Batchable, warn_user
from skmc.cells import Container
from skmc.linalg import seed_of
from skmc.loop import Solution, Status, tensorwise

C = TypeVar("C", bound=Batchable)

# Errors after which the two halves of a batch are solved separately.
SPLIT_ON = (
    torch.cuda.OutOfMemoryError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
)


def fit_batch(completers: Sequence[C], Xs: Sequence[Any]) -> list[C]:
    """Fit each completer to its matrix, all in one batched solve.

    The results are those of ``[c.fit(X) for c, X in zip(completers, Xs)]`` up to
    rounding: the fits do not interact, and each has its own random numbers.

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
    if not completers:
        return []
    for completer in completers:
        completer.batch_key()
    members = [Member(c, X) for c, X in zip(completers, Xs, strict=True)]
    interrupted = False
    for batch in started(members, completers[0].max_iter):
        for member, solution in batch.solutions():
            advice = member.completer.batch_accept(member.prepared, solution)
            if advice:
                name = type(member.completer).__name__
                warn_user(f"{name} {advice}", ConvergenceWarning)
            interrupted |= solution.status[0] is Status.INTERRUPTED
    if interrupted:
        raise KeyboardInterrupt
    return list(completers)


@dataclass
class Member:
    """One fit of a batch.

    Parameters
    ----------
    completer : Batchable
        Completer to fit.
    X : container as in ``fit``
        Matrix to fit it to.
    label : object, default=None
        Hashable label of the fit.
    """

    completer: Batchable
    X: InitVar[Any]
    label: Any = None

    def __post_init__(self, X: Container) -> None:
        self.prepared = self.completer.batch_prepare(X)

    @cached_property
    def seed(self) -> int:
        """Seed of the random numbers of this fit."""
        return seed_of(self.completer.random_state)


class BatchedFit:
    """Fits that run together in one batch; see `started`.

    Parameters
    ----------
    members : sequence of Member
        Fits whose completers are of one class and have equal parameters except those in
        ``completer_tags.batched``, and whose matrices have one shape and dtype.
    """

    def __init__(self, members: Sequence[Member]):
        self.members = dict(enumerate(members))  # without dropped ones
        completers = [m.completer for m in members]
        self.run = completers[0].batch_run(
            completers, [m.prepared for m in members], [m.seed for m in members]
        )

    def advance(self, n_iter: int) -> Iterator[BatchedFit]:
        """Continue up to iteration ``n_iter``; restart from scratch after a failure.

        Parameters
        ----------
        n_iter : int
            Number of the last iteration.

        Yields
        ------
        BatchedFit
            This batch or, after a failure, the new smaller batches.
        """
        try:
            self.run.advance(n_iter)
        except SPLIT_ON:
            yield from started(list(self.members.values()), n_iter)
        else:
            yield self

    def solutions(self) -> Iterator[tuple[Member, Solution]]:
        """Return the current solutions of all members.

        Yields
        ------
        member : Member
        solution : Solution
        """
        solution = self.run.solution()
        for k, member in self.members.items():
            yield member, _member(solution, k)

    def keep_only(self, labels: Collection[Any]) -> None:
        """Stop all members except those with the given labels.

        Parameters
        ----------
        labels : Collection
            Labels of the members that continue.
        """
        self.members = {k: m for k, m in self.members.items() if m.label in labels}
        present = self.run.answers.members
        kept = torch.tensor(
            list(self.members), dtype=present.dtype, device=present.device
        )
        self.run.answers.end(~torch.isin(present, kept), Status.STOPPED)
        self.run.drop_finished()


def started(members: Sequence[Member], n_iter: int) -> Iterator[BatchedFit]:
    """Start fits in one batch and run ``n_iter`` iterations.

    If the device runs out of memory, or a decomposition fails and it is unknown for
    which member, the two halves of the batch are restarted one after the other.

    Parameters
    ----------
    members : sequence of Member
        Fits that can share a batch.
    n_iter : int
        Number of iterations.

    Yields
    ------
    BatchedFit
        Usually a single one.
    """
    try:
        batch = BatchedFit(members)
        batch.run.advance(n_iter)
    except SPLIT_ON:
        if len(members) == 1:
            raise
    else:
        yield batch
        return
    half = (len(members) + 1) // 2
    yield from started(members[:half], n_iter)
    yield from started(members[half:], n_iter)


def _member(solution: Solution, k: int) -> Solution:
    """Return one member of a solution that has a single batch axis."""
    history = {
        name: values if values.ndim == 1 else values[:, k]
        for name, values in solution.history.items()
    }
    n_iter = int(solution.n_iter[k])
    n_checks = int((history["n_iter"] <= n_iter).sum()) if history else 0
    return Solution(
        outputs={
            name: tensorwise(lambda v: v[k], value)
            for name, value in solution.outputs.items()
        },
        status=[solution.status[k]],
        n_iter=solution.n_iter[k],
        residual=solution.residual[k],
        history={name: values[:n_checks] for name, values in history.items()},
    )
