"""Dataclasses of tensors that are moved, selected and added together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from torch import Tensor

P = TypeVar("P", bound="Parts")


@dataclass(frozen=True, eq=False)
class Parts:
    """Base of a dataclass whose tensors are all treated in the same way."""

    def map(self: P, function: Callable[..., Tensor], *others: P) -> P:
        """Apply ``function`` to each tensor and its counterparts in ``others``.

        This includes tensors in lists, in tuples and in other `Parts`. Other attributes
        are kept.
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
        """Move or cast all tensors."""
        return self.map(lambda tensor: tensor.to(*args))
