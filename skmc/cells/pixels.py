"""Matrices whose rows hold pixels of several channels."""

from __future__ import annotations

import numpy as np


def pixels(
    cells: np.ndarray,  # (height, width * channels)
    channels: int,
) -> np.ndarray:  # (height, width, channels)
    """View a matrix as a picture."""
    if cells.shape[1] % channels:
        raise ValueError(
            f"X has {cells.shape[1]} columns, which are not pixels of "
            f"channels={channels}; reshape a picture to (height, width * channels), or "
            "leave channels=1."
        )
    return cells.reshape(len(cells), -1, channels)
