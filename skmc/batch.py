"""Many fits as one solve: grid points, folds and seeds along a leading axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import joblib
import torch
from sklearn.base import clone

from skmc.iterative import IterativeCompleter
from skmc.observed import Observed
from skmc.randomness import Randomness, seed_of
from skmc.solve import Solution, Status, solve


def fit_batch(completers: Sequence[IterativeCompleter], Xs: Sequence[Any]) -> list:
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
    ValueError
        The completers or matrices cannot share a batch; the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.batch import fit_batch
    >>> X = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    >>> X[2, 3] = np.nan
    >>> grid = [AIRCompleter(w, max_iter=50, random_state=0) for w in (0.1, 1.0)]
    >>> [c.lambda_row for c in fit_batch(grid, [X, X])]
    [0.1, 1.0]
    """
    if not completers:
        return []
    for completer in completers:
        completer._validate_params()
    leader = _leader(completers)
    cells = [c._begin(X) for c, X in zip(completers, Xs, strict=True)]
    if len({(c.shape, c.dtype) for c in cells}) > 1:
        raise ValueError(
            "Xs must share one shape and dtype, got "
            f"{sorted({(c.shape, str(c.dtype)) for c in cells})}."
        )
    seeds = [seed_of(c.random_state) for c in completers]
    members = [c._prepare(x) for c, x in zip(completers, cells, strict=True)]
    data = Observed(
        torch.stack([d.values for d, _ in members]),
        torch.stack([d.mask for d, _ in members]),
    )
    train, rules = leader._hold_out(data, cells, seeds)
    draw = Randomness.of(seeds, (len(seeds),), data.values.dtype)
    solution = solve(
        leader._make_solver(train, draw),
        train,
        max_iter=leader.max_iter,
        tol=leader.tol,
        stop=rules,
        check_every=leader.check_every,
    )
    for k, completer in enumerate(completers):
        completer._finish(cells[k], *members[k], _member(solution, k))
    if Status.INTERRUPTED in solution.status:
        raise KeyboardInterrupt
    return list(completers)


def _leader(completers: Sequence[IterativeCompleter]) -> IterativeCompleter:
    """One completer whose batched parameters are tensors."""
    first, *others = completers
    batched = first.completer_tags.batched
    if not batched:
        raise ValueError(f"{type(first).__name__} has no batched solve; fit in a loop.")
    shared = {k: joblib.hash(v) for k, v in first.get_params().items()}
    for other in others:
        params = other.get_params()
        if type(other) is not type(first) or any(
            joblib.hash(params[name]) != value
            for name, value in shared.items()
            if name not in batched
        ):
            raise ValueError(
                f"{other!r} cannot share a batch with {first!r}: only {batched} may "
                "differ."
            )
    weights = {
        name: torch.tensor(
            [float(getattr(c, name)) for c in completers], dtype=torch.float64
        )
        for name in batched
        if name != "random_state"
    }
    return clone(first).set_params(**weights)


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
