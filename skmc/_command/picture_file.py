"""PNG and JPEG pictures."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skmc._command.failure import CommandError, UsageError, optional
from skmc._command.file import File

if TYPE_CHECKING:
    from skmc.base import BaseCompleter

MODES = ("L", "LA", "RGB", "RGBA", "I;16")
JPEG = (".jpg", ".jpeg")
# JPEG blurs: how far a pixel marked by a color may be from it, of 255.
JPEG_TOLERANCE = 48
# JPEG stores colors of blocks of two by two pixels.
JPEG_GROWTH_IN_PIXELS = 2
LARGE = 2**20  # pixels, for which time and memory are estimated first


class PictureFile(File):
    """Pixels, some of which a mask, a color or transparency marks as missing.

    Colors are completed by `skmc.pictures.complete`. Completed transparent pixels
    become opaque.
    """

    options = ("mask", "missing_color", "invert_mask", "mask_threshold", "tolerance")
    method = "nonlocal"
    unit = "pixels"
    matrix_of = " Values are means of the channels, between 0 and 1."

    def __init__(self, path: str, options: Namespace):
        super().__init__(path, options)
        picture = _opened(path)
        self.info = {
            key: picture.info[key] for key in ("icc_profile",) if key in picture.info
        }
        exif = picture.getexif()
        if len(exif):
            self.info["exif"] = exif
        pixels = np.asarray(picture)
        self.pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        self.mode = picture.mode
        self.alpha = self.mode in ("LA", "RGBA")
        self.n_channels = self.pixels.shape[2] - self.alpha
        self.missing = self._missing(options)
        if self.missing.all():
            raise CommandError(f"{path} has no observed pixel; at least one is needed")

    @property
    def largest(self) -> int:
        return int(np.iinfo(self.pixels.dtype).max)

    @property
    def n_cells(self) -> int:
        return self.missing.size

    def estimate(self, completer: BaseCompleter) -> str | None:
        """Say what a large picture will take, by a fit to a small part of it."""
        if self.missing.size <= LARGE or not self.missing.any():
            return None
        from skmc import pictures

        found = pictures.estimate(self._colors, self.missing, completer)
        hours, minutes = divmod(math.ceil(found.seconds / 60), 60)
        took = f"{hours} h {minutes} min" if hours else f"{minutes} min"
        blocks = "1 block" if found.n_fits == 1 else f"{found.n_fits} blocks"
        return (
            f"{self.path} has {_size(self.pixels)} pixels: about {took} and "
            f"{found.memory / 2**30:.1f} GiB of memory, in {blocks}"
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
            self._colors, self.missing, completer, on_fit=self.on_fit
        )
        pixels = self.pixels.copy()
        pixels[:, :, : self.n_channels] = colors
        if self.alpha:
            pixels[self.missing, -1] = self.largest
        self.pixels = pixels
        return int(self.missing.sum())

    def matrix(self) -> np.ndarray:
        """The mean of the channels."""
        gray = self._colors.mean(2, dtype=np.float32) / self.largest
        return np.ma.masked_array(gray, self.missing)

    def check_target(self, path: str) -> None:
        """Check that the target's format can hold the picture; warn if it is lossy."""
        if not path.lower().endswith(JPEG):
            return
        if self.mode == "I;16":
            raise UsageError(f"{path}: JPEG has 8 bits, {self.path} has 16; write PNG")
        if self.alpha and (self.pixels[~self.missing, -1] < self.largest).any():
            raise UsageError(f"{path}: JPEG has no transparency; write PNG")
        self.warn(
            f"{path}: JPEG is lossy, so observed pixels change a little, too; write "
            "PNG to keep them"
        )

    def write(self, path: Path) -> None:
        jpeg = Path(path.name.removesuffix(".part")).suffix.lower() in JPEG
        pixels = self.pixels
        if jpeg and self.alpha:
            pixels = pixels[:, :, :-1]
        pixels = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
        picture = _pillow("Image").fromarray(pixels)
        best = {"quality": 95, "subsampling": 0} if jpeg else {}
        picture.save(path, "JPEG" if jpeg else "PNG", **best, **self.info)

    @property
    def _colors(self) -> np.ndarray:
        """The channels but alpha."""
        return self.pixels[:, :, : self.n_channels]

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
        if self.alpha:
            return self.pixels[:, :, -1] == 0
        return np.zeros(self.pixels.shape[:2], bool)

    def _masked(self, path: str, black: bool, threshold: int | None) -> np.ndarray:
        """Pixels that are opaque and white, or black, in a mask."""
        mask = _opened(path)
        gray = np.asarray(mask if mask.mode == "I;16" else mask.convert("L"))
        if gray.shape != self.pixels.shape[:2]:
            raise CommandError(
                f"{path} is {_size(gray)} pixels, {self.path} is "
                f"{_size(self.pixels)}; they must have the same size"
            )
        largest = np.iinfo(gray.dtype).max
        missing = _above(path, gray, threshold) != black
        if mask.mode in ("LA", "RGBA"):
            missing &= _above(path, np.asarray(mask.getchannel("A")), threshold)
        if not missing.any():
            raise CommandError(
                f"{path} has no opaque {'black' if black else 'white'} pixel; its "
                f"values are {gray.min()} to {gray.max()} of {largest}"
            )
        return missing

    def _near(self, color: str, tolerance: int | None) -> np.ndarray:
        """Pixels whose channels are all near those of a color."""
        try:
            rgb = _pillow("ImageColor").getrgb(color)[:3]
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
        pixels = self.pixels[:, :, : self.n_channels].astype(float)
        away = np.abs(
            pixels * (255 / self.largest) - rgb
        )  # a gray channel is compared with all three
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


def _above(path: str, values: np.ndarray, threshold: int | None) -> np.ndarray:
    """Where a mask is above a threshold, without which it must have two values."""
    largest = np.iinfo(values.dtype).max
    found = np.unique(values)
    if threshold is None and len(found) > 2:
        raise CommandError(
            f"{path} has {len(found)} different values between {found[0]} and "
            f"{found[-1]} of {largest}, and a mask has two; if it is a mask with soft "
            "edges, pass --mask-threshold 127, which counts brighter pixels as white"
        )
    level = largest // 2 if threshold is None else threshold * (largest // 255)
    return values > level


def _pillow(module: str) -> Any:
    return optional(f"PIL.{module}", "a picture", "Pillow")


def _opened(path: str) -> Any:
    """Open a picture upright and in one of `MODES`."""
    image = _pillow("Image")
    try:
        with image.open(path) as file:
            layout = "".join(str(tile.args) for tile in file.tile[:1])
            if "16" in layout and not file.mode.startswith("I"):
                raise CommandError(
                    f"{path} has several channels of 16 bits, of which Pillow reads 8; "
                    "convert it to 8 bits or to gray"
                )
            file.load()
            picture = _pillow("ImageOps").exif_transpose(file)
    except image.UnidentifiedImageError as error:
        raise CommandError(f"{path} is not a picture") from error
    except (OSError, SyntaxError) as error:  # Pillow raises these for broken files
        if getattr(error, "strerror", None):
            raise
        raise CommandError(f"{path} cannot be read: {error}") from error
    if picture.mode == "1":
        return picture.convert("L")
    if picture.mode in ("P", "L", "RGB") and picture.has_transparency_data:
        return picture.convert("LA" if picture.mode == "L" else "RGBA")
    if picture.mode == "P":
        return picture.convert("RGB")
    if picture.mode.startswith("I;16"):
        return picture.convert("I;16") if picture.mode != "I;16" else picture
    if picture.mode not in MODES:
        raise CommandError(
            f"{path} has colors of mode {picture.mode}; convert it to gray or RGB"
        )
    return picture


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]} x {array.shape[0]}"
