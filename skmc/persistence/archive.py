"""Files that hold packed objects: ZIP, with JSON and the bytes of arrays."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

import skmc
from skmc.serialization import Packer, StorageError, Unpacker

FORMAT = 4  # increased if older code would misread the files
HEADER, ARRAYS = "skmc.json", "arrays"  # parts of the file
PICKLE = b"\x80"  # the first byte of a pickle file
LENGTH = 2  # bytes of the length of a ZIP file's comment, which ends the file
DIGITS = 64  # of a SHA-256
COMPRESSED = 2**24  # bytes of arrays; more take long, and are mostly noise
AT_ONCE = 2**20  # bytes of a part of a checksum


def write(path: str | os.PathLike, kind: str, value: object, **options: Any) -> None:
    """Write an object to a file atomically."""
    packer = Packer(**options)
    write_packed(path, kind, packer.pack(value), packer.arrays)


def read(path: str | os.PathLike, kind: str, **options: Any) -> Any:
    """Read an object that `write` wrote."""
    header, arrays = read_packed(path, kind)
    try:
        return Unpacker(arrays, **options).unpack(header["content"])
    except (LookupError, AttributeError, RuntimeError, TypeError, ValueError) as error:
        reason = repr(error) if isinstance(error, LookupError) else error
        raise StorageError(
            f"{path}, written by skmc {header['skmc']}, cannot be read by "
            f"{skmc.__version__}: {reason}."
        ) from error


def fingerprint(value: object) -> str:
    """SHA-256 of the content that `write` would store, equal in every process."""
    packer = Packer()
    return _digest(json.dumps([skmc.__version__, packer.pack(value)]), packer.arrays)


def write_packed(
    path: str | os.PathLike, kind: str, content: object, arrays: list[np.ndarray]
) -> None:
    """Write the result of a `Packer`: a ZIP file, whose comment is its SHA-256."""
    header = {
        "format": FORMAT,
        "kind": kind,
        "skmc": skmc.__version__,
        "arrays": [(dtype_to_descr(array.dtype), array.shape) for array in arrays],
        "content": content,
    }
    large = sum(array.nbytes for array in arrays) > COMPRESSED

    def fill(part: Path) -> None:
        with ZipFile(part, "w", ZIP_STORED if large else ZIP_DEFLATED) as file:
            file.writestr(HEADER, json.dumps(header, allow_nan=False))
            with file.open(ARRAYS, "w", force_zip64=True) as stream:
                for array in arrays:
                    stream.write(_bytes(array).data)
        with open(part, "rb+") as raw:
            size = raw.seek(-LENGTH, os.SEEK_END)
            digest = _digest_of(raw, size)
            raw.seek(size)
            raw.write(_comment(digest))

    replace_file(path, fill)


def read_packed(path: str | os.PathLike, kind: str) -> tuple[dict, list[np.ndarray]]:
    """Verify the checksum of a file, and read its header and its arrays."""
    with open(path, "rb") as raw:
        size = max(0, raw.seek(0, os.SEEK_END) - LENGTH - DIGITS)
        digest = _digest_of(raw, size)
        if raw.read() != _comment(digest):
            raw.seek(0)
            if raw.read(1) == PICKLE:
                raise StorageError(
                    f"{path} is a pickle file, which can run any code when it is read; "
                    "if you trust it, read it with joblib.load or pickle.load, and "
                    "write it anew with skmc.persistence.save."
                )
            raise StorageError(
                f"{path} was damaged or tampered with, or was not written by skmc: its "
                "checksum differs."
            )
        with ZipFile(raw) as file:
            header = json.loads(file.read(HEADER))
            _verify(path, kind, header)
            with file.open(ARRAYS) as stream:
                arrays = [_read_array(stream, *item) for item in header["arrays"]]
    return header, arrays


def _verify(path: str | os.PathLike, kind: str, header: dict) -> None:
    """Refuse a file of another format or kind."""
    number = header["format"]
    if number > FORMAT:
        raise StorageError(
            f"{path} has format {number}, newer than {FORMAT}, the newest that "
            f"skmc {skmc.__version__} reads; install a newer skmc."
        )
    if number < FORMAT:
        raise StorageError(
            f"{path} has format {number}, which skmc {skmc.__version__} no "
            "longer reads; fit the completer again and save it anew."
        )
    if header["kind"] != kind:
        raise StorageError(f"{path} holds a {header['kind']}, not a {kind}.")


def _read_array(stream: IO[bytes], descr: Any, shape: list[int]) -> np.ndarray:
    array = np.empty(shape, descr_to_dtype(descr))
    _bytes(array)[:] = np.frombuffer(stream.read(array.nbytes), np.uint8)
    return array


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _comment(digest: str) -> bytes:
    """The length of the comment, and the comment."""
    return DIGITS.to_bytes(LENGTH, "little") + digest.encode()


def _digest_of(raw: IO[bytes], size: int) -> str:
    """SHA-256 of the first bytes of a file."""
    sha = hashlib.sha256()
    raw.seek(0)
    while size and (part := raw.read(min(size, AT_ONCE))):
        sha.update(part)
        size -= len(part)
    return sha.hexdigest()


def replace_file(path: str | os.PathLike, fill: Callable[[Path], Any]) -> None:
    """Write or replace a file atomically.

    A new file has the permissions of the user's umask, a replaced one those of the
    old file.
    """
    asked, path = os.fspath(path), Path(path).resolve()  # keeps symbolic links
    if path.is_dir():
        raise IsADirectoryError(f"{asked} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{asked}: folder {path.parent} does not exist; create it first."
        )
    part = path.with_name(f".{Path(asked).name}.part")
    try:
        part.touch()
        model = path if path.exists() else part
        mode = stat.S_IMODE(model.stat().st_mode)
        fill(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        part.chmod(mode)  # some writers restrict it to the owner
        os.replace(part, path)
    except OSError as error:
        if error.errno is not None:
            raise OSError(error.errno, error.strerror, asked) from error
        raise OSError(f"{asked} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _digest(text: str, arrays: list[np.ndarray]) -> str:
    """SHA-256 of the given chunks."""
    sha = hashlib.sha256(text.encode())
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()
