"""Dataclasses of tensors that are moved, narrowed and added together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from torch import Tensor

P = TypeVar("P", bound="Parts")


@dataclass(frozen=True, eq=False)
class Parts:
    """The base of a dataclass whose tensors are treated alike."""

    def map(self: P, function: Callable[..., Tensor], *others: P) -> P:
        """``function`` of each tensor, together with its counterparts in ``others``.

        Tensors in lists, in tuples and in other `Parts` are among them. What is not a
        tensor stays as it is.

        Parameters
        ----------
        function : callable
            Of as many tensors as there are ``others``, and one more.
        *others : Parts
            Of the same class.

        Returns
        -------
        Parts
        """

        def visit(first: Any, *rest: Any) -> Any:
            if isinstance(first, Tensor):
                return function(first, *rest)
            if isinstance(first, Parts):
                return first.map(function, *rest)
            if isinstance(first, list | tuple):
                return type(first)(map(visit, first, *rest))
            return first

        names = [field.name for field in fields(self)]
        columns = ([getattr(part, name) for name in names] for part in (self, *others))
        return type(self)(*map(visit, *columns))

    def to(self: P, *args: Any) -> P:
        """Move or cast all tensors.

        Parameters
        ----------
        *args : device or dtype
            As `torch.Tensor.to` takes them.

        Returns
        -------
        Parts
        """
        return self.map(lambda tensor: tensor.to(*args))
