"""Blocks of a picture, and a representative crop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

SIDE = 512  # default side of a block
MARGIN = 32  # pixels around a block that its fit uses
# A block has at least this share of the observed pixels that it would have with an
# even distribution; otherwise its margin grows.
LEAST_SHARE = 0.1
CROP_SIDE = 96
Region = tuple[slice, ...]  # slices of rows and of columns


def blocks(
    missing: np.ndarray,  # (height, width, channels)
    side: int = SIDE,
) -> Iterator[tuple[Region, Region]]:
    """Parts of a picture that have missing pixels, without and with their margins."""
    least = LEAST_SHARE * observed(missing)
    for inner in product(*(_parts(size, side) for size in missing.shape[:2])):
        if not missing[inner].any():
            continue
        margin = MARGIN
        outer = _extended(inner, margin, missing)
        while (observed(missing[outer]) < least).any():
            margin *= 2
            outer = _extended(inner, margin, missing)
        yield inner, outer


def crop(
    missing: np.ndarray,  # (height, width, channels)
    wanted: np.ndarray | None = None,  # (channels,)
) -> Region:
    """Choose a part of at most 96 x 96 pixels with a similar share of observed ones."""
    aim = observed(missing) if wanted is None else wanted

    def unlike(part: Region) -> float:
        share = observed(missing[part])
        return float(np.abs(share - aim).max()) if share.all() else math.inf

    sides = (_parts(size, CROP_SIDE) for size in missing.shape[:2])
    best = min(product(*sides), key=unlike)
    return best if unlike(best) < math.inf else (slice(None), slice(None))


def _parts(size: int, side: int) -> list[slice]:
    """Divide a length into equal parts of at most ``side``."""
    edges = np.linspace(0, size, -(-size // side) + 1).round().astype(int).tolist()
    return [slice(*ends) for ends in pairwise(edges)]


def _extended(inner: Region, margin: int, missing: np.ndarray) -> Region:
    return tuple(
        slice(max(0, part.start - margin), min(size, part.stop + margin))
        for part, size in zip(inner, missing.shape, strict=False)
    )


def observed(
    missing: np.ndarray,  # (height, width, channels)
) -> np.ndarray:  # (channels,)
    """Share of observed pixels in each channel."""
    return 1 - missing.mean((0, 1))
