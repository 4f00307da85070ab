"""Files that hold packed objects: safetensors, with JSON in the metadata."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

import skmc
from skmc.persistence.serialize import Packer, StorageError, Unpacker

FORMAT = 3  # increased if older code would misread the files


def write(path: str | os.PathLike, kind: str, value: object, **options: Any) -> None:
    """Write an object to a file atomically.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    kind : str
        Kind of content, which `read` verifies.
    value : object
        Object to store.
    **options : dict
        Parameters of `Packer`.
    """
    packer = Packer(**options)
    write_packed(path, kind, packer.pack(value), packer.arrays)


def read(path: str | os.PathLike, kind: str, **options: Any) -> Any:
    """Read an object that `write` wrote.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    kind : str
        Required kind of content.
    **options : dict
        Parameters of `Unpacker`.

    Returns
    -------
    object

    Raises
    ------
    StorageError
        The file is damaged, of another kind, or from another version.
    """
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
    """SHA-256 of the content that `write` would store, equal in every process.

    Parameters
    ----------
    value : object
        Object to store.

    Returns
    -------
    str
    """
    packer = Packer()
    return _digest(json.dumps([skmc.__version__, packer.pack(value)]), packer.arrays)


def write_packed(
    path: str | os.PathLike, kind: str, content: object, arrays: list[np.ndarray]
) -> None:
    """Write the result of a `Packer`.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    kind : str
        Kind of content.
    content : object
        Result of `Packer.pack`.
    arrays : list of ndarray
        The packer's arrays.
    """
    header = {
        "format": FORMAT,
        "kind": kind,
        "skmc": skmc.__version__,
        "content": content,
    }
    text = json.dumps(header, allow_nan=False)
    digest = _digest(text, arrays)
    metadata = {"skmc": text, "format": str(FORMAT), "sha256": digest}
    named = {str(k): array for k, array in enumerate(arrays)}
    replace_file(path, lambda part: safetensors.numpy.save_file(named, part, metadata))


def read_packed(path: str | os.PathLike, kind: str) -> tuple[dict, list[np.ndarray]]:
    """Read the header and the arrays of a file, and verify its checksum.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    kind : str
        Required kind of content.

    Returns
    -------
    tuple of dict, list of ndarray
    """
    with open(path, "rb"):
        pass  # the system's own error is more specific
    try:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if "skmc" not in metadata:
                raise StorageError(f"{path} was not written by skmc.")
            number = metadata.get("format", "")
            if number.isdecimal() and int(number) > FORMAT:
                raise StorageError(
                    f"{path} has format {number}, newer than {FORMAT}, the newest that "
                    f"skmc {skmc.__version__} reads; install a newer skmc."
                )
            if number.isdecimal() and int(number) < FORMAT:
                raise StorageError(
                    f"{path} has format {number}, which skmc {skmc.__version__} no "
                    "longer reads; fit the completer again and save it anew."
                )
            arrays = [file.get_tensor(name) for name in sorted(file.keys(), key=int)]
    except StorageError:
        raise
    except (SafetensorError, ValueError, TypeError) as error:
        raise StorageError(
            f"{path} is damaged or was not written by skmc ({error})."
        ) from error
    if _digest(metadata["skmc"], arrays) != metadata.get("sha256"):
        raise StorageError(
            f"{path} was damaged or tampered with: its checksum differs."
        )
    header = json.loads(metadata["skmc"])
    if str(header["format"]) != number:
        raise StorageError(f"{path} was tampered with: it has two format numbers.")
    if header["kind"] != kind:
        raise StorageError(f"{path} holds a {header['kind']}, not a {kind}.")
    return header, arrays


def replace_file(path: str | os.PathLike, fill: Callable[[Path], Any]) -> None:
    """Write or replace a file atomically.

    A new file has the permissions of the user's umask, a replaced one those of the
    old file.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    fill : callable
        Function that writes to the temporary path that it gets.

    Raises
    ------
    OSError
        The file cannot be written. The error names ``path``, not the temporary file.
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
    except (OSError, SafetensorError) as error:
        if isinstance(error, OSError) and error.errno is not None:
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
