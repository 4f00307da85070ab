"""Fitted completers in files: safetensors and JSON instead of pickle."""

from __future__ import annotations

import os

from sklearn.impute import MissingIndicator

from skmc.base import HOOKS, BaseCompleter
from skmc.persistence import files
from skmc.persistence.serialize import StorageError
from skmc.tables import MixedCompleter

COMPLETERS = (BaseCompleter, MixedCompleter)
OTHERS = (MissingIndicator,)


def save(completer: BaseCompleter | MixedCompleter, path: str | os.PathLike) -> None:
    """Write a completer, with all it has learned, to a file.

    The file is in the safetensors format: arrays and tensors as they are, all else as
    JSON in its metadata, with the version of the format, that of the package, and the
    SHA-256 of everything. It appears whole or not at all.

    Parameters
    ----------
    completer : completer
        Fitted or not. Callbacks are not stored.
    path : str or path-like
        ".safetensors" is the usual ending. A file that is there is replaced.

    Raises
    ------
    TypeError
        ``completer`` is none, or it has a parameter that cannot be stored.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from skmc import SVDCompleter
    >>> from skmc.persistence import load, save
    >>> X = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    >>> X[2, 3] = np.nan
    >>> completer = SVDCompleter(rank=1, scaling=None).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "svd.safetensors"
    ...     save(completer, path)
    ...     again = load(path)
    >>> again
    SVDCompleter(rank=1, scaling=None)
    >>> bool((again.transform(X) == completer.transform(X)).all())
    True
    """
    if not isinstance(completer, COMPLETERS):
        raise TypeError(
            f"save stores completers, got {type(completer).__name__}; a pipeline's are "
            "its steps."
        )
    files.write(path, "completer", completer, others=OTHERS, without=HOOKS)


def load(path: str | os.PathLike) -> BaseCompleter | MixedCompleter:
    """Read what `save` wrote.

    Nothing in the file is executed, and it names no class but those of skmc. The
    checksum finds damage and careless edits; it is no signature, which would need a
    secret.

    Parameters
    ----------
    path : str or path-like
        Of the file.

    Returns
    -------
    completer
        Its tensors are on the CPU, its answers those of the completer that was saved.

    Raises
    ------
    skmc.persistence.StorageError
        A `ValueError`: the file is truncated, differs from its checksum, is of a newer
        format, or holds something else.
    """
    completer = files.read(path, "completer", others=OTHERS, device="cpu")
    if not isinstance(completer, COMPLETERS):
        raise StorageError(f"{path} holds a {type(completer).__name__}.")
    missing = set(completer._get_param_names()) - set(vars(completer))
    if missing:
        raise StorageError(
            f"{path} lacks the parameters {sorted(missing)} of this version's "
            f"{type(completer).__name__}; fit and save it anew."
        )
    return completer
