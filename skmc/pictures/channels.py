"""Conversion of pictures to matrices and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from skmc.cells import Container, is_path, pixels


def as_matrix(
    picture: ArrayLike,  # (height, width)
    mask: ArrayLike | None = None,  # (height, width)
) -> np.ma.MaskedArray:  # (height, width * channels)
    """Convert a picture to the matrix that completers take."""
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


def as_picture(
    matrix: Container,  # (height, width * channels)
    channels: int = 1,
) -> np.ndarray:  # (height, width, channels)
    """Convert a matrix back to a picture, the inverse of `as_matrix`."""
    return pixels(np.asarray(matrix), channels)


def on_host(picture: object) -> Any:
    """Convert a tensor to an array; return any other object."""
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
