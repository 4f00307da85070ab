"""What a batched search asks of an estimator."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import torch

from skmc.loop import Run, Solution


class CannotBatch(ValueError):
    """Fits cannot share a batch; the message says why."""


@runtime_checkable
class Batchable(Protocol):
    """An estimator whose fits can be members of one solve.

    `skmc.base.IterativeCompleter` implements it, for estimators whose
    ``completer_tags.batched`` names the parameters that may differ within a batch. Fits
    of other estimators are run one by one.

    Attributes
    ----------
    device : str or torch.device
        Where it computes.
    random_state : int, RandomState instance or None
        What it draws from.
    """

    device: str | torch.device
    random_state: Any

    @property
    def max_iter(self) -> int:
        """Steps of a fit at most."""

    def batch_key(self) -> Hashable:
        """What estimators that can share a batch have in common.

        Returns
        -------
        hashable

        Raises
        ------
        CannotBatch
            This estimator must be fitted alone.
        """

    def batch_prepare(self, X: Any) -> Any:
        """Read a matrix.

        Parameters
        ----------
        X : container
            As in ``fit``.

        Returns
        -------
        object
            What the other methods call ``prepared``.
        """

    def batch_run(
        self, estimators: Sequence[Self], prepared: Sequence[Any], seeds: Sequence[int]
    ) -> Run:
        """A solve of several fits along a batch axis, before its first step.

        Parameters
        ----------
        estimators : sequence of estimators
            One of each member, with equal `batch_key`.
        prepared : sequence
            One of each member.
        seeds : sequence of int
            One of each member.

        Returns
        -------
        Run

        Raises
        ------
        CannotBatch
            The members do not fit into one batch.
        """

    def batch_accept(
        self, prepared: Any, solution: Solution, *, defer: bool = False
    ) -> str | None:
        """Become fitted by the solution of one member.

        Parameters
        ----------
        prepared : object
            The member's matrix.
        solution : Solution
            Its solution.
        defer : bool, default=False
            Whether what only new rows need may be made when one comes.

        Returns
        -------
        str or None
            A warning for the user, without the estimator's name.
        """

    def batch_memory(self, X: Any) -> int:
        """Memory of one member of a batch.

        Parameters
        ----------
        X : container
            As in ``fit``.

        Returns
        -------
        int
            In bytes.
        """
