"""NPZ files of a matrix, with NaN or with a mask in a second array."""

from __future__ import annotations

import zipfile
import zlib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skmc._command.failure import CommandError, UsageError
from skmc._command.file import File, around
from skmc._command.tables import whole

if TYPE_CHECKING:
    from skmc.base import BaseCompleter

MASK = "mask"


class NPZFile(File):
    """Arrays in a file; one is completed and keeps its name and type.

    A cell is missing if it is NaN or if a boolean array named "mask" is True there, as
    in `numpy.ma`.
    """

    kind = "NPZ"
    options: ClassVar[tuple[str, ...]] = ("array", "draws", "intervals")

    def __init__(self, path: str, options: Namespace):
        super().__init__(path, options)
        try:
            self.arrays = self.load(path)
        # A single array, as written by np.save, raises a TypeError.
        except (
            *(ValueError, TypeError, AttributeError, EOFError),
            *(zipfile.BadZipFile, zlib.error),
        ) as error:
            raise CommandError(
                f"{path} is not an {self.kind} file of plain arrays; pickles are not "
                "read"
            ) from error
        self.name = self._choose(options.array)
        array = self.arrays[self.name]
        self.missing = np.isnan(array)
        mask = self.arrays.get(MASK)
        if mask is not None and self.name != MASK:
            if mask.shape != array.shape or not np.isin(mask, (0, 1)).all():
                raise CommandError(
                    f"{path}: {MASK} is {_described(mask)}; it must be true or false "
                    f"for each cell of {self.name}, {_described(array)}"
                )
            self.missing |= mask.astype(bool)
        if self.missing.all():
            raise CommandError(
                f"{path}: {self.name} has no observed cell; at least one is needed"
            )
        infinite = np.argwhere(np.isinf(array) & ~self.missing)
        if len(infinite):
            i, j = infinite[0]
            raise CommandError(
                f"{path}: {self.name}[{i}, {j}] is infinite; set it to NaN if it is "
                "missing"
            )

    def load(self, path: str) -> dict[str, np.ndarray]:
        """Read the arrays of the file."""
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            kinds = {info.compress_type for info in file.zip.infolist()}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("not all members are arrays")
        plain = kinds == {zipfile.ZIP_STORED}
        self.save: Any = np.savez if plain else np.savez_compressed
        return arrays

    @property
    def n_cells(self) -> int:
        return self.missing.size

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the missing cells and count them."""
        array = self.arrays[self.name]
        if self.missing.any():
            from sklearn.base import clone

            self.fitted = clone(completer)
            names = [f"{self.name}_{end}" for end in ("lower", "upper")]
            if self.level is not None and (both := set(names) & set(self.arrays)):
                raise UsageError(
                    f"--intervals: {self.path} has an array {min(both)} already"
                )
            completed = self.completions(self.matrix())
            self.found = [self._filled(array, c[self.missing]) for c in completed]
            if self.level is not None:
                ends = around(self.bounds_of(self.matrix()), completed[0])
                self.arrays |= dict(zip(names, ends, strict=True))
        return int(self.missing.sum())

    def _filled(self, array: np.ndarray, found: np.ndarray) -> np.ndarray:
        if array.dtype.kind in "iu":
            found = np.array([whole(x, array.dtype) for x in found], array.dtype)
        array = array.copy()
        array[self.missing] = found.astype(array.dtype)
        return array

    def choose(self, k: int) -> None:
        self.arrays[self.name] = self.found[k]

    def matrix(self) -> np.ndarray:
        array = self.arrays[self.name]
        if array.dtype == np.float16:  # NumPy's masked arrays cannot fill it
            array = array.astype(np.float32)
        return np.ma.masked_array(array, self.missing)

    def write(self, path: Path) -> None:
        with open(path, "wb") as file:  # NumPy would add a suffix to a path
            self.save(file, **self.arrays)

    def _choose(self, wanted: str | None) -> str:
        if wanted is not None and wanted not in self.arrays:
            raise UsageError(f"--array {wanted}: {self.path} holds {self._contents()}")
        fit = [
            name
            for name, array in self.arrays.items()
            if array.ndim == 2 and array.dtype.kind in "fiu" and name != MASK
        ]
        chosen = [name for name in fit if wanted in (name, None)]
        if len(chosen) == 1:
            return chosen[0]
        remedy = "choose one with --array" if fit else "a matrix of numbers is needed"
        raise CommandError(f"{self.path} holds {self._contents()}; {remedy}")

    def _contents(self) -> str:
        described = (f"{name} ({_described(a)})" for name, a in self.arrays.items())
        return ", ".join(described) or "no array"


class NPYFile(NPZFile):
    """A file of one matrix, in which NaN is missing."""

    kind = "NPY"
    options = ("draws",)

    def load(self, path: str) -> dict[str, np.ndarray]:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("not an array")
        return {"the array": array}

    def write(self, path: Path) -> None:
        with open(path, "wb") as file:
            np.save(file, self.arrays[self.name])


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'scalar'}"
