"""Objects that are stored as a list of simpler ones, and their reconstruction."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

DTYPES = {str(d): d for d in vars(torch).values() if isinstance(d, torch.dtype)}


class Kind(NamedTuple):
    """The decomposition and reconstruction of objects of one type.

    Parameters
    ----------
    type : type or None
        Exact type; None for the types that `tag_of` recognizes otherwise.
    parts : callable
        Function from the object to the list of its parts, which are simpler.
    make : callable
        Function from the parts to the object.
    mutable : bool, default=False
        Whether two references to one object must again refer to one object.
    """

    type: type | None
    parts: Callable[[Any], list]
    make: Callable[..., Any]
    mutable: bool = False


def _in_order(items: set) -> list:
    """The items of a set, in the same order in every process."""
    return sorted(items, key=lambda item: (type(item).__name__, repr(item)))


def _sparse_parts(matrix: sp.sparray | sp.spmatrix) -> list:
    coo = matrix.tocoo()
    old = isinstance(matrix, sp.spmatrix)
    return [matrix.format, old, matrix.shape, coo.data, *coo.coords]


def _sparse(kind: str, old: bool, shape: tuple, *arrays: np.ndarray) -> Any:
    cls = sp.coo_matrix if old else sp.coo_array
    return cls((arrays[0], arrays[1:]), shape=shape).asformat(kind)


def _random_state(*state: Any) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state(state)
    return generator


def _generator(device: torch.device, state: torch.Tensor) -> torch.Generator:
    generator = torch.Generator(device)
    generator.set_state(state.cpu())
    return generator


def _ordered(*items: tuple) -> OrderedDict:
    return OrderedDict(items)


def _optimizer_parts(optimizer: torch.optim.Optimizer) -> list:
    kept = {k: v for k, v in vars(optimizer).items() if "hook" not in k}
    return [type(optimizer).__name__, {**kept, "state": dict(optimizer.state)}]


def _optimizer(name: str, attributes: dict) -> Any:
    cls = vars(torch.optim)[name]
    if not issubclass(cls, torch.optim.Optimizer):
        raise TypeError(f"torch.optim.{name} is not an optimizer")
    optimizer = object.__new__(cls)
    state = defaultdict(dict, attributes["state"])
    optimizer.__setstate__({**attributes, "state": state})
    return optimizer


def _numpy_generator(name: str, state: dict) -> np.random.Generator:
    bits = vars(np.random)[name]
    if not issubclass(bits, np.random.BitGenerator):
        raise TypeError(f"numpy.random.{name} generates no bits")
    generator = np.random.Generator(bits())
    generator.bit_generator.state = state
    return generator


def _numpy_generator_parts(generator: np.random.Generator) -> list:
    bits = generator.bit_generator
    return [type(bits).__name__, bits.state]


KINDS = {
    "float": Kind(float, lambda value: [str(value)], float),  # JSON has no infinity
    "tuple": Kind(tuple, list, lambda *items: items),
    "slice": Kind(slice, lambda value: [value.start, value.stop, value.step], slice),
    "scalar": Kind(None, lambda value: [np.asarray(value)], lambda array: array[()]),
    "numpy_dtype": Kind(None, lambda value: [value.str], np.dtype),
    "numpy_type": Kind(
        None, lambda value: [np.dtype(value).str], lambda text: np.dtype(text).type
    ),
    "masked": Kind(
        np.ma.MaskedArray,
        lambda value: [value.data, np.ma.getmaskarray(value), value.fill_value],
        lambda *parts: np.ma.MaskedArray(parts[0], parts[1], fill_value=parts[2]),
        True,
    ),
    "numpy_generator": Kind(
        np.random.Generator, _numpy_generator_parts, _numpy_generator, True
    ),
    "dtype": Kind(torch.dtype, lambda value: [str(value)], DTYPES.__getitem__),
    "device": Kind(torch.device, lambda value: [str(value)], torch.device),
    "size": Kind(torch.Size, list, lambda *shape: torch.Size(shape)),
    "set": Kind(set, _in_order, lambda *items: set(items), True),
    "ordered": Kind(OrderedDict, lambda v: list(v.items()), _ordered, True),
    "sparse": Kind(None, _sparse_parts, _sparse, True),
    "random_state": Kind(
        np.random.RandomState, lambda v: list(v.get_state()), _random_state, True
    ),
    "generator": Kind(
        torch.Generator, lambda v: [v.device, v.get_state()], _generator, True
    ),
    "optimizer": Kind(None, _optimizer_parts, _optimizer, True),
}
TAGS = {kind.type: tag for tag, kind in KINDS.items()} | {
    list: "list",
    dict: "dict",
    np.ndarray: "array",
    torch.Tensor: "tensor",
    torch.nn.Parameter: "tensor",
}


def tag_of(value: object) -> str:
    """Name of an object's kind: one of `KINDS`, or one that `Packer` knows."""
    if type(value) in TAGS:
        return TAGS[type(value)]
    if isinstance(value, np.generic):
        return "scalar"
    if sp.issparse(value):
        return "sparse"
    if isinstance(value, enum.Enum):
        return "enum"
    if vars(torch.optim).get(type(value).__name__) is type(value):
        return "optimizer"
    if isinstance(value, np.dtype):
        return "numpy_dtype"
    if isinstance(value, type) and issubclass(value, np.generic):
        return "numpy_type"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "record"
    return "extension" if is_extension(type(value)) else "object"


def is_extension(class_: type) -> bool:
    """Whether a class of scikit-learn is compiled: it has no attributes to store."""
    compiled = not class_.__dictoffset__ and not issubclass(class_, tuple)
    return compiled and class_.__module__.startswith("sklearn.")
