"""Holes in pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container
from skmc.patterns._observed import observed_in


def patch(
    X: Container,
    boxes: Iterable[Sequence[int]] = ((70, 100, 150, 190), (200, 230, 200, 230)),
) -> np.ndarray:
    """Rectangles, given as ``(row_start, row_stop, col_start, col_stop)``.

    The default is the "patch" mask of the AIR paper, for 240 x 240.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    boxes : sequence of four int each
        The rectangles to hide.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    texture : Cells where another picture is dark.
    text : Words over the matrix.
    """
    observed = observed_in(X)
    hidden = np.zeros(observed.shape, bool)
    for top, bottom, left, right in boxes:
        if not (
            0 <= top < bottom <= observed.shape[0]
            and 0 <= left < right <= observed.shape[1]
        ):
            raise ValueError(
                f"box {(top, bottom, left, right)} does not lie in a matrix of shape "
                f"{observed.shape}; give (row_start, row_stop, col_start, col_stop)."
            )
        hidden[top:bottom, left:right] = True
    return hidden & observed


def texture(X: Container, mask_image: ArrayLike) -> np.ndarray:
    """Cells where a picture of the same shape is dark, below half of its range.

    Parameters
    ----------
    X : container of shape (n_rows, n_cols)
        The matrix. Cells that are already missing are not hidden.
    mask_image : array of shape (n_rows, n_cols)
        The picture.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    See Also
    --------
    patch : Rectangles.
    text : Words over the matrix.
    """
    observed, picture = observed_in(X), np.asarray(mask_image)
    if picture.shape != observed.shape:
        raise ValueError(
            f"mask_image has shape {picture.shape}, X has {observed.shape}; resize it."
        )
    middle = (float(picture.min()) + float(picture.max())) / 2
    return (picture < middle) & observed


def text(
    X: Container, words: str = "lorem ipsum", *, height: float = 0.1
) -> np.ndarray:
    """Words written over the matrix, line after line.

    Parameters
    ----------
    X : matrix of any container
        The matrix. Cells that are already missing are not hidden.
    words : str
        Text, repeated to fill each line.
    height : float in (0, 1]
        Height of a line as a share of the number of rows.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)

    Raises
    ------
    ImportError
        Pillow is not installed (``pip install skmc[plot]``).

    See Also
    --------
    patch : Rectangles.
    texture : Cells where another picture is dark.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(
            "patterns.text needs Pillow: pip install 'skmc[plot]'."
        ) from error
    observed = observed_in(X)
    if not 0 < height <= 1:
        raise ValueError(f"height must lie in (0, 1], got {height}.")
    n_rows, n_cols = observed.shape
    line = max(8, round(height * n_rows))
    picture = Image.new("L", (n_cols, n_rows))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=0.8 * line)
    row = (words + " ") * (1 + n_cols // max(1, len(words)))
    for start in range(0, n_rows, line):
        draw.text((0, start), row, fill=255, font=font)
    return (np.asarray(picture) > 127) & observed
