"""Fitted state without tensors, as pickle and skops store it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from skmc.new_rows import Deferred


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
        """The tensor, on the CPU.

        Returns
        -------
        Tensor
        """
        array = np.ascontiguousarray(self.array).reshape(self.array.shape)
        value = torch.from_numpy(array).permute(tuple(np.argsort(self.axes).tolist()))
        return nn.Parameter(value) if self.learned else value


class PairsState:
    """A dictionary by its pairs, as skops takes simple keys only.

    Parameters
    ----------
    pairs : list of tuple
        Keys and values.
    """

    def __init__(self, pairs: list[tuple[Any, Any]]):
        self.pairs = pairs


def with_arrays(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Copy an object, with arrays in place of its tensors, whose memory they share.

    Parameters
    ----------
    value : object
        State of an estimator. Other estimators in it convert their own state.
    known : dict or None, default=None
        Copies of objects by their ids, so that what is shared remains so.

    Returns
    -------
    object
    """
    known = {} if known is None else known
    if isinstance(value, Deferred):
        value = value.made
    if id(value) in known:
        return known[id(value)][1]
    new = value
    if isinstance(value, Tensor):
        new = TensorState(value)
    elif isinstance(value, partial):
        parts = with_arrays([value.args, value.keywords], known)
        new = partial(value.func, *parts[0], **parts[1])
    elif isinstance(value, dict):
        pairs = [(k, with_arrays(v, known)) for k, v in value.items()]
        simple = all(isinstance(k, str | int | float) for k in value)
        new = type(value)(pairs) if simple else PairsState(pairs)
    elif isinstance(value, list | tuple):
        items = [with_arrays(v, known) for v in value]
        named = hasattr(value, "_fields")
        new = type(value)(*items) if named else type(value)(items)
    elif _is_ours(value):
        new = object.__new__(type(value))
        known[id(value)] = value, new
        vars(new).update(with_arrays(value.__getstate__(), known))
    known[id(value)] = value, new  # the value lives as long as its id is used
    return new


def with_tensors(value: Any, seen: set[int] | None = None) -> Any:
    """The inverse of `with_arrays`; objects are changed in place.

    Parameters
    ----------
    value : object
        State with arrays in place of tensors.
    seen : set of int or None, default=None
        Ids of the objects that have tensors already.

    Returns
    -------
    object
    """
    seen = set() if seen is None else seen
    if isinstance(value, TensorState):
        return value.tensor()
    if isinstance(value, PairsState):
        return {k: with_tensors(v, seen) for k, v in value.pairs}
    if isinstance(value, partial):
        parts = with_tensors([value.args, value.keywords], seen)
        return partial(value.func, *parts[0], **parts[1])
    if isinstance(value, dict):
        return type(value)({k: with_tensors(v, seen) for k, v in value.items()})
    if isinstance(value, list | tuple):
        items = [with_tensors(v, seen) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if _is_ours(value) and id(value) not in seen:
        seen.add(id(value))
        vars(value).update(with_tensors(vars(value), seen))
    return value


def _is_ours(value: Any) -> bool:
    """Whether the attributes of an object may be tensors."""
    if isinstance(value, type | BaseEstimator) or not hasattr(value, "__dict__"):
        return False
    ours = type(value).__module__.startswith("skmc.")
    return ours or dataclasses.is_dataclass(value) or isinstance(value, nn.Module)
