"""Conversion of objects to JSON and plain arrays, and back, without pickle."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from skmc.new_rows import Deferred
from skmc.serialization.classes import find_class, qualified_name, why_not_storable
from skmc.serialization.compound import DTYPES, KINDS, is_extension, tag_of

JSON_TYPES = (bool, int, str, type(None))
BUILT_IN: tuple[type, ...] = (dict, float, int, list, set, str, tuple)
BUILT_IN += (bytes, frozenset, np.ndarray, Tensor)
HOOKS = frozenset(vars(nn.Module())) - {"_parameters", "_buffers", "_modules"}


class StorageError(ValueError):
    """A file cannot be read; the message gives the reason.

    See Also
    --------
    load : Raises it.
    """


class Packer:
    """Conversion of objects to JSON and a list of arrays.

    Stored are numbers, strings, containers, arrays, sparse matrices, tensors, `KINDS`,
    and instances of the classes that `find_class` finds, whose attributes are stored by
    name. Two references to one mutable object, and two views of the same memory, remain
    so. Tensors keep their strides, so that sums over them are rounded identically. A
    tensor that has a graph is not stored; it becomes None.

    Parameters
    ----------
    supplied : mapping of str to object
        Objects that are not stored. `Unpacker` gets them under the same names.
    omit : tuple of str
        Beginnings of the names of attributes that are not stored.
    others : list, optional
        List to which objects are appended that cannot be stored, for pickle. By default
        they raise a `TypeError`.
    """

    def __init__(
        self,
        supplied: Mapping[str, Any] = {},
        omit: tuple[str, ...] = (),
        others: list[Any] | None = None,
    ) -> None:
        self.supplied = {id(value): name for name, value in supplied.items()}
        self.omit, self.others = omit, others
        self.names: dict[type, str | None] = {}  # None for what cannot be stored
        self.arrays: list[np.ndarray] = []
        self.numbers: dict[int, int] = {}  # by the id of an object
        self.storages: dict[tuple, int] = {}
        self.alive: list[Any] = []  # an id is unique only while its object exists

    def pack(self, value: Any) -> Any:
        """Convert an object to JSON; its arrays are appended to ``arrays``."""
        value = value.made if isinstance(value, Deferred) else value
        if id(value) in self.supplied:
            return {"$": "supplied", "name": self.supplied[id(value)]}
        if type(value) in JSON_TYPES or (type(value) is float and math.isfinite(value)):
            return value
        if id(value) in self.numbers:
            return {"$": "again", "id": self.numbers[id(value)]}
        tag = tag_of(value)
        node: dict[str, Any] = {"$": tag}
        if tag not in KINDS or KINDS[tag].mutable:
            self.alive.append(value)
            node["id"] = self.numbers[id(value)] = len(self.numbers)
        if tag in KINDS:
            return node | {"items": self._each(KINDS[tag].parts(value))}
        try:
            return node | getattr(self, f"_pack_{tag}")(value)
        except TypeError:
            if self.others is None:
                raise
        self.others.append(value)
        return node | {"$": "other", "item": len(self.others) - 1}

    def _each(self, values: Iterable[Any]) -> list:
        return [self.pack(value) for value in values]

    def _pack_list(self, value: list) -> dict:
        return {"items": self._each(value)}

    def _pack_dict(self, value: dict) -> dict:
        return {"keys": self._each(value), "values": self._each(value.values())}

    def _pack_array(self, value: np.ndarray) -> dict:
        if value.dtype == object:
            return {"shape": list(value.shape), "items": self._each(value.flat)}
        if value.dtype.hasobject:
            raise TypeError("An array with fields of objects cannot be stored.")
        fortran = value.flags.fnc
        return {"array": self._store(value.T if fortran else value), "fortran": fortran}

    def _pack_tensor(self, value: Tensor) -> dict:
        if value.grad_fn is not None:
            return {"memory": None}
        if value.layout is not torch.strided or value.is_quantized:
            raise TypeError(f"A tensor of layout {value.layout} cannot be stored.")
        value = value.resolve_conj().resolve_neg()
        memory = value.untyped_storage()
        key = memory.data_ptr(), memory.nbytes(), value.device
        if key not in self.storages or not memory.nbytes():
            self.alive.append(memory)
            storage = torch.empty(0, dtype=torch.uint8, device=value.device)
            storage.set_(memory)  # type: ignore[call-overload]
            self.storages[key] = self._store(storage.cpu().numpy())
        return {
            "memory": self.storages[key],
            "dtype": str(value.dtype),
            "offset": value.storage_offset(),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "device": str(value.device),
            "parameter": isinstance(value, nn.Parameter),
            "requires_grad": value.requires_grad,
            "grad": self.pack(value.grad if value.is_leaf else None),
        }

    def _pack_enum(self, value: enum.Enum) -> dict:
        return {"class": self._name(value), "value": self.pack(value.value)}

    def _pack_record(self, value: tuple) -> dict:
        return {"class": self._name(value), "items": self._each(value)}

    def _pack_extension(self, value: object) -> dict:
        make, args, *state = cast(tuple, value.__reduce_ex__(2))
        if make is not type(value):
            raise TypeError(f"{self._name(value)} cannot be stored.")
        arguments = [list(args), state[0] if state else None]
        return {"class": self._name(value), "items": self._each(arguments)}

    def _pack_object(self, value: object) -> dict:
        name = self._name(value)
        if isinstance(value, BUILT_IN) or not hasattr(value, "__dict__"):
            raise TypeError(f"{name} cannot be stored: it extends a built-in type.")
        kept = attributes(value).items()
        packed = {k: self.pack(v) for k, v in kept if not k.startswith(self.omit)}
        return {"class": name, "attributes": packed}

    def _name(self, value: object) -> str:
        cls = type(value)
        name = qualified_name(cls)
        if cls not in self.names:
            self.names[cls] = name if find_class(name) is cls else None
        if self.names[cls] is None:
            raise TypeError(f"{name} cannot be stored: {why_not_storable(cls)}.")
        return name

    def _store(self, value: np.ndarray) -> int:
        if not value.flags.c_contiguous:
            value = value.copy()
        self.arrays.append(value.astype(value.dtype.newbyteorder("="), copy=False))
        return len(self.arrays) - 1


def field_names(class_: type) -> list[str] | None:
    """Names of all attributes of a dataclass."""
    if not dataclasses.is_dataclass(class_) or issubclass(class_, BaseEstimator):
        return None
    return [field.name for field in dataclasses.fields(class_)]


def attributes(value: object) -> dict[str, Any]:
    """The attributes of an object that are stored."""
    if field_names(type(value)) is not None:
        parts = dataclasses.fields(cast(Any, value))
        return {p.name: p.metadata.get("stored", getattr(value, p.name)) for p in parts}
    if isinstance(value, BaseEstimator):  # with the version of scikit-learn's
        state: dict[str, Any] = BaseEstimator.__getstate__(value)
        return state
    dropped = HOOKS - {"training"} if isinstance(value, nn.Module) else ()
    return {k: v for k, v in vars(value).items() if k not in dropped}


class Unpacker:
    """The inverse of `Packer`.

    A class that the file names is looked up by `find_class`. Neither its ``__init__``
    nor any function is called.

    Parameters
    ----------
    arrays : list of ndarray
        Arrays of the `Packer`.
    supplied : mapping of str to object
        Objects that are not stored, as for `Packer`.
    device : str, optional
        Device of all tensors. By default each is placed on its original one.
    classes : mapping of str to type
        Classes that are not looked up.
    others : sequence
        Those of the `Packer`.
    """

    def __init__(
        self,
        arrays: list[np.ndarray],
        supplied: Mapping[str, Any] = {},
        device: str | None = None,
        classes: Mapping[str, type] = {},
        others: Sequence[Any] = (),
    ):
        self.arrays = arrays
        self.supplied = supplied
        self.device = device
        self.classes, self.others = dict(classes), others
        self.objects: dict[int, Any] = {}  # by their numbers
        self.storages: dict[tuple, Tensor] = {}

    def unpack(self, node: object) -> Any:
        """Restore an object."""
        if not isinstance(node, dict):
            return node
        tag = node["$"]
        if tag == "again":
            return self.objects[node["id"]]
        if tag == "supplied":
            return self.supplied[node["name"]]
        if tag == "other":
            return self._remember(node, self.others[node["item"]])
        if tag in KINDS:
            value = KINDS[tag].make(*self._each(node["items"]))
        elif hasattr(self, f"_unpack_{tag}"):
            value = getattr(self, f"_unpack_{tag}")(node)
        else:
            raise StorageError(f"it holds an unknown kind of object, {tag!r}")
        return self._remember(node, value)

    def _each(self, nodes: list) -> list:
        return [self.unpack(node) for node in nodes]

    def _remember(self, node: dict, value: object) -> Any:
        """Register an object that may contain itself before its parts are read."""
        if "id" in node:
            self.objects[node["id"]] = value
        return value

    def _unpack_list(self, node: dict) -> list:
        value = self._remember(node, [])
        value.extend(self._each(node["items"]))
        return value

    def _unpack_dict(self, node: dict) -> dict:
        value = self._remember(node, {})
        keys, values = (self._each(node[part]) for part in ("keys", "values"))
        value.update(zip(keys, values, strict=True))
        return value

    def _unpack_array(self, node: dict) -> np.ndarray:
        if "items" in node:
            value = self._remember(node, np.empty(node["shape"], object))
            for i, item in enumerate(node["items"]):
                value.flat[i] = self.unpack(item)
            return value
        array = self.arrays[node["array"]]
        return array.T if node["fortran"] else array

    def _unpack_tensor(self, node: dict) -> Tensor | None:
        if node["memory"] is None:
            return None
        device = self.device or node["device"]
        key = node["memory"], device
        if key not in self.storages:
            array = np.require(self.arrays[node["memory"]], requirements="W")
            array = array.reshape(-1).view(np.uint8)  # joblib maps read-only files
            self.storages[key] = torch.from_numpy(array).to(device)
        dtype = DTYPES[node["dtype"]]
        memory = self.storages[key]
        memory = memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)
        value = torch.as_strided(memory, node["shape"], node["stride"], node["offset"])
        if node["parameter"]:
            value = nn.Parameter(value, requires_grad=node["requires_grad"])
        else:
            value = value.detach().requires_grad_(node["requires_grad"])
        if (grad := self.unpack(node["grad"])) is not None:
            value.grad = grad
        return value

    def _unpack_enum(self, node: dict) -> Any:
        cls = self._class(node)
        if not issubclass(cls, enum.Enum):
            raise StorageError(f"{node['class']} is not an enumeration")
        return cls(self.unpack(node["value"]))

    def _unpack_record(self, node: dict) -> Any:
        cls, items = self._class(node), self._each(node["items"])
        names = getattr(cls, "_fields", None)
        if not issubclass(cls, tuple) or names is None or len(names) != len(items):
            raise StorageError(f"{node['class']} has other fields than in the file")
        return tuple.__new__(cls, items)

    def _unpack_extension(self, node: dict) -> Any:
        cls = self._class(node)
        if not is_extension(cls):
            raise StorageError(f"{node['class']} is no extension type")
        args, state = self._each(node["items"])
        value = cls(*args)
        if state is not None:
            value.__setstate__(state)
        return value

    def _unpack_object(self, node: dict) -> Any:
        cls = self._class(node)
        if is_extension(cls):
            raise StorageError(f"{node['class']} has no attributes")
        value = self._remember(node, object.__new__(cls))
        if isinstance(value, nn.Module):
            nn.Module.__init__(value)
        attributes_of_node = node["attributes"]
        if (names := field_names(cls)) is not None and set(attributes_of_node) != set(
            names
        ):
            raise StorageError(f"{cls.__name__} has other fields than in the file")
        state = {name: self.unpack(part) for name, part in attributes_of_node.items()}
        if "_sklearn_version" in state:
            BaseEstimator.__setstate__(value, state)  # warns of another version
        else:
            vars(value).update(state)
        return value

    def _class(self, node: dict) -> type:
        name = node["class"]
        if name not in self.classes:
            class_ = find_class(name)
            if class_ is None:
                module = name.rpartition(".")[0]
                raise StorageError(
                    f"it names the class {name}, which this program has not imported "
                    f"or which cannot be stored. If it is yours, import {module} first"
                )
            self.classes[name] = class_
        return self.classes[name]
