"""Files that hold packed objects: safetensors, with JSON in the metadata."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from skmc.persistence.serialize import Packer, StorageError, Unpacker

FORMAT = 1  # to be raised whenever older code would misread what is written


def write(path: str | os.PathLike, kind: str, value: Any, **known: Any) -> None:
    """Write ``value`` as a file of some kind, which appears whole or not at all.

    ``known`` is what `Packer` has to know besides.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    kind : str
        What the file holds; `read` insists on it.
    value : object
        What is stored.
    **known : dict
        For `Packer`.
    """
    packer = Packer(**known)
    write_packed(path, kind, packer.pack(value), packer.arrays)


def read(path: str | os.PathLike, kind: str, **known: Any) -> Any:
    """What `write` was given; `StorageError` says what is wrong with a file.

    ``known`` is what `Unpacker` has to know besides.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    kind : str
        What the file holds; `read` insists on it.
    **known : dict
        For `Unpacker`.

    Returns
    -------
    object
    """
    header, arrays = read_packed(path, kind)
    trouble = f"{path}, written by skmc {header['skmc']}, cannot be read by {version()}"
    try:
        return Unpacker(arrays, **known).unpack(header["content"])
    except (TypeError, ValueError) as error:
        raise StorageError(f"{trouble}: {error}") from error
    except (LookupError, AttributeError, RuntimeError) as error:
        raise StorageError(f"{trouble} ({error!r}).") from error


def fingerprint(value: Any, **known: Any) -> str:
    """SHA-256 of what `write` would store, the same in every process.

    Parameters
    ----------
    value : object
        What is stored.
    **known : dict
        For `Packer`.

    Returns
    -------
    str
    """
    packer = Packer(**known)
    return _digest(json.dumps([version(), packer.pack(value)]), packer.arrays)


def write_packed(
    path: str | os.PathLike, kind: str, content: Any, arrays: list[np.ndarray]
) -> None:
    """Write what a `Packer` has made.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    kind : str
        What the file holds; `read` insists on it.
    content : object
        As of `Packer.pack`.
    arrays : list of ndarray
        Of the packer.
    """
    header = {"format": FORMAT, "kind": kind, "skmc": version(), "content": content}
    text = json.dumps(header, allow_nan=False)
    digest = _digest(text, arrays)
    metadata = {"skmc": text, "format": str(FORMAT), "sha256": digest}
    named = {str(k): array for k, array in enumerate(arrays)}
    replace_file(path, lambda part: safetensors.numpy.save_file(named, part, metadata))


def replace_file(path: str | os.PathLike, fill: Callable[[Path], Any]) -> None:
    """A file that ``fill`` writes, in the place of ``path`` once it is whole.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    fill : callable
        Writes to the path that it is given.
    """
    name, path = Path(path).name, Path(path).resolve()  # a link stays one
    part = path.with_name(f".{name}.part")
    try:
        fill(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_packed(path: str | os.PathLike, kind: str) -> tuple[dict, list[np.ndarray]]:
    """Header and arrays of a file that is whole and as it was written.

    Parameters
    ----------
    path : str or path-like
        Of the file.
    kind : str
        What the file holds; `read` insists on it.

    Returns
    -------
    tuple of dict, list of ndarray
    """
    with open(path, "rb"):
        pass  # an error of the system's says more
    try:
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if "skmc" not in metadata:
                raise StorageError(f"{path} was not written by skmc.")
            _check_format(path, metadata.get("format", ""))
            names = sorted(file.keys(), key=int)
            arrays = [file.get_tensor(name) for name in names]
    except StorageError:
        raise
    except (SafetensorError, ValueError, TypeError) as error:
        raise StorageError(
            f"{path} is damaged or no file of skmc's ({error}); write it anew."
        ) from error
    if _digest(metadata["skmc"], arrays) != metadata.get("sha256"):
        raise StorageError(
            f"{path} is not as it was written: its checksum differs. It was damaged or "
            "tampered with; write it anew."
        )
    header = json.loads(metadata["skmc"])
    if str(header["format"]) != metadata["format"]:
        raise StorageError(f"{path} has two format numbers; it was tampered with.")
    if header["kind"] != kind:
        raise StorageError(f"{path} holds a {header['kind']}, not a {kind}.")
    return header, arrays


def _check_format(path, number: str) -> None:
    if not number.isdecimal():
        raise StorageError(
            f"{path} has no format number; it was damaged or tampered with."
        )
    if int(number) > FORMAT:
        raise StorageError(
            f"{path} has format {number}, newer than {FORMAT}, the newest that skmc "
            f"{version()} reads; install a newer skmc."
        )


def _digest(text: str, arrays: list[np.ndarray]) -> str:
    """SHA-256 of all that is read."""
    sha = hashlib.sha256(text.encode())
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def version() -> str:
    """Of this package.

    Returns
    -------
    str
    """
    import skmc

    return skmc.__version__
