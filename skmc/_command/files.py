"""Input and output files, by the suffixes of their names."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skmc._command.csv_file import CSVFile
from skmc._command.failure import CommandError, UsageError
from skmc._command.npz_file import NPYFile, NPZFile
from skmc._command.parquet_file import ParquetFile
from skmc._command.picture_file import PictureFile

Format = CSVFile | ParquetFile | NPZFile | NPYFile | PictureFile
FORMATS: dict[str, type[Format]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), CSVFile),
    **dict.fromkeys((".csv.gz", ".tsv.gz", ".txt.gz"), CSVFile),
    ".parquet": ParquetFile,
    ".npz": NPZFile,
    ".npy": NPYFile,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"), PictureFile),
}
SPREADSHEETS = (".xlsx", ".xls", ".ods")
SOME_OPTIONS = {option for format_ in FORMATS.values() for option in format_.options}


def format_of(path: str) -> type[Format]:
    if path == "-":
        return CSVFile
    _, suffix = stem_and_suffix(path)
    if suffix in SPREADSHEETS:
        raise UsageError(
            f"{path} is a spreadsheet; use CSV, to which every spreadsheet can be saved"
        )
    if suffix not in FORMATS:
        raise UsageError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def stem_and_suffix(path: str) -> tuple[str, str]:
    """The name of a file without its suffix, and this one, such as .csv.gz."""
    name = Path(path).name
    suffix = "".join(Path(name).suffixes[-1 - name.lower().endswith(".gz") :])
    return name.removesuffix(suffix), suffix.lower()


def read(path: str, options: Namespace) -> Format:
    """Read a file and find its missing cells."""
    format_ = format_of(path)
    for name in sorted(SOME_OPTIONS.difference(format_.options)):
        given = getattr(options, name, None)
        if given not in (None, []) and given is not False:
            raise UsageError(f"--{name.replace('_', '-')} does not apply to {path}")
    if options.invert_mask and options.mask is None:
        raise UsageError("--invert-mask needs --mask")
    if options.mask_threshold is not None and options.mask is None:
        raise UsageError("--mask-threshold needs --mask")
    if options.tolerance is not None and options.missing_color is None:
        raise UsageError("--tolerance needs --missing-color")
    return format_(path, options)


def check_target(path: str, force: bool) -> None:
    """Check that a file can be written, before any computation."""
    if path == "-":
        return
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise CommandError(f"{path} is a folder; pass a file name")
    if not folder.is_dir():
        raise CommandError(f"{path}: folder {folder} does not exist; create it first")
    if not os.access(target.resolve().parent, os.W_OK):
        raise CommandError(f"{path}: folder {folder} cannot be written to")
    if os.path.lexists(target) and not force:
        raise CommandError(f"{path} exists; --force overwrites it")


def write(path: str, fill: Callable[[Path], Any], force: bool) -> None:
    """Write a file atomically."""
    if path == "-":
        raise UsageError("only CSV can be written to '-'")
    from skmc.persistence import replace_file

    check_target(path, force)  # it may exist now
    replace_file(path, fill)


def write_out(file: Format, path: str, force: bool) -> None:
    if path == "-" and isinstance(file, CSVFile):
        sys.stdout.buffer.write(file.contents())
        sys.stdout.buffer.flush()
    else:
        write(path, file.write, force)
