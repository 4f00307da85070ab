"""Many fits as one solve: grid points, folds and seeds along a leading axis."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning

from skmc.base import Batchable, warn_user
from skmc.linalg import seed_of
from skmc.loop import Solution, Status

FAILURES = (torch.cuda.OutOfMemoryError, torch.linalg.LinAlgError)


def fit_batch(completers: Sequence[Batchable], Xs: Sequence[Any]) -> list:
    """Fit each completer to its matrix, all in one batched solve.

    The answers are those of ``[c.fit(X) for c, X in zip(completers, Xs)]`` up to
    rounding: members never interact, and each has its own random numbers.

    Parameters
    ----------
    completers : sequence of completers of one class
        Equal in all parameters but those in ``completer_tags.batched``.
    Xs : sequence of containers
        One per completer, of one shape and dtype.

    Returns
    -------
    list
        The completers, fitted.

    Raises
    ------
    CannotBatch
        A `ValueError`: the completers or matrices cannot share a batch.

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
    for batch in begin(members, completers[0].max_iter):
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
    """One fit of a batch: a completer, its matrix, and what the fit is called.

    Parameters
    ----------
    completer : Batchable
        What is to be fitted; it gets the fitted attributes.
    X : container as in ``fit``
        Its matrix.
    label : object, default=None
        What the fit is called; it must be hashable.
    """

    completer: Batchable
    X: InitVar[Any]
    label: Any = None

    def __post_init__(self, X: Any) -> None:
        self.prepared = self.completer.batch_prepare(X)

    @cached_property
    def seed(self) -> int:
        """The integer that this fit draws from."""
        return seed_of(self.completer.random_state)


class BatchedFit:
    """Fits under way together; see `begin`.

    Parameters
    ----------
    members : sequence of Member
        Their completers are of one class and equal in all parameters but those in
        ``completer_tags.batched``; their matrices have one shape and dtype.
    """

    def __init__(self, members: Sequence[Member]):
        self.members = dict(enumerate(members))  # those that are wanted
        completers = [m.completer for m in members]
        self.run = completers[0].batch_run(
            completers, [m.prepared for m in members], [m.seed for m in members]
        )

    def advance(self, n_iter: int) -> Iterator[BatchedFit]:
        """Go on until so many iterations are done; what failed begins anew.

        Parameters
        ----------
        n_iter : int
            Iterations in all.

        Yields
        ------
        BatchedFit
        """
        try:
            self.run.advance(n_iter)
        except FAILURES:
            yield from begin(list(self.members.values()), n_iter)
        else:
            yield self

    def solutions(self) -> Iterator[tuple[Member, Solution]]:
        """Of all members, as they are now.

        Yields
        ------
        member : Member
        solution : Solution
        """
        solution = self.run.solution()
        for k, member in self.members.items():
            yield member, _member(solution, k)

    def keep(self, labels: Collection) -> None:
        """End the members that have other labels.

        Parameters
        ----------
        labels : Collection
            Of the members that go on.
        """
        self.members = {k: m for k, m in self.members.items() if m.label in labels}
        here = self.run.members
        wanted = torch.tensor(list(self.members), dtype=here.dtype, device=here.device)
        self.run.end(~torch.isin(here, wanted), Status.STOPPED)
        self.run.drop_finished()


def begin(members: Sequence[Member], n_iter: int) -> Iterator[BatchedFit]:
    """Batches that have done ``n_iter`` iterations, usually a single one.

    Where memory runs out on the device, or a decomposition fails and it is not known
    in which member, the two halves begin anew, one after the other.

    Parameters
    ----------
    members : sequence of Member
        The fits; they must be able to share a batch.
    n_iter : int
        Iterations to begin with.

    Yields
    ------
    BatchedFit
    """
    try:
        batch = BatchedFit(members)
        batch.run.advance(n_iter)
    except FAILURES:
        if len(members) == 1:
            raise
    else:
        yield batch
        return
    half = (len(members) + 1) // 2
    yield from begin(members[:half], n_iter)
    yield from begin(members[half:], n_iter)


def _member(solution: Solution, k: int) -> Solution:
    """One member of a solution along a single batch axis."""
    history = {
        name: values if values.ndim == 1 else values[:, k]
        for name, values in solution.history.items()
    }
    lived = int((history["n_iter"] <= int(solution.n_iter[k])).sum()) if history else 0
    return Solution(
        outputs={name: value[k] for name, value in solution.outputs.items()},
        status=[solution.status[k]],
        n_iter=solution.n_iter[k],
        residual=solution.residual[k],
        history={name: values[:lived] for name, values in history.items()},
    )
