"""Matrices whose rows hold pixels of several channels."""

from __future__ import annotations

import numpy as np


def pixels(cells: np.ndarray, channels: int) -> np.ndarray:
    """View a matrix as a picture.

    Parameters
    ----------
    cells : ndarray of shape (height, width * channels)
        Pixels of each row in order, with the channels of a pixel next to each other.
    channels : int
        Channels per pixel.

    Returns
    -------
    ndarray of shape (height, width, channels)

    Raises
    ------
    ValueError
        The number of columns is not a multiple of the number of channels.
    """
    if cells.shape[1] % channels:
        raise ValueError(
            f"X has {cells.shape[1]} columns, which are not pixels of "
            f"channels={channels}; reshape a picture to (height, width * channels), or "
            "leave channels=1."
        )
    return cells.reshape(len(cells), -1, channels)
