"""Matrices to complete.

`load_photo` reads a picture that ships with scikit-learn. The other loaders read
evaluation files that the user provides, because their licenses do not allow us to
redistribute them. The files belong in ``data_home``, which defaults to the environment
variable ``SKMC_DATA`` and then to ``~/skmc_data``. Only plain arrays and pictures are
read, never pickles.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from skmc.cells import Entries

__all__ = [
    "load_drug_target",
    "load_expression",
    "load_flixster",
    "load_image",
    "load_mask",
    "load_mnist_digits",
    "load_movielens",
    "load_photo",
    "load_syn_netflix",
    "load_table",
]


def _folder(path: str | Path | None) -> Path:
    """Folder of the evaluation files."""
    return Path(path or os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()


def _file(name: str, home: str | Path | None) -> Path:
    path = _folder(home) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. The evaluation files are not part of skmc: put "
            f"'{name}' below a folder of your choice and pass the folder as data_home, "
            "or set the environment variable SKMC_DATA to it."
        )
    return path


def _arrays(name: str, home: str | Path | None) -> Bunch:
    path = _file(name, home)
    try:
        with np.load(path, allow_pickle=False) as file:
            return Bunch(**{key: file[key] for key in file.files})
    except ValueError as error:
        raise ValueError(
            f"{path} is not a file of plain arrays ({error}); pickles are never loaded."
        ) from error


def _picture(path: Path) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Reading pictures needs Pillow: pip install 'skmc[plot]'."
        ) from error
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"))


def load_photo(name: str = "china") -> np.ndarray:
    """A grayscale photo that ships with scikit-learn, 213 x 320, values in [0, 1].

    Parameters
    ----------
    name : {"china", "flower"}
        The color picture is converted to luminance (.299 R + .587 G + .114 B) and
        averaged over blocks of 2 x 2 pixels.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ImportError
        Pillow is not installed (``pip install skmc[plot]``).

    See Also
    --------
    load_image : Pictures of papers.

    Examples
    --------
    >>> from skmc.datasets import load_photo
    >>> load_photo().shape
    (213, 320)
    """
    from sklearn.datasets import load_sample_image

    color = load_sample_image(f"{name}.jpg") / 255
    gray = (color @ [0.299, 0.587, 0.114])[:426]
    return gray.reshape(213, 2, 320, 2).mean((1, 3))


def load_image(
    name: str = "barbara_240", data_home: str | Path | None = None
) -> np.ndarray:
    """A grayscale picture from ``images/<name>.png``, values in [0, 1].

    Parameters
    ----------
    name : str, default="barbara_240"
        Name of the file without its extension.
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    ndarray of shape (n_rows, n_cols)

    See Also
    --------
    load_photo : A photo that needs no file.
    load_mask : Masks for these pictures.
    """
    return _picture(_file(f"images/{name}.png", data_home)) / 255


def load_mask(name: str = "texture", data_home: str | Path | None = None) -> np.ndarray:
    """Observed cells (True) from ``images/masks/<name>_mask_240.png``.

    Parameters
    ----------
    name : str, default="texture"
        Name of the mask.
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    bool ndarray of shape (240, 240)

    See Also
    --------
    load_image : Pictures for these masks.
    """
    return _picture(_file(f"images/masks/{name}_mask_240.png", data_home)) > 127


def load_syn_netflix(data_home: str | Path | None = None) -> Bunch:
    """Synthetic ratings with graphs, from ``graph/syn_netflix.npz``.

    The result has ``data`` (150 x 200), ``observed``, ``train`` and ``test`` (bool),
    ``row_graph`` and ``col_graph`` (adjacency matrices without self-loops).

    Parameters
    ----------
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    sklearn.utils.Bunch

    See Also
    --------
    load_movielens : Real ratings.
    """
    file = _arrays("graph/syn_netflix.npz", data_home)
    return Bunch(
        data=file.M,
        observed=file.O.astype(bool),
        train=file.Otraining.astype(bool),
        test=file.Otest.astype(bool),
        row_graph=file.Wrow * (1 - np.eye(len(file.Wrow))),
        col_graph=file.Wcol * (1 - np.eye(len(file.Wcol))),
    )


def load_drug_target(
    name: str = "ion_channel", data_home: str | Path | None = None
) -> Bunch:
    """Drug-target interactions, from ``drug_target/dti_<name>.npz``.

    Parameters
    ----------
    name : {"ion_channel", "gpcr", "nuclear_receptor"}
    data_home : path, optional
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    Bunch
        ``data`` (drugs x targets, 0/1), ``row_graph`` and ``col_graph`` (symmetrized
        similarities), ``drug_ids``, ``target_ids``.

    See Also
    --------
    load_expression : Gene expression.
    """
    file = _arrays(f"drug_target/dti_{name}.npz", data_home)
    return Bunch(
        data=file.adjacency.astype(float),
        row_graph=(file.drug_similarity + file.drug_similarity.T) / 2,
        col_graph=(file.target_similarity + file.target_similarity.T) / 2,
        drug_ids=file.drug_ids,
        target_ids=file.target_ids,
    )


def load_movielens(size: str = "100k", data_home: str | Path | None = None) -> Bunch:
    """Ratings, from ``ratings/movielens_<size>.npz``.

    Parameters
    ----------
    size : {"100k", "1m"}
    data_home : path, optional
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    Bunch
        ``entries`` (`Entries` of users x films, in the order of the file), ``splits``
        (name -> bool array, True at the test ratings), and for "100k" the 0/1 sparse
        ``row_graph`` and ``col_graph`` if ``graph/movielens_100k_graphs.npz`` exists,
        and ``genres`` (films x 19, 0/1) if ``ratings/u.item`` exists, the file of this
        name in the archive of MovieLens-100K.

    See Also
    --------
    load_flixster : Ratings with graphs of users and films.
    """
    file = _arrays(f"ratings/movielens_{size}.npz", data_home)
    entries = Entries.from_triplets(
        file.user.astype(int) - 1, file.item.astype(int) - 1, file.rating.astype(float)
    )
    splits = {}
    for key in file:
        if key.endswith("_test_index"):
            test = np.zeros(len(entries), bool)
            test[file[key]] = True
            splits[key.removesuffix("_test_index")] = test
    if "pmf_test" in file:
        splits["pmf"] = file.pmf_test.astype(bool)
    bunch = Bunch(entries=entries, splits=splits)
    graphs = "graph/movielens_100k_graphs.npz"
    if size == "100k" and (_folder(data_home) / graphs).is_file():
        arrays = _arrays(graphs, data_home)
        bunch.row_graph = _graph(arrays, "W_users", arrays.n_users)
        bunch.col_graph = _graph(arrays, "W_movies", arrays.n_items)
    items = _folder(data_home) / "ratings" / "u.item"
    if size == "100k" and items.is_file():
        lines = items.read_text(encoding="latin-1").splitlines()
        bunch.genres = np.array([line.split("|")[-19:] for line in lines], float)
    return bunch


def load_flixster(data_home: str | Path | None = None) -> Bunch:
    """Ratings from 0.5 to 5, from ``ratings/flixster_monti3000.npz``.

    The result has ``entries`` (3000 x 3000), ``test`` (bool), and the sparse
    ``row_graph`` and ``col_graph``.

    Parameters
    ----------
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    sklearn.utils.Bunch

    See Also
    --------
    load_movielens : Ratings of MovieLens.
    """
    file = _arrays("ratings/flixster_monti3000.npz", data_home)
    shape = tuple(int(n) for n in file["shape"])
    entries = Entries.from_triplets(
        file.row.astype(int), file.col.astype(int), file.rating.astype(float), shape
    )
    return Bunch(
        entries=entries,
        test=file.is_test.astype(bool),
        row_graph=_graph(file, "W_users", shape[0]),
        col_graph=_graph(file, "W_movies", shape[1]),
    )


def _graph(file: Bunch, key: str, n: int) -> sp.csr_array:
    """0/1 adjacency matrix with edges from ``<key>_row`` to ``<key>_col``."""
    rows, cols = file[f"{key}_row"].astype(int), file[f"{key}_col"].astype(int)
    return sp.csr_array((np.ones(len(rows)), (rows, cols)), shape=(int(n), int(n)))


def load_table(name: str = "concrete", data_home: str | Path | None = None) -> Bunch:
    """A table of numbers, from ``tabular/<name>.npz``.

    The result has ``data`` (NaN where missing), ``feature_names``, and ``target`` if
    the file has labels. Otherwise the target is the last column of ``data``.

    Parameters
    ----------
    name : str, default="concrete"
        Name of the file without its extension.
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    sklearn.utils.Bunch

    See Also
    --------
    sklearn.datasets.load_wine : A table that needs no file.
    """
    file = _arrays(f"tabular/{name}.npz", data_home)
    bunch = Bunch(
        data=file.X.astype(float), feature_names=[str(c) for c in file.columns]
    )
    if "label" in file:
        bunch.target = file.label
    return bunch


def load_expression(
    name: str = "yeast_spellman1998", data_home: str | Path | None = None
) -> Bunch:
    """Gene expression (log ratios, NaN where missing), ``gene_expression/<name>.npz``.

    The result has ``data`` (genes x samples), and the other arrays of the file under
    their own names.

    Parameters
    ----------
    name : str, default="yeast_spellman1998"
        Name of the file without its extension.
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    sklearn.utils.Bunch

    See Also
    --------
    load_drug_target : Drug-target interactions.
    """
    file = _arrays(f"gene_expression/{name}.npz", data_home)
    rest = {key: file[key] for key in file if key != "X"}
    return Bunch(data=file.X.astype(float), **rest)


def load_mnist_digits(data_home: str | Path | None = None) -> Bunch:
    """The first 100 MNIST digits, from ``digits/mnist_train_first100.npz``.

    The result has ``images`` (100 x 28 x 28, in [0, 1]) and ``target``.

    Parameters
    ----------
    data_home : path-like or None, default=None
        Folder of the evaluation files. None means ``SKMC_DATA``, then
        ``~/skmc_data``.

    Returns
    -------
    sklearn.utils.Bunch

    See Also
    --------
    load_image : Photographs.
    """
    file = _arrays("digits/mnist_train_first100.npz", data_home)
    return Bunch(images=file.images / 255, target=file.labels)
