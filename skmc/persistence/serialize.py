"""Objects as what JSON holds, and plain arrays; and back. No pickle."""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

NUMBERS = "biuf"  # kinds of arrays that are stored as such
DTYPES = {str(d): d for d in (torch.float32, torch.float64, torch.int64, torch.bool)}
PLAIN = (bool, int, str, type(None))
MODULE = frozenset(vars(nn.Module()))  # attributes that every module has ...
PARTS = ("_parameters", "_buffers", "_modules", "training")  # ... and that matter


class StorageError(ValueError):
    """A file that cannot be read, and why."""


def classes(others: Iterable[type] = ()) -> dict[str, type]:
    """What a file may name: classes of this package, loaded already, and ``others``.

    Nothing is imported because a file says so.

    Parameters
    ----------
    others : iterable of type, default=()
        Classes outside of this package that a file may name.

    Returns
    -------
    dict
    """
    ours = {
        name_of(cls): cls
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "skmc"
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__ == name
    }
    return ours | {
        name_of(cls): cls for cls in (nn.ParameterList, nn.ModuleList, *others)
    }


def name_of(cls: type) -> str:
    """With its module if that is ours; others' modules are their own affair.

    Returns
    -------
    str
    """
    ours = cls.__module__.partition(".")[0] == "skmc"
    return f"{cls.__module__}.{cls.__name__}" if ours else cls.__name__


class Packer:
    """Turns objects into what JSON holds, and a list of arrays.

    Numbers, strings, containers, arrays (of numbers, or of objects such as strings),
    SciPy's sparse ones, tensors, generators, modules, Adam, and instances of `classes`,
    whose attributes are stored by name. What is the same object, or a view of the same
    memory, is so again afterwards. Tensors keep their strides, so that sums over them
    are rounded alike; of a tensor with a graph nothing is stored, it becomes None.

    Parameters
    ----------
    others : classes outside of this package that may be stored
        Classes outside of this package that a file may name.
    given : mapping
        Objects that are not stored, by names under which `Unpacker` is given them.
    without : tuple of str
        Beginnings of the names of attributes that are left out.
    """

    def __init__(
        self,
        others: Iterable[type] = (),
        given: Mapping[str, Any] = {},
        without: tuple[str, ...] = (),
    ):
        self.without = without
        self.classes = classes(others)
        self.given = {id(value): name for name, value in given.items()}
        self.arrays: list[np.ndarray] = []
        self.seen: dict[int, int] = {}
        self.storages: dict[tuple, int] = {}
        self.alive: list[Any] = []  # a number says who it was while one lives

    def pack(self, value: Any) -> Any:
        """Turn an object into what JSON holds; arrays go to ``arrays``.

        Parameters
        ----------
        value : object
            What is to be stored.

        Returns
        -------
        object
        """
        if id(value) in self.given:
            return {"$": "given", "name": self.given[id(value)]}
        if type(value) in PLAIN:
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is list:
            return [self.pack(item) for item in value]
        if id(value) in self.seen:
            return {"$": "again", "id": self.seen[id(value)]}
        tag, node = self._pack(value)
        return {"$": tag, **node}

    def _known(self, value: Any) -> int:
        self.alive.append(value)
        return self.seen.setdefault(id(value), len(self.seen))

    def _pack(self, value: Any) -> tuple[str, dict]:
        if isinstance(value, np.str_):
            return "string", {"value": str(value)}
        if type(value) is float:
            return "float", {"value": str(value)}
        if isinstance(value, enum.Enum):
            return "enum", {"class": self._name(value), "value": value.value}
        if isinstance(value, np.generic):
            return "scalar", {"array": self._array(np.asarray(value))}
        if isinstance(value, tuple):
            return "tuple", {"items": [self.pack(item) for item in value]}
        if isinstance(value, set):
            return "set", {"items": sorted(self.pack(item) for item in value)}
        if isinstance(value, dict):
            pairs = [[self.pack(k), self.pack(v)] for k, v in value.items()]
            return "dict", {"items": pairs}
        if isinstance(value, slice):
            ends = (value.start, value.stop, value.step)
            return "slice", {"items": [self.pack(end) for end in ends]}
        if isinstance(value, torch.dtype):
            return "dtype", {"name": str(value)}
        if isinstance(value, torch.device):
            return "device", {"name": str(value)}
        if isinstance(value, torch.Size):
            return "size", {"items": list(value)}
        number = self._known(value)
        tag, node = self._pack_shared(value)
        return tag, {"id": number, **node}

    def _pack_shared(self, value: Any) -> tuple[str, dict]:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if type(value) is np.ndarray:
            if value.dtype.kind in NUMBERS:
                return "array", {
                    "array": self._array(value),
                    "fortran": value.flags.fnc,
                }
            if value.dtype.kind in "UO":
                items = [self.pack(item) for item in value.ravel().tolist()]
                shape = list(value.shape)
                return "objects", {
                    "dtype": value.dtype.str,
                    "shape": shape,
                    "items": items,
                }
        if sp.issparse(value):
            whole = value.tocoo()
            parts = [self._array(part) for part in (*whole.coords, whole.data)]
            matrix = isinstance(value, sp.spmatrix)
            kind = {"format": value.format, "matrix": matrix}
            return "sparse", {"shape": list(value.shape), "arrays": parts, **kind}
        if isinstance(value, torch.Generator):
            return "generator", {"state": self.pack(value.get_state())}
        if isinstance(value, np.random.RandomState):
            return "random_state", {"state": self.pack(value.get_state())}
        if type(value) is torch.optim.Adam:
            groups = [self.pack(group) for group in value.param_groups]
            state = [[self.pack(k), self.pack(v)] for k, v in value.state.items()]
            return "adam", {"groups": groups, "state": state}
        name = self._name(value)
        packed = {
            k: self.pack(v)
            for k, v in attributes(value).items()
            if not k.startswith(self.without)
        }
        return "object", {"class": name, "attributes": packed}

    def _name(self, value: Any) -> str:
        cls = type(value)
        if self.classes.get(name_of(cls)) is not cls:
            raise TypeError(
                f"{cls.__module__}.{cls.__qualname__} cannot be stored: only classes "
                "of skmc, numbers, strings, containers, arrays and tensors can. Where "
                "it is a parameter, replace it by one of these."
            )
        return name_of(cls)

    def _array(self, value: np.ndarray) -> int:
        fortran = value.flags.fnc
        plain = np.ascontiguousarray(value.T if fortran else value)
        if not plain.dtype.isnative:
            plain = plain.astype(plain.dtype.newbyteorder("="))
        self.arrays.append(plain.reshape(value.T.shape if fortran else value.shape))
        return len(self.arrays) - 1

    def _tensor(self, value: Tensor) -> tuple[str, dict]:
        if value.grad_fn is not None:
            return "graph", {}
        if value.layout is not torch.strided:
            raise TypeError(f"A tensor of layout {value.layout} cannot be stored.")
        memory = value.untyped_storage()
        key = memory.data_ptr(), memory.nbytes(), value.dtype, value.device
        if key not in self.storages or not memory.nbytes():
            whole = torch.empty(0, dtype=value.dtype, device=value.device)
            whole.set_(memory)  # type: ignore[call-overload]
            self.alive.append(memory)
            self.storages[key] = self._array(whole.cpu().numpy())
        return "tensor", {
            "memory": self.storages[key],
            "offset": value.storage_offset(),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "device": str(value.device),
            "parameter": isinstance(value, nn.Parameter),
            "learned": value.requires_grad,
            "grad": self.pack(value.grad if value.is_leaf else None),
        }


def attributes(value: Any) -> dict[str, Any]:
    """What makes an object what it is, by name.

    Parameters
    ----------
    value : object
        An object.

    Returns
    -------
    dict
    """
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    kept = dict(vars(value))
    if isinstance(value, nn.Module):
        kept = {k: v for k, v in kept.items() if k in PARTS or k not in MODULE}
    return kept


class Unpacker:
    """The way back from `Packer`. No code is run but that of this class.

    Parameters
    ----------
    arrays : list of ndarray
        As `Packer` made them.
    others, given : as for `Packer`
        Classes outside of this package that a file may name.
    device : str, optional
        Where all tensors go; None is where they were.
    """

    def __init__(
        self,
        arrays: list[np.ndarray],
        others: Iterable[type] = (),
        given: Mapping[str, Any] = {},
        device: str | None = None,
    ):
        self.arrays = arrays
        self.classes = classes(others)
        self.given = given
        self.device = device
        self.seen: dict[int, Any] = {}
        self.storages: dict[tuple, Tensor] = {}

    def unpack(self, node: Any) -> Any:
        """Make the object again.

        Parameters
        ----------
        node : object
            As `Packer.pack` made it.

        Returns
        -------
        object
        """
        if isinstance(node, list):
            return [self.unpack(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["$"]
        if kind == "again":
            return self.seen[node["id"]]
        read = getattr(self, f"_read_{kind}", None)
        if read is None:
            raise StorageError(f"it holds a {kind!r}, which is unknown.")
        value = read(node)
        if "id" in node:
            self.seen[node["id"]] = value
        return value

    def _read_given(self, node) -> Any:
        return self.given[node["name"]]

    def _read_float(self, node) -> float:
        return float(node["value"])

    def _read_string(self, node) -> np.str_:
        return np.str_(node["value"])

    def _read_enum(self, node) -> Any:
        cls = self._class(node)
        if not issubclass(cls, enum.Enum):
            raise StorageError(f"{node['class']} is no enumeration.")
        return cls(node["value"])

    def _read_scalar(self, node) -> Any:
        return self.arrays[node["array"]][()]

    def _read_tuple(self, node) -> tuple:
        return tuple(self.unpack(item) for item in node["items"])

    def _read_set(self, node) -> set:
        return set(self._read_tuple(node))

    def _read_dict(self, node) -> dict:
        return {self.unpack(k): self.unpack(v) for k, v in node["items"]}

    def _read_slice(self, node) -> slice:
        return slice(*self._read_tuple(node))

    def _read_dtype(self, node) -> torch.dtype:
        return DTYPES[node["name"]]

    def _read_device(self, node) -> torch.device:
        return torch.device(node["name"])

    def _read_size(self, node) -> torch.Size:
        return torch.Size(node["items"])

    def _read_array(self, node) -> np.ndarray:
        array = self.arrays[node["array"]]
        return array.T if node["fortran"] else array

    def _read_objects(self, node) -> np.ndarray:
        array = np.empty(math.prod(node["shape"]), node["dtype"])
        for i, item in enumerate(node["items"]):
            array[i] = self.unpack(item)
        return array.reshape(node["shape"])

    def _read_sparse(self, node) -> Any:
        *coords, data = (self.arrays[k] for k in node["arrays"])
        cls = sp.coo_matrix if node["matrix"] else sp.coo_array
        return cls((data, tuple(coords)), shape=node["shape"]).asformat(node["format"])

    def _read_generator(self, node) -> torch.Generator:
        generator = torch.Generator()
        generator.set_state(self.unpack(node["state"]).cpu())
        return generator

    def _read_random_state(self, node) -> np.random.RandomState:
        generator = np.random.RandomState()
        generator.set_state(self.unpack(node["state"]))
        return generator

    def _read_adam(self, node) -> torch.optim.Adam:
        groups = [self.unpack(group) for group in node["groups"]]
        adam = torch.optim.Adam(groups, fused=groups[0]["fused"])
        for parameter, state in node["state"]:
            adam.state[self.unpack(parameter)] = self.unpack(state)
        return adam

    def _read_graph(self, node) -> None:
        return None

    def _read_tensor(self, node) -> Tensor:
        device = self.device or node["device"]
        key = node["memory"], device
        if key not in self.storages:
            memory = torch.from_numpy(self.arrays[node["memory"]])
            self.storages[key] = memory.to(device)
        value = torch.as_strided(
            self.storages[key], node["shape"], node["stride"], node["offset"]
        )
        if node["parameter"]:
            value = nn.Parameter(value, requires_grad=node["learned"])
        else:
            value = value.detach().requires_grad_(node["learned"])
        if (grad := self.unpack(node["grad"])) is not None:
            value.grad = grad
        return value

    def _read_object(self, node) -> Any:
        cls = self._class(node)
        value: Any = object.__new__(cls)
        self.seen[node["id"]] = value  # it may hold itself
        if isinstance(value, nn.Module):
            nn.Module.__init__(value)
        names = set(node["attributes"])
        if dataclasses.is_dataclass(cls):
            wanted = {field.name for field in dataclasses.fields(cls)}
            if names != wanted:
                raise StorageError(f"{cls.__name__} has other parts than in the file.")
        vars(value).update(
            {name: self.unpack(part) for name, part in node["attributes"].items()}
        )
        return value

    def _class(self, node) -> type:
        cls = self.classes.get(node["class"])
        if cls is None:
            raise StorageError(
                f"it names {node['class']!r}, which is no class of skmc."
            )
        return cls
