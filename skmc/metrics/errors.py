"""Errors of a completion on a set of cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container, in_order_of, to_cells


def read(
    X: Container,  # (n_rows, n_cols)
    M: Container,  # (n_rows, n_cols)
    cells: ArrayLike | None,  # (n_rows, n_cols)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the arguments of a metric."""
    X, cells = (in_order_of(x, M, n, "M") for x, n in ((X, "X"), (cells, "cells")))
    X, M = np.asarray(to_cells(X), float), np.asarray(to_cells(M, name="M"), float)
    cells = np.ones(M.shape, bool) if cells is None else np.asarray(cells)
    if cells.dtype != bool:
        raise TypeError(f"cells must be boolean, got dtype {cells.dtype}.")
    if M.ndim == 3 and cells.shape == M.shape[:2]:  # pixels of a picture
        cells = np.broadcast_to(cells[:, :, None], M.shape)
    if not X.shape == M.shape == cells.shape:
        raise ValueError(
            f"X, M and cells must share a shape, got {X.shape}, {M.shape} and "
            f"{cells.shape}."
        )
    return X, M, cells


def compared(
    X: Container, M: Container, cells: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Select the cells to compare."""
    values, truth, chosen = read(X, M, cells)
    seen = ~np.isnan(truth)
    chosen = chosen & seen
    if not chosen.any():
        raise ValueError(
            "cells selects no cell that is known in M; nothing to compare."
        )
    if np.isnan(values[chosen]).any():
        raise ValueError("X is missing at a compared cell; complete it first.")
    return values[chosen], truth[chosen], truth[seen]


def nmae(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """Normalized mean absolute error, ``mean |X - M| / (max M - min M)``.

    The mean is over ``cells``, the range over all known values of ``M``. If ``M`` is
    constant, the range is replaced by 1.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare. None means all cells that are known in ``M``.

    Returns
    -------
    float

    See Also
    --------
    mae : In units of the data.
    relative_error : Squared errors relative to the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.metrics import nmae
    >>> nmae([[1.0, 3.0]], [[0.0, 4.0]], np.array([[True, False]]))
    0.25
    """
    x, m, every = compared(X, M, cells)
    spread = every.max() - every.min()
    return float(np.abs(x - m).mean() / (spread if spread > 0 else 1.0))


def mae(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """Mean absolute error, in units of the data.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare. None means all cells that are known in ``M``.

    Returns
    -------
    float

    See Also
    --------
    nmae : Divided by the range.
    rmse : Weighs large errors more.
    """
    x, m, _ = compared(X, M, cells)
    return float(np.abs(x - m).mean())


def rmse(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """Root mean squared error, in units of the data.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare. None means all cells that are known in ``M``.

    Returns
    -------
    float

    See Also
    --------
    mae : Weighs all errors equally.
    relative_error : Relative to the matrix.
    """
    x, m, _ = compared(X, M, cells)
    return float(np.sqrt(np.square(x - m).mean()))


def relative_error(X: Container, M: Container, cells: ArrayLike | None = None) -> float:
    """``|X - M|_F / |M|_F`` over the cells; its square is the share of energy lost.

    The error is infinite if ``M`` is zero on the cells and ``X`` is not.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare. None means all cells that are known in ``M``.

    Returns
    -------
    float

    See Also
    --------
    nmae : Absolute errors relative to the range.
    """
    x, m, _ = compared(X, M, cells)
    error, norm = np.linalg.norm(x - m), np.linalg.norm(m)
    if norm == 0:
        return 0.0 if error == 0 else np.inf
    return float(error / norm)


def psnr(
    X: Container,
    M: Container,
    cells: ArrayLike | None = None,
    *,
    peak: float | None = None,
) -> float:
    """Peak signal-to-noise ratio ``10 log10(peak^2 / mean (X - M)^2)`` in dB.

    By convention the mean is over the whole picture, observed cells included. The ratio
    is infinite for equal pictures.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The completion.
    M : container of shape (n_rows, n_cols)
        The truth.
    cells : bool array of shape (n_rows, n_cols) or None, default=None
        The cells to compare, or the pixels of a picture with channels. None means
        all cells that are known in ``M``.
    peak : float > 0 or None, default=None
        Largest possible value. None is that of the type of ``M`` for integers of 8
        and 16 bits (255 or 65535), as in `skimage.metrics`, and otherwise the largest
        known value of ``M``.

    Returns
    -------
    float

    See Also
    --------
    ssim : Compares structure as people see it.
    rmse : In units of the data.
    """
    x, m, every = compared(X, M, cells)
    if peak is None:
        dtype = getattr(M, "dtype", None)
        of_type = dtype in (np.uint8, np.int8, np.uint16, np.int16)
        peak = float(np.iinfo(dtype).max if of_type else every.max())
    error = np.square(x - m).mean()
    return np.inf if error == 0 else float(10 * np.log10(peak**2 / error))


def ssim(X: Container, M: Container, *, channel_axis: int | None = None) -> float:
    """Structural similarity of two pictures (`skimage.metrics`), in [-1, 1].

    The ``data_range`` of `skimage.metrics` is ``max M - min M``.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols), or array with channels
        The completion.
    M : container of shape (n_rows, n_cols), or array with channels
        The truth.
    channel_axis : int or None, default=None
        Axis of the channels of a color picture.

    Returns
    -------
    float

    Raises
    ------
    ImportError
        scikit-image is not installed (``pip install skmc[plot]``).

    See Also
    --------
    psnr : The error of single pixels.
    """
    try:
        from skimage.metrics import structural_similarity
    except ImportError as error:
        raise ImportError(
            "metrics.ssim needs scikit-image: pip install 'skmc[plot]'."
        ) from error
    X = in_order_of(X, M, "X", "M")
    X, M = np.asarray(to_cells(X), float), np.asarray(to_cells(M, name="M"), float)
    if np.isnan(X).any() or np.isnan(M).any():
        raise ValueError("ssim compares whole pictures; X or M has missing cells.")
    spread = (M.max() - M.min()) or 1.0
    similarity = structural_similarity(
        M, X, data_range=spread, channel_axis=channel_axis
    )
    return float(similarity)
