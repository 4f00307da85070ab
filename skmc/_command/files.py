"""Files that are read and written, by the ends of their names."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skmc._command.csv_file import CSVFile
from skmc._command.failure import CommandError, UsageError
from skmc._command.npz_file import NPZFile
from skmc._command.parquet_file import ParquetFile
from skmc._command.picture_file import PictureFile
from skmc.persistence import replace_file

FORMATS = {
    ".csv": CSVFile,
    ".tsv": CSVFile,
    ".txt": CSVFile,
    ".parquet": ParquetFile,
    ".npz": NPZFile,
    ".png": PictureFile,
    ".jpg": PictureFile,
    ".jpeg": PictureFile,
}
# Options that say something to some formats only, and what they are unless given.
OPTIONS: dict[str, tuple[tuple, Any]] = {
    "index": ((CSVFile, ParquetFile), []),
    "categorical": ((CSVFile, ParquetFile), []),
    "missing": ((CSVFile,), []),
    "separator": ((CSVFile,), None),
    "no_header": ((CSVFile,), False),
    "array": ((NPZFile,), None),
    "mask": ((PictureFile,), None),
    "missing_colour": ((PictureFile,), None),
    "invert_mask": ((PictureFile,), False),
    "tolerance": ((PictureFile,), None),
}


def format_of(path: str) -> Any:
    if path == "-":
        return CSVFile
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def read(path: str, options: Namespace) -> Any:
    """The file, with its missing cells known."""
    cls = format_of(path)
    for name, (formats, default) in OPTIONS.items():
        if getattr(options, name) != default and cls not in formats:
            raise UsageError(f"--{name.replace('_', '-')} says nothing of {path}")
    if options.invert_mask and options.mask is None:
        raise UsageError("--invert-mask needs --mask")
    if options.tolerance is not None and options.missing_colour is None:
        raise UsageError("--tolerance needs --missing-colour")
    return cls(path, options)


def check_target(path: str, force: bool) -> None:
    """That there is a place for a file, before any work is done."""
    if path == "-":
        return
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise CommandError(f"{path} is a folder; give the name of a file")
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(target.resolve().parent, os.W_OK):
        raise CommandError(f"{path}: folder {folder} cannot be written to")
    if os.path.lexists(target) and not force:
        raise CommandError(f"{path} exists; --force overwrites it")


def write(path: str, fill: Callable[[Path], Any], force: bool) -> None:
    """A file that appears whole or not at all."""
    if path == "-":
        raise UsageError("only tables of text are written to '-'")
    check_target(path, force)  # it may have come meanwhile
    replace_file(path, fill)


def write_out(file: Any, path: str, force: bool) -> None:
    if path == "-" and isinstance(file, CSVFile):
        sys.stdout.buffer.write(file.contents())
        sys.stdout.buffer.flush()
    else:
        write(path, file.write, force)
