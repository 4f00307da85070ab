"""The tensors of a state and its other contents, by position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn


class Contents:
    """The contents of a state.

    Parameters
    ----------
    state : object
        Dataclasses, modules, containers and other objects, which are traversed.
    skip : object
        Object that is not traversed.

    Attributes
    ----------
    tensors : dict of {tuple: Tensor}
        Tensors by position. Tensors with a graph are left out, because a solver's
        `resume` rebuilds them. Gradients of parameters are separate tensors.
    rest : dict of {tuple: object}
        Numbers, strings, lengths, types, shapes of tensors, states of generators, and
        identities of tensors and objects.
    generators : list of Generator
        All random generators.
    """

    def __init__(self, state: object, skip: object):
        self.tensors: dict[tuple, Tensor] = {}
        self.rest: dict[tuple, Any] = {}
        self.generators: list[torch.Generator] = []
        self._holders: dict[tuple, Any] = {}
        self._seen: dict[int, tuple] = {id(skip): ("data",)}
        self._alive: list[Any] = []  # an id is unique only while its object exists
        self._visit(state, ())

    def _visit(self, value: object, place: tuple) -> None:
        if value is None:
            return
        if isinstance(value, bool | int | float | str | bytes):
            self.rest[place] = value
            return
        if id(value) in self._seen:
            self.rest[place] = self._seen[id(value)]
            return
        self._seen[id(value)] = place
        self._alive.append(value)
        if isinstance(value, Tensor):
            if value.grad_fn is None:
                self.tensors[place] = value
                self.rest[place] = (value.shape, value.dtype, value.device)
                self._visit(value.grad, (*place, "grad"))
            return
        self.rest[place] = type(value)
        if isinstance(value, torch.Generator):
            self.generators.append(value)
            if value.device.type == "cpu":
                self.rest[place] = value.get_state().numpy().tobytes()
            return
        for holder, key, part in _parts(value):
            self._holders[*place, key] = holder
            self._visit(part, (*place, key))

    def like(self, other: Contents) -> bool:
        """Whether another state differs only in the numbers in its tensors.

        Parameters
        ----------
        other : Contents
            Contents of the same kind of state.

        Returns
        -------
        bool
        """
        return self.rest == other.rest

    def take(self, other: Contents) -> None:
        """Copy the numbers in another state's tensors into those of this one.

        Parameters
        ----------
        other : Contents
            Contents of a state that is `like` this one.
        """
        pairs = [
            (mine, other.tensors[place])
            for place, mine in self.tensors.items()
            if place in other.tensors and other.tensors[place] is not mine
        ]
        memory = {mine.untyped_storage().data_ptr() for mine, _ in pairs}
        with torch.no_grad():
            # A tensor is read before it is overwritten.
            new = [
                its.clone() if its.untyped_storage().data_ptr() in memory else its
                for _, its in pairs
            ]
            for (mine, _), its in zip(pairs, new, strict=True):
                mine.copy_(its)

    def put_back(self) -> None:
        """Restore tensors that were replaced in the parts of this state."""
        for place, tensor in self.tensors.items():
            if place[-1:] == ("grad",):
                continue
            holder = self._holders.get(place)
            if isinstance(holder, dict | list):
                holder[place[-1]] = tensor
            if tensor.is_leaf and tensor.requires_grad:
                tensor.grad = self.tensors.get((*place, "grad"))


def _parts(value: object) -> Iterator[tuple[Any, Any, Any]]:
    """The parts of an object: the container, the key in it, and the part."""
    if isinstance(value, dict):
        yield from ((value, key, part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield value, "length", len(value)
        yield from ((value, k, part) for k, part in enumerate(value))
    elif isinstance(value, nn.Module) or not callable(value):
        named = getattr(value, "__dict__", {})
        yield from ((named, name, part) for name, part in named.items())
