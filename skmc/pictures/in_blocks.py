"""Completion of pictures, in blocks."""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skmc import completers
from skmc.base import BaseCompleter, refuse_parameters
from skmc.completers import NonlocalCompleter, title_of
from skmc.pictures.blocks import SIDE, blocks, crop, observed
from skmc.pictures.channels import as_matrix, as_picture, on_host
from skmc.pictures.ways import Way, choose_way

# Parameters of the completer, which would concern its matrices.
OF_PICTURES = {
    "missing_values": "pass mask=picture == value",
    "add_indicator": "leave it out",
    "keep_observed": "pictures keep their observed pixels, so leave it out",
    "keep_empty_features": "leave it out",
    **dict.fromkeys(("min_value", "max_value"), "clip the completed picture"),
    **dict.fromkeys(("lower_limit", "upper_limit"), "leave it out"),
}
# Measured peaks of `NonlocalCompleter`, with 1 and 3 channels at 256 x 256 and 512 x
# 512, half of the pixels missing.
BYTES, BYTES_PER_PIXEL, BYTES_PER_CELL = 64 * 2**20, 660, 520


def complete(
    picture: ArrayLike,
    mask: ArrayLike | None = None,
    completer: BaseCompleter | str | None = None,
    *,
    block: int = SIDE,
    on_fit: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """Complete the missing pixels of a picture, a cube or a video.

    A completer with a parameter ``channels`` (`NonlocalCompleter`,
    `BiharmonicCompleter`) completes all channels together. Any other one completes
    matrices of one channel each: those of the picture, or decorrelated ones (the
    principal components of the observed colors), whichever has the lower error on a
    held-out tenth of the observed pixels of a crop of 96 x 96. If the channels of a
    pixel are not always missing together, the channels are those of the picture.

    A cube or a video has its bands or frames as channels. `NonlocalCompleter` treats
    its pixels as combinations of a few spectra, if that has the lower error on held-out
    cells, see its ``n_spectra``.

    Pictures larger than a block are completed in blocks. Each has a margin of
    32 pixels around it, so that a fit's memory does not grow with the picture.
    The margin grows if a block has less than a tenth of the picture's share of
    observed pixels. Blocks without a missing pixel are skipped.

    Parameters
    ----------
    picture : array-like of shape (height, width) or (height, width, channels)
        Picture, as in `as_matrix`. An alpha channel is completed like any other; leave
        it out if it marks missing pixels.
    mask : array-like of shape (height, width) or that of ``picture``, optional
        Mask, as in `as_matrix`: nonzero where a pixel is missing.
    completer : completer or str, optional
        Completer, which is cloned. A name, such as "biharmonic", is one of the command
        ``skmc methods``. The default is ``NonlocalCompleter(random_state=0)``.
    block : int >= 1, default=512
        Side of a block, in pixels.
    on_fit : callable, optional
        Function that is called after each fit with the number of fits done and of all
        fits.

    Returns
    -------
    ndarray of the shape and dtype of ``picture``
        Completed picture. Observed pixels are unchanged. Integers are rounded and stay
        within the range of their dtype, and floats within that of the observed pixels.

    Raises
    ------
    ValueError
        As in `as_matrix`; or ``block`` is not a whole number of at least 1; or there is
        no ``mask``, and no pixel is missing.

    See Also
    --------
    estimate : Estimates the time before you start.
    skmc.NonlocalCompleter : The default method.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import BiharmonicCompleter, pictures
    >>> shade = np.linspace(0, 250, 20).astype(np.uint8)
    >>> picture = np.stack([np.add.outer(shade // 2, shade // 2)] * 3, axis=2)
    >>> mask = np.zeros((20, 20), bool)
    >>> mask[8] = True  # a scratch
    >>> damaged = np.where(mask[..., None], np.uint8(0), picture)
    >>> completed = pictures.complete(damaged, mask, BiharmonicCompleter())
    >>> int(np.abs(completed.astype(int) - picture).max()) <= 3
    True
    """
    matrix, values = as_matrix(picture, mask), np.ma.getdata(on_host(picture))
    if not (isinstance(block, Integral) and block >= 1):
        raise ValueError(f"block must be an int >= 1, got {block!r}.")
    if not matrix.mask.any():
        if mask is None:
            raise ValueError(
                "picture has no missing pixel; pass mask, which is nonzero where a "
                "pixel is missing, or set such pixels to NaN."
            )
        return values.copy()
    cells, missing, way = _prepared(matrix, values, completer)
    filled, pairs = cells.copy(), list(blocks(missing, block))
    for done, (inner, outer) in enumerate(pairs):
        answer = way(cells[outer])
        inside = tuple(
            slice(part.start - all_.start, part.stop - all_.start)
            for part, all_ in zip(inner, outer, strict=True)
        )
        filled[inner] = answer[inside]
        if on_fit:
            on_fit(done + 1, len(pairs))
    # A completer may leave a column without an observed pixel empty.
    filled = np.where(np.isnan(filled), np.nanmean(cells), filled)
    if values.dtype.kind in "iu":
        limits = np.iinfo(values.dtype)
        filled = np.rint(filled).clip(limits.min, limits.max)
    elif values.dtype == bool:
        filled = filled > 0.5
    else:
        filled = filled.clip(np.nanmin(cells), np.nanmax(cells))
    completed = values.reshape(missing.shape).copy()
    completed[missing] = filled[missing]
    return completed.reshape(values.shape)


@dataclass(frozen=True)
class Estimate:
    """Time and memory that `complete` will take.

    Parameters
    ----------
    n_fits : int
        Number of blocks.
    seconds : float
        Time of a crop of 96 x 96 pixels, times the ratio of the pixels of all blocks.
    memory : int
        Bytes in addition to those of the process; measured for `NonlocalCompleter`.

    See Also
    --------
    estimate : Makes it.
    """

    n_fits: int
    seconds: float
    memory: int


def estimate(
    picture: ArrayLike,
    mask: ArrayLike | None = None,
    completer: BaseCompleter | str | None = None,
    *,
    block: int = SIDE,
) -> Estimate:
    """Estimate time and memory of `complete`, by two fits to a crop of 96 x 96 pixels.

    The share of missing pixels in the crop is about that of the blocks with missing
    ones. The time is right for completers whose time is linear in the number of pixels,
    such as `NonlocalCompleter`, and a lower bound for others.

    Parameters
    ----------
    picture, mask, completer, block : objects
        Arguments of `complete`.

    Returns
    -------
    Estimate

    See Also
    --------
    complete : Completes the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import BiharmonicCompleter, pictures
    >>> scratched = np.zeros((600, 600))
    >>> scratched[300] = np.nan
    >>> pictures.estimate(scratched, completer=BiharmonicCompleter()).n_fits
    2
    """
    matrix, values = as_matrix(picture, mask), np.ma.getdata(on_host(picture))
    if not matrix.mask.any():
        return Estimate(0, 0.0, 0)
    cells, missing, way = _prepared(matrix, values, completer)
    outer = [region for _, region in blocks(missing, block)]
    sizes = [math.prod(side.stop - side.start for side in region) for region in outer]
    shares = [observed(missing[region]) for region in outer]
    sample = cells[crop(missing, np.average(shares, axis=0, weights=sizes))]
    # The first fit loads libraries.
    pace = min(timeit.repeat(partial(way, sample), repeat=2, number=1))
    pace /= math.prod(sample.shape[:2])
    per_pixel = BYTES_PER_PIXEL + BYTES_PER_CELL * cells.shape[2]
    return Estimate(
        n_fits=len(sizes),
        seconds=pace * sum(sizes),
        memory=BYTES + per_pixel * max(sizes) + 4 * cells.nbytes,
    )


def _prepared(
    matrix: np.ma.MaskedArray, values: np.ndarray, completer: BaseCompleter | str | None
) -> tuple[np.ndarray, np.ndarray, Way]:
    """Cells (NaN where missing), mask of missing pixels, and function to complete."""
    channels = values.shape[2] if values.ndim == 3 else 1
    cells = as_picture(matrix.filled(np.nan), channels)
    chosen: Any = completer
    if completer is None:
        chosen = NonlocalCompleter(random_state=0)
    elif isinstance(completer, str):
        chosen = getattr(completers, title_of(completer))()
    refuse_parameters(chosen, "pictures.complete", OF_PICTURES)
    return cells, np.isnan(cells), choose_way(chosen, cells)
