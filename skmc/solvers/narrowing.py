"""Removing members from a batch, whatever a solver and its state hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from skmc.terms import Term, narrow


class Narrowing:
    """Keeps some members in everything that a solve consists of.

    Modules, terms and optimizers are changed in place, everything else is returned
    anew. What occurs twice is narrowed once, so that parts which share a parameter
    keep sharing it.

    Parameters
    ----------
    members : bool or int Tensor
        Those to keep, along the (one) batch axis.
    """

    def __init__(self, members: Tensor):
        self.members = members
        self.done: dict[int, Any] = {}
        self.alive: list[Any] = []  # so that no other object takes an id of `done`

    def __call__(self, value: object) -> Any:
        """Narrow a state, or a part of it, whose tensors have the batch axis in front.

        Numbers, tensors without axes, strings and functions stay as they are.
        """
        if id(value) not in self.done:
            self.alive.append(value)
            self.done[id(value)] = self._narrowed(value)
        return self.done[id(value)]

    def _narrowed(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            return self.module(value)
        if isinstance(value, torch.optim.Optimizer):
            return self._optimizer(value)
        if isinstance(value, Tensor):
            return narrow(value, self.members) if value.ndim else value
        if isinstance(value, dict):
            return {key: self(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self(part) for part in value)
        if hasattr(value, "select"):
            return value.select(self.members)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            parts = {name: self(getattr(value, name)) for name in names}
            return dataclasses.replace(value, **parts)
        return value

    def module(self, module: nn.Module) -> nn.Module:
        """Narrow a model or a term in place, before the optimizers of its parameters.

        Parameters
        ----------
        module : nn.Module
            Its parameters, and its buffers that are not numbers, have the batch axis
            in front; a term knows which of its own have.

        Returns
        -------
        nn.Module
        """
        if id(module) in self.done:
            return module
        before = list(module.parameters())
        if isinstance(module, Term):
            module.select(self.members)
        else:
            narrow_module(module, self.members)
        self.alive += [module, *before]
        pairs = zip(before, module.parameters(), strict=True)
        self.done |= {id(old): new for old, new in pairs}
        self.done[id(module)] = module
        return module

    def _optimizer(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        for group in optimizer.param_groups:
            before = group["params"]
            group["params"] = [self(parameter) for parameter in before]
            for old, new in zip(before, group["params"], strict=True):
                moments = optimizer.state.pop(old, {})  # the number of steps is shared
                optimizer.state[new] = {name: self(m) for name, m in moments.items()}
        return optimizer


def modules_in(value: object) -> list[nn.Module]:
    """Models and terms among the values of a state or a solver.

    Parameters
    ----------
    value : object
        A module, or a list, tuple or dict of them; anything else has none.

    Returns
    -------
    list of nn.Module
    """
    if isinstance(value, nn.Module):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [module for part in value for module in modules_in(part)]
    return []


def narrow_module(module: nn.Module, members: Tensor) -> None:
    """Keep some members of all parameters and of buffers that are not numbers.

    Parameters
    ----------
    module : nn.Module
        Changed in place.
    members : bool or int Tensor
        Those to keep, along the batch axis.
    """
    for part in module.modules():
        tensors = [
            *part.named_parameters(recurse=False),
            *part.named_buffers(recurse=False),
        ]
        for name, tensor in tensors:
            if tensor.ndim:
                setattr(part, name, narrow(tensor, members))
