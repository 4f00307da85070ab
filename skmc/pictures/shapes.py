"""Conversion of pictures to matrices and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from skmc.cells import Container, is_path, pixels


def as_matrix(picture: ArrayLike, mask: ArrayLike | None = None) -> np.ma.MaskedArray:
    """Convert a picture to the matrix that completers take.

    Parameters
    ----------
    picture : array-like or tensor of shape (height, width) or (height, width, channels)
        Real numbers. NaN and masked pixels of a masked array are missing.
    mask : array-like of shape (height, width) or that of ``picture``, optional
        Nonzero where a pixel, or a channel of it, is also missing.

    Returns
    -------
    masked array of shape (height, width * channels)
        Floats; single precision if ``picture`` is in half or single precision or has 8
        or 16 bits. A row holds its pixels in order, with the channels of a pixel next
        to each other.

    Raises
    ------
    ValueError
        The shapes do not fit, ``mask`` has more than two values, or a channel has no
        observed pixel.
    TypeError
        ``picture`` or ``mask`` is a path.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import pictures
    >>> pictures.as_matrix(np.zeros((20, 30, 3)), np.eye(20, 30)).shape
    (20, 90)
    """
    for name, given in (("picture", picture), ("mask", mask)):
        if is_path(given):
            raise TypeError(
                f"{name} is the path {str(given)!r}; read the file first, for example "
                "with numpy.asarray(PIL.Image.open(path))."
            )
    picture, mask = on_host(picture), on_host(mask)
    values = np.ma.getdata(picture)
    if values.ndim not in (2, 3) or not values.size:
        raise ValueError(
            f"picture has shape {values.shape}; it must be (height, width) or (height, "
            "width, channels), and not empty."
        )
    if values.dtype.kind not in "buif":
        raise ValueError(f"picture has dtype {values.dtype}; it must be real numbers.")
    small = values.dtype.itemsize <= (4 if values.dtype.kind == "f" else 2)
    cells = values.reshape(*values.shape[:2], -1).astype(
        np.float32 if small else np.float64
    )
    masked = np.ma.getmaskarray(np.ma.asarray(picture))
    missing = np.isnan(cells) | masked.reshape(cells.shape)
    if mask is not None:
        missing = missing | _missing(mask, values.shape)
    unseen = np.flatnonzero(missing.all((0, 1)))
    if len(unseen):
        where = f"channel {unseen[0]} of picture" if cells.shape[2] > 1 else "picture"
        raise ValueError(f"{where} has no observed pixel; at least one is needed.")
    return np.ma.masked_array(
        cells.reshape(len(cells), -1), missing.reshape(len(cells), -1)
    )


def as_picture(matrix: Container, channels: int = 1) -> np.ndarray:
    """Convert a matrix back to a picture, the inverse of `as_matrix`.

    Parameters
    ----------
    matrix : array-like of shape (height, width * channels)
        Completed matrix.
    channels : int, default=1
        Channels per pixel.

    Returns
    -------
    ndarray of shape (height, width, channels)

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import pictures
    >>> picture = np.arange(24.0).reshape(2, 4, 3)
    >>> (pictures.as_picture(pictures.as_matrix(picture), 3) == picture).all()
    np.True_
    """
    return pixels(np.asarray(matrix), channels)


def on_host(picture: object) -> Any:
    """Convert a tensor to an array; return any other object.

    Parameters
    ----------
    picture : array-like or tensor
        Picture on any device.

    Returns
    -------
    array-like
    """
    if isinstance(picture, torch.Tensor):
        return picture.detach().cpu().numpy()
    return picture


def _missing(mask: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """A mask of shape (height, width, 1 or channels), True where a pixel is missing."""
    marks = np.ma.filled(mask, 1)
    if marks.shape not in (shape, shape[:2]):
        raise ValueError(
            f"mask has shape {marks.shape}; it must have that of picture, {shape}, or "
            f"{shape[:2]}."
        )
    if marks.dtype != bool:
        values = np.unique(marks)
        if len(values) > 2 or np.isnan(values.astype(float)).any():
            raise ValueError(
                f"mask has {len(values)} different values between {values[0]} and "
                f"{values[-1]}; a mask has two. If pixels above a threshold are "
                f"missing, pass mask > {(values[0] / 2 + values[-1] / 2):g}."
            )
    return marks.reshape(*shape[:2], -1) != 0
