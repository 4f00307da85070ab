"""Storage of fitted completers: safetensors and JSON instead of pickle."""

from __future__ import annotations

import os

from skmc.base import HOOKS, BaseCompleter
from skmc.completers import MixedCompleter, SeriesCompleter
from skmc.persistence import files
from skmc.persistence.classes import COMPLETERS
from skmc.persistence.serialize import StorageError

Completer = BaseCompleter | MixedCompleter | SeriesCompleter


def save(completer: Completer, path: str | os.PathLike) -> None:
    """Write a completer, with everything it has learned, to a file.

    The file is in the safetensors format. Arrays and tensors are stored in binary form,
    other attributes as JSON in the metadata, together with the version of the format,
    the version of skmc, and a SHA-256 checksum. The file is written atomically.

    Parameters
    ----------
    completer : completer
        Completer of skmc or of your own, fitted or not. Callbacks are not stored.
    path : str or path-like
        Path of the file, usually with the extension ".safetensors". An existing file is
        replaced.

    Raises
    ------
    TypeError
        ``completer`` is not a completer, or it has an attribute that cannot be stored,
        such as a function.

    See Also
    --------
    load : Reads the file.
    checkpoint : Makes a long fit resumable.

    Notes
    -----
    Completers, terms, models, solvers and states that you derive from the base classes
    are stored like skmc's own if they are defined at the top level of a module. Use
    `register` for other classes. A class defined in a script is stored as
    ``__main__.Name``, and can be loaded only by a script that defines it, too.

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
            f"save stores completers, got {type(completer).__name__}. Store a pipeline "
            "or a search by skops.io.dump, or save the completer in it."
        )
    files.write(path, "completer", completer, omit=HOOKS)


def load(path: str | os.PathLike) -> Completer:
    """Read a completer that `save` wrote.

    Loading executes nothing that the file names and imports nothing. The file may name
    classes of skmc and, if your program has imported them before, subclasses of skmc's
    base classes and of `torch.nn.Module`. The checksum detects damage and careless
    edits. It is not a signature, which would need a secret.

    Parameters
    ----------
    path : str or path-like
        Path of the file.

    Returns
    -------
    completer
        Completer with tensors on the CPU. It gives the same results as the completer
        that was saved.

    Raises
    ------
    skmc.persistence.StorageError
        A `ValueError`: the file is truncated, differs from its checksum, has a newer
        format, holds something else, or names a class that has not been imported.

    See Also
    --------
    save : Writes the file.
    """
    completer = files.read(path, "completer", device="cpu")
    if not isinstance(completer, COMPLETERS):
        raise StorageError(
            f"{path} holds a {type(completer).__name__}, not a completer."
        )
    missing = set(completer._get_param_names()) - set(vars(completer))
    if missing:
        raise StorageError(
            f"{path} lacks the parameters {sorted(missing)} of this version's "
            f"{type(completer).__name__}; fit and save it anew."
        )
    return completer
