"""Removal of members from a batch, for all solvers and states."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from skmc.terms import Term, narrow


class Narrowing:
    """Selection of members in all parts of a solve.

    Modules, terms and optimizers are changed in place; copies of all other parts are
    returned. An object that occurs twice is narrowed once, so that shared parameters
    remain shared.

    Parameters
    ----------
    members : bool or int Tensor
        Mask or positions of the members to keep.
    """

    def __init__(self, members: Tensor):
        self.members = members
        self.done: dict[int, Any] = {}
        self.alive: list[Any] = []  # keeps the ids in `done` unique

    def __call__(self, value: object) -> Any:
        """Narrow a state, or a part of it, whose tensors have the batch axis first.

        Numbers, tensors without axes, strings and functions are kept.
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
            narrowed = {name: self(getattr(value, name)) for name in names}
            return dataclasses.replace(value, **narrowed)
        return value

    def module(self, module: nn.Module) -> nn.Module:
        """Narrow a model or a term in place, before the optimizers of parameters."""
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
                moments = optimizer.state.pop(old, {})  # members share the step count
                optimizer.state[new] = {name: self(m) for name, m in moments.items()}
        return optimizer


def modules_in(value: object) -> list[nn.Module]:
    """Models and terms in a state or a solver."""
    if isinstance(value, nn.Module):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [module for part in value for module in modules_in(part)]
    return []


def narrow_module(module: nn.Module, members: Tensor) -> None:
    """Keep some members of all parameters and of non-scalar buffers."""
    for part in module.modules():
        tensors = [
            *part.named_parameters(recurse=False),
            *part.named_buffers(recurse=False),
        ]
        for name, tensor in tensors:
            if tensor.ndim:
                setattr(part, name, narrow(tensor, members))
