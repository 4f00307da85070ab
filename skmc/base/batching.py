"""The interface between estimators and batched searches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import torch

from skmc.cells import Container
from skmc.loop import Run, Solution


class CannotBatch(ValueError):
    """Fits cannot share a batch; the message gives the reason."""


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
