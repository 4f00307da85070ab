"""Fitted state without tensors, as pickle and skops store it."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from skmc.new_rows import Deferred

DICTS = dict, OrderedDict


class TensorState:
    """A tensor as an array, whose axes are in the order of the memory.

    Parameters
    ----------
    value : Tensor
        The tensor.
    """

    def __init__(self, value: Tensor):
        array = value.detach().cpu().numpy()
        # Sums over the tensor are rounded identically if its strides are kept.
        self.axes = np.argsort([-step for step in array.strides], kind="stable")
        self.array = array.transpose(self.axes)
        self.learned = isinstance(value, nn.Parameter)

    def tensor(self) -> Tensor:
        """The tensor, on the CPU."""
        array = np.ascontiguousarray(self.array).reshape(self.array.shape)
        value = torch.from_numpy(array).permute(tuple(np.argsort(self.axes).tolist()))
        return nn.Parameter(value) if self.learned else value


class PairsState:
    """A dictionary by its keys and values, as skops takes simple keys only."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []


def with_arrays(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Copy an object, with arrays in place of its tensors, whose memory they share."""
    known = {} if known is None else known
    if isinstance(value, Deferred):
        value = value.made
    if id(value) in known:
        return known[id(value)][1]

    def copied(part: Any) -> Any:
        return with_arrays(part, known)

    def kept(new: Any) -> Any:
        known[id(value)] = value, new
        return new

    if isinstance(value, Tensor):
        return kept(TensorState(value))
    if type(value) in DICTS:
        pairs = ((key, copied(part)) for key, part in value.items())
        if all(isinstance(key, str | int | float) for key in value):
            new = kept(type(value)())
            new.update(pairs)
        else:
            new = kept(PairsState())
            new.pairs += pairs
    elif type(value) is list:
        new = kept([])
        new += map(copied, value)
    elif isinstance(value, partial):
        args, keywords = copied(value.args), copied(value.keywords)
        new = kept(partial(value.func, *args, **keywords))
    elif type(value) is tuple:
        new = kept(tuple(map(copied, value)))
    elif _is_ours(value):
        new = kept(object.__new__(type(value)))
        vars(new).update(copied(value.__getstate__()))
    else:
        new = value
    return new


def with_tensors(value: Any, known: dict[int, Any] | None = None) -> Any:
    """The inverse of `with_arrays`; what can change is changed in place."""
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)][1]

    def restored(part: Any) -> Any:
        return with_tensors(part, known)

    def kept(new: Any) -> Any:
        known[id(value)] = value, new
        return new

    if isinstance(value, TensorState):
        return kept(value.tensor())
    if isinstance(value, PairsState):
        new = kept({})
        new.update((key, restored(part)) for key, part in value.pairs)
    elif type(value) in DICTS:
        new = kept(value)
        new.update([(key, restored(part)) for key, part in value.items()])
    elif type(value) is list:
        new = kept(value)
        new[:] = map(restored, value)
    elif isinstance(value, partial):
        args, keywords = restored(value.args), restored(value.keywords)
        new = kept(partial(value.func, *args, **keywords))
    elif type(value) is tuple:
        new = kept(tuple(map(restored, value)))
    elif _is_ours(value):
        new = kept(value)
        restored(vars(new))
    else:
        new = value
    return new


def _is_ours(value: Any) -> bool:
    """Whether the attributes of an object may be tensors."""
    if isinstance(value, type | BaseEstimator) or not hasattr(value, "__dict__"):
        return False
    ours = type(value).__module__.startswith("skmc.")
    return ours or dataclasses.is_dataclass(value) or isinstance(value, nn.Module)
