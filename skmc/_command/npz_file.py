"""NPZ files of one matrix, with NaN or beside a mask."""

from __future__ import annotations

import zipfile
from argparse import Namespace
from pathlib import Path

import numpy as np
from sklearn.base import clone

from skmc._command.failure import CommandError, UsageError
from skmc.base import BaseCompleter

MASK = "mask"


class NPZFile:
    """One array is completed, under its name and in its type; others stay.

    What is missing is NaN, or what a boolean array named "mask" marks (True is
    missing, as in `numpy.ma`).
    """

    def __init__(self, path: str, options: Namespace):
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as file:
                self.arrays = {name: file[name] for name in file.files}
            with zipfile.ZipFile(path) as archive:
                kinds = {info.compress_type for info in archive.infolist()}
        except (ValueError, AttributeError, zipfile.BadZipFile, EOFError) as error:
            raise CommandError(
                f"{path} is no NPZ file of plain arrays; pickles are not read"
            ) from error
        self.save = np.savez if kinds == {zipfile.ZIP_STORED} else np.savez_compressed
        self.name = self._choose(options.array)
        array = self.arrays[self.name]
        self.missing = np.zeros(array.shape, bool)
        if array.dtype.kind == "f":
            self.missing |= np.isnan(array)
        mask = self.arrays.get(MASK)
        if mask is not None and self.name != MASK:
            if mask.shape != array.shape or not np.isin(mask, (0, 1)).all():
                raise CommandError(
                    f"{path}: {MASK} is {_described(mask)}; it must be true or false "
                    f"for each cell of {self.name}, {_described(array)}"
                )
            self.missing |= mask.astype(bool)

    @property
    def n_cells(self) -> int:
        return self.missing.size

    def notes(self) -> list[str]:
        return []

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the holes; how many they were."""
        array = self.arrays[self.name]
        if self.missing.any():
            found = clone(completer).fit_transform(self.matrix())
            if array.dtype.kind in "iu":
                limits = np.iinfo(array.dtype)
                found = np.rint(found).clip(float(limits.min), float(limits.max))
            array = array.copy()
            array[self.missing] = found[self.missing].astype(array.dtype)
            self.arrays[self.name] = array
        return int(self.missing.sum())

    def matrix(self) -> np.ndarray:
        return np.ma.masked_array(self.arrays[self.name], self.missing)

    def write(self, path: Path) -> None:
        with open(path, "wb") as file:  # to a path NumPy would add a suffix
            self.save(file, **self.arrays)

    def _choose(self, wanted: str | None) -> str:
        if wanted is not None and wanted not in self.arrays:
            raise UsageError(f"--array {wanted}: {self.path} holds {self._contents()}")
        fit = [
            name
            for name, array in self.arrays.items()
            if array.ndim == 2 and array.dtype.kind in "fiu" and name != MASK
        ]
        if wanted is not None:
            if wanted in fit:
                return wanted
        elif len(fit) == 1:
            return fit[0]
        remedy = "choose one with --array" if fit else "a matrix of numbers is needed"
        raise CommandError(f"{self.path} holds {self._contents()}; {remedy}")

    def _contents(self) -> str:
        parts = (f"{name} ({_described(a)})" for name, a in self.arrays.items())
        return ", ".join(parts) or "no array"


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'scalar'}"
