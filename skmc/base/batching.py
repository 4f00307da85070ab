"""The interface between estimators and batched searches."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import joblib
import torch

from skmc.base.fitting import hold_out, outcome_of
from skmc.base.reporting import warn_of_empty
from skmc.base.trials import CannotBatch, Trials, no_choice
from skmc.cells import Cells, Container, Given, Observed
from skmc.linalg import Randomness, threads_for
from skmc.loop import HeldOut, Run, Solution
from skmc.solvers import modules_in

if TYPE_CHECKING:
    from skmc.base.iterative import IterativeCompleter

# Upper bounds of the numbers of elements per parameter, per cell and per output of a
# hidden unit, including the overhead of the allocator: measured for AIR, DMF and SNN
# at 300 x 200 and 400 x 50, and for networks at 60 x 40 to 300 x 20.
PER_PARAMETER, PER_CELL, PER_OUTPUT = 12, 20, 6


@runtime_checkable
class Batchable(Protocol):
    """An estimator whose fits can be solved together in one batch.

    `skmc.base.IterativeCompleter` implements this protocol for completers whose
    ``completer_tags.batched`` names the parameters that may differ within a batch. Fits
    of other estimators are run one by one.

    Attributes
    ----------
    device : str or torch.device
        Device on which the fit runs.
    random_state : int, RandomState instance or None
        Source of the random numbers of the fit.
    """

    device: str | torch.device
    random_state: Any

    @property
    def max_iter(self) -> int:
        """Maximum number of iterations of a fit."""

    def batch_key(self) -> Hashable:
        """Key that is equal for estimators that can share a batch.

        Returns
        -------
        hashable

        Raises
        ------
        CannotBatch
            This estimator must be fitted alone.
        """

    def batch_prepare(self, X: Container) -> Any:
        """Read a matrix and convert it for `batch_run`.

        Parameters
        ----------
        X : container
            Matrix to fit, as in ``fit``.

        Returns
        -------
        object
            The ``prepared`` argument of the other methods.
        """

    def batch_run(
        self, estimators: Sequence[Self], prepared: Sequence[Any], seeds: Sequence[int]
    ) -> Run:
        """Set up one solve of several fits, which run along a batch axis.

        Parameters
        ----------
        estimators : sequence of estimators
            The estimators to fit, with equal `batch_key`.
        prepared : sequence
            Results of `batch_prepare`, one per estimator.
        seeds : sequence of int
            Random seeds, one per estimator.

        Returns
        -------
        Run
            The solve before its first step.

        Raises
        ------
        CannotBatch
            The matrices or estimators cannot share a batch.
        """

    def batch_accept(self, prepared: Any, solution: Solution) -> str | None:
        """Set the fitted attributes from the solution of one fit.

        Parameters
        ----------
        prepared : object
            Result of `batch_prepare` for this fit.
        solution : Solution
            Solution of this fit, without the batch axis.

        Returns
        -------
        str or None
            A warning for the user, without the estimator's name.
        """

    def batch_memory(self, X: Container) -> int:
        """Estimate the memory that one fit of a batch needs.

        Parameters
        ----------
        X : container
            Matrix to fit, as in ``fit``.

        Returns
        -------
        int
            Number of bytes.
        """


def batch_key(self: IterativeCompleter) -> Hashable:
    """Key that is equal for estimators that can share a batch.

    Returns
    -------
    hashable

    Raises
    ------
    CannotBatch
        The completer has no batched solve, chooses hyper-parameters by its own fits, or
        has callbacks or a time limit.
    """
    name, batched = type(self).__name__, self.completer_tags.batched
    if not batched:
        raise CannotBatch(f"{name} has no batched solve")
    if type(self)._choose is not no_choice:
        auto = [p for p in self.chosen if getattr(self, p) == "auto"]
        if auto or not self.chosen:
            what = " and ".join(auto) or "hyper-parameters"
            raise CannotBatch(f"{name} chooses {what} by fits of its own")
    if self.max_time is not None:
        raise CannotBatch(f"max_time={self.max_time:g} is for single fits")
    if getattr(self, "_skl_callbacks", None):
        raise CannotBatch(f"the callbacks of {name} need single fits")
    params = self.get_params(deep=False)
    shared = {name: params[name] for name in params if name not in batched}
    return type(self), joblib.hash(shared)


def batch_prepare(self: IterativeCompleter, X: Container) -> Given:
    """Read and scale a matrix for a fit in a batch.

    Parameters
    ----------
    X : container as in `fit`
        Matrix to fit.

    Returns
    -------
    Given

    Raises
    ------
    ValueError
        The completer is fitted and has ``warm_start=True``.
    """
    if getattr(self, "warm_start", False) and hasattr(self, "_fitted"):
        raise ValueError(
            "Fits in a batch start from scratch; set warm_start=False, or clone the "
            "completers."
        )
    self._validate_params()
    with threads_for(0):
        given = self._given(X, {})
    warn_of_empty(self, given.statistics)
    return self._scaled(given)


def batch_run(
    self: IterativeCompleter,
    estimators: Sequence[IterativeCompleter],
    prepared: Sequence[Given],
    seeds: Sequence[int],
) -> Run:
    """Set up one solve of several fits, which run along a batch axis.

    Parameters
    ----------
    estimators : sequence of completers
        Completers to fit, with equal `batch_key`.
    prepared : sequence of Given
        Matrices of one shape and dtype, one per completer.
    seeds : sequence of int
        Random seeds, one per completer.

    Returns
    -------
    Run
        The solve before its first step.

    Raises
    ------
    CannotBatch
        The matrices or completers cannot share a batch.
    """
    kinds = {(p.data.shape, str(p.matrix.dtype)) for p in prepared}
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
        free_means=prepared[0].data.free_means,
    )
    train, rules = data, list[HeldOut]()
    if getattr(self, "early_stopping", False):
        train, rules = hold_out(self, data, seeds)
    dtype = train.dtype
    rng = Randomness.of(seeds, (len(prepared),), dtype)
    params = self._params(_without_trials(self, train))
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
    self: IterativeCompleter, prepared: Given, solution: Solution
) -> str | None:
    """Set the fitted attributes from the solution of one fit of a batch.

    Parameters
    ----------
    prepared : Given
        Matrix of this fit.
    solution : Solution
        Solution of this fit, without the batch axis.

    Returns
    -------
    str or None
        A warning about a fit that did not succeed, without the completer's name.
    """
    chosen = _without_trials(self, prepared.data)
    outcome = outcome_of(self, prepared, chosen, solution)
    self._set_fitted(prepared.statistics, outcome)
    return outcome.advice


def batch_memory(self: IterativeCompleter, X: Container) -> int:
    """Estimate the memory that one fit of a batch needs.

    Parameters
    ----------
    X : container as in `fit`
        Matrix to fit.

    Returns
    -------
    int
        Number of bytes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = batch_prepare(self, X).data
    rng = Randomness.of([0], dtype=data.dtype)
    # A stage before the last one must not be trained here.
    params = self._params({**_without_trials(self, data), "max_iter": 1})
    solver: Any = self._make_solver(data, params, rng)
    parts = modules_in([*vars(solver).values()])
    learned = sum(p.numel() for part in parts for p in part.parameters())
    per_cell = PER_CELL + PER_OUTPUT * self._units_per_cell(data.shape[1])
    numbers = PER_PARAMETER * learned + per_cell * data.values.numel()
    return int(numbers * data.values.itemsize)


def _without_trials(completer: IterativeCompleter, data: Cells) -> dict[str, Any]:
    """Return the choices of a completer in a batch, if it needs no trials."""
    return completer._choose(data, Trials(_nothing_to_try, Randomness.of([])))


def _nothing_to_try() -> tuple[Any, Any]:
    raise CannotBatch("hyper-parameters are chosen by fits of their own")
