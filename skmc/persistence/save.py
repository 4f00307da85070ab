"""Storage of fitted completers: JSON and arrays in a ZIP file instead of pickle."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator

from skmc.base import HOOKS
from skmc.persistence import archive
from skmc.serialization import StorageError


def save(completer: Any, path: str | os.PathLike) -> None:
    """Write a completer, with everything it has learned, to a file.

    The file is a ZIP archive of two parts: the bytes of all arrays and tensors, and
    JSON for the other attributes, the version of the format and the version of skmc.
    Its comment is the SHA-256 of all bytes before it. The file is written atomically,
    and compressed if the arrays have at most 16 MiB.

    Parameters
    ----------
    completer : estimator
        Completer of skmc or of your own, fitted or not, or a pipeline or a search of
        scikit-learn that holds one. Callbacks are not stored.
    path : str or path-like
        Path of the file, usually with the extension ".skmc". An existing file is
        replaced.

    Raises
    ------
    TypeError
        ``completer`` is not an estimator, or it has an attribute that cannot be stored,
        such as a function.

    See Also
    --------
    load : Reads the file.
    checkpoint : Makes a long fit resumable.

    Notes
    -----
    Completers, terms, models, solvers and states that you derive from the base classes
    are stored like skmc's own if they are defined at the top level of a module, and so
    are all estimators of scikit-learn, which its same version should load. Use
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
    ...     path = Path(folder) / "svd.skmc"
    ...     save(completer, path)
    ...     again = load(path)
    >>> again
    SVDCompleter(rank=1, scaling=None)
    >>> bool((again.transform(X) == completer.transform(X)).all())
    True
    """
    if not isinstance(completer, BaseEstimator):
        raise TypeError(f"save stores completers, got {type(completer).__name__}.")
    archive.write(path, "completer", completer, omit=HOOKS)


def load(path: str | os.PathLike) -> Any:
    """Read a completer that `save` wrote.

    Loading calls no function and no constructor that the file names, except those of
    scikit-learn's compiled classes, such as trees, and imports only modules of skmc and
    scikit-learn. The file may name classes of skmc and of scikit-learn and, if your
    program has imported them before, subclasses of skmc's base classes and of
    `torch.nn.Module`. The checksum detects damage and careless edits. It is not a
    signature, which would need a secret.

    Parameters
    ----------
    path : str or path-like
        Path of the file.

    Returns
    -------
    estimator
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
    completer = archive.read(path, "completer", device="cpu")
    if not isinstance(completer, BaseEstimator):
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
