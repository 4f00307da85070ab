"""PNG, JPEG and TIFF pictures."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skmc._command.failure import CommandError, UsageError
from skmc._command.file import File
from skmc._command.raster import (
    JPEG,
    Raster,
    check_format,
    pillow,
    read_raster,
    write_raster,
)

if TYPE_CHECKING:
    from skmc.base import BaseCompleter

# JPEG blurs: largest difference of a marked pixel from the color of the mark, of 255.
JPEG_TOLERANCE = 48
# JPEG stores colors of blocks of two by two pixels.
JPEG_GROWTH_IN_PIXELS = 2
LARGE = 2**20  # pixels; time and memory of larger pictures are estimated first


class PictureFile(File):
    """Pixels, some of which a mask, a color or transparency marks as missing.

    Colors are completed by `skmc.pictures.complete`. Completed transparent pixels
    become opaque.
    """

    options = ("mask", "missing_color", "invert_mask", "mask_threshold", "tolerance")
    method = "nonlocal"
    unit = "pixels"
    one_unit = True
    matrix_of = " Values are means of the channels, between 0 and 1."

    def __init__(self, path: str, options: Namespace):
        super().__init__(path, options)
        self.raster = read_raster(path)
        self.missing = self._missing(options) | np.isnan(self.raster.colors).any(2)
        if self.missing.all():
            raise CommandError(f"{path} has no observed pixel; at least one is needed")

    @property
    def n_cells(self) -> int:
        return self.missing.size

    def estimate(self, completer: BaseCompleter) -> str | None:
        """Estimate time and memory of a large picture, by a fit to a small part."""
        if self.missing.size <= LARGE or not self.missing.any():
            return None
        from skmc import pictures

        estimate = pictures.estimate(self.raster.colors, self.missing, completer)
        hours, minutes = divmod(math.ceil(estimate.seconds / 60), 60)
        took = f"{hours} h {minutes} min" if hours else f"{minutes} min"
        blocks = "1 block" if estimate.n_fits == 1 else f"{estimate.n_fits} blocks"
        return (
            f"{self.path} has {_size(self.missing)} pixels: about {took} and "
            f"{estimate.memory / 2**30:.1f} GiB of memory, in {blocks}"
        )

    def complete(self, completer: BaseCompleter) -> int:
        """Fill the missing pixels and count them."""
        if not self.missing.any():
            raise UsageError(
                f"nothing marks a pixel of {self.path} as missing: pass --mask FILE or "
                "--missing-color COLOR, or make such pixels transparent"
            )
        from skmc import pictures

        colors = pictures.complete(
            self.raster.colors, self.missing, completer, on_fit=self.on_fit
        )
        self.raster.pixels = self.raster.pixels.copy()
        self.raster.colors[:] = colors
        if self.raster.alpha:
            self.raster.pixels[self.missing, -1] = self.raster.largest
        return int(self.missing.sum())

    def matrix(self) -> np.ndarray:
        """The mean of the channels."""
        gray = self.raster.colors.mean(2, dtype=np.float32) / self.raster.largest
        return np.ma.masked_array(gray, self.missing)

    def check_target(self, path: str) -> None:
        """Check that the target's format can hold the picture; warn if it is lossy."""
        lost = check_format(self.raster, self.path, path)
        if lost:
            self.warn(lost)
        if not path.lower().endswith(JPEG):
            return
        opacity = self.raster.pixels[~self.missing, -1]
        if self.raster.alpha and (opacity < self.raster.largest).any():
            raise UsageError(f"{path}: JPEG has no transparency; write PNG")
        self.warn(
            f"{path}: JPEG is lossy, so observed pixels change a little, too; write "
            "PNG to keep them"
        )

    def write(self, path: Path) -> None:
        suffix = Path(path.name.removesuffix(".part")).suffix.lower()
        write_raster(self.raster, path, suffix)

    def _missing(self, options: Namespace) -> np.ndarray:
        if options.mask is not None:
            black = options.invert_mask
            missing = self._masked(options.mask, black, options.mask_threshold)
            if missing.mean() > 0.5:
                without = "without" if black else "with"
                self.warn(
                    f"{options.mask} marks {missing.mean():.0%} of {self.path} as "
                    f"missing, its {'black' if black else 'white'} pixels; {without} "
                    "--invert-mask it is the others"
                )
            return missing
        if options.missing_color is not None:
            return self._near(options.missing_color, options.tolerance)
        pixels = self.raster.pixels
        if self.raster.alpha:
            return pixels[:, :, -1] == 0
        return np.zeros(pixels.shape[:2], bool)

    def _masked(self, path: str, black: bool, threshold: int | None) -> np.ndarray:
        """Pixels that are opaque and white, or black, in a mask."""
        mask, pixels = read_raster(path), self.raster.pixels
        gray = mask.colors.mean(2)
        if gray.shape != pixels.shape[:2]:
            raise CommandError(
                f"{path} is {_size(gray)} pixels, {self.path} is "
                f"{_size(pixels)}; they must have the same size"
            )
        missing = _above(path, mask, gray, threshold) != black
        if mask.alpha:
            missing &= _above(path, mask, mask.pixels[:, :, -1], threshold)
        if not missing.any():
            raise CommandError(
                f"{path} has no opaque {'black' if black else 'white'} pixel; its "
                f"values are {gray.min():g} to {gray.max():g} of {mask.largest:g}"
            )
        return missing

    def _near(self, color: str, tolerance: int | None) -> np.ndarray:
        """Mask of pixels whose channels are all near those of a color."""
        try:
            rgb = pillow("ImageColor").getrgb(color)[:3]
        except ValueError as error:
            raise UsageError(f"--missing-color {color}: unknown color") from error
        jpeg = self.path.lower().endswith(JPEG)
        if jpeg:
            self.warn(
                f"{self.path}: JPEG blurs colors, so pixels within "
                f"{JPEG_GROWTH_IN_PIXELS} pixels of marked ones count as missing, and "
                "some may be overlooked; a mask is safer"
            )
        if tolerance is None:
            tolerance = JPEG_TOLERANCE if jpeg else 0
        # A gray channel is compared with all three channels.
        away = np.abs(self.raster.colors * (255 / self.raster.largest) - rgb)
        missing = (away <= tolerance).all(2)
        if not missing.any():
            raise CommandError(
                f"{self.path} has no pixel within {tolerance} of 255 of the color "
                f"{color}; see --tolerance"
            )
        if jpeg:
            from scipy.ndimage import binary_dilation

            missing = binary_dilation(
                missing, np.ones((3, 3)), iterations=JPEG_GROWTH_IN_PIXELS
            )
        return missing


def _above(
    path: str, mask: Raster, values: np.ndarray, threshold: int | None
) -> np.ndarray:
    """Mask above a threshold, without which it must have two values."""
    levels = np.unique(values)
    if threshold is None and len(levels) > 2:
        raise CommandError(
            f"{path} is not black and white: it has {len(levels)} gray levels, from "
            f"{levels[0]:g} to {levels[-1]:g} of {mask.largest:g}. For a mask with "
            "soft edges, pass --mask-threshold 127, which counts brighter pixels as "
            "white"
        )
    share = 0.5 if threshold is None else threshold / 255
    return values > share * mask.largest


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]} x {array.shape[0]}"
