"""Upright pixels of PNG, JPEG and TIFF files, and their metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skmc._command.failure import CommandError, UsageError, optional

JPEG = (".jpg", ".jpeg")
TIFF = (".tif", ".tiff")
MODES = ("L", "LA", "RGB", "RGBA", "I;16", "F")
KEPT = ("icc_profile", "exif", "dpi")
ORIENTATION = 0x0112  # a tag of EXIF
# Tags of TIFF for the storage of pixels, not for their content.
LAYOUT = {
    *(254, 255, 256, 257, 258, 259, 262, 266, 273, ORIENTATION, 277, 278, 279),
    *(282, 283, 284, 296, 317, 320, 322, 323, 324, 325, 338, 339, 347, 34675),
    *(530, 531, 532),
}
# Options of Pillow for the formats that need some.
SAVED: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "TIFF": {"compression": "tiff_deflate"},
}


@dataclass
class Raster:
    """The pixels of a picture.

    Parameters
    ----------
    pixels : uint8, uint16 or float ndarray of shape (height, width, n_channels)
        Gray or red, green and blue, then opacity if there is an alpha channel.
    alpha : bool
        Whether the last channel is opacity.
    info : dict
        Metadata "icc_profile", "exif" and "dpi", if the file has them.
    """

    pixels: np.ndarray
    alpha: bool
    info: dict[str, Any]

    @property
    def largest(self) -> float:
        """Value of white; 1 for floats."""
        is_integer = self.pixels.dtype.kind == "u"
        return np.iinfo(self.pixels.dtype).max if is_integer else 1.0

    @property
    def colors(self) -> np.ndarray:
        """All channels except opacity."""
        return self.pixels[:, :, : self.pixels.shape[2] - self.alpha]

    @property
    def deep(self) -> bool:
        """Whether Pillow cannot hold the pixels."""
        shallow = self.pixels.dtype == np.uint8
        deep_gray = self.pixels.dtype in (np.uint16, np.float32)
        return not (shallow or (deep_gray and self.pixels.shape[2] == 1))


def read_raster(path: str) -> Raster:
    """Read a picture; Pillow reads what it supports, and the metadata of all others."""
    image = pillow("Image")
    try:
        with image.open(path) as file:
            if getattr(file, "n_frames", 1) > 1 and file.format == "TIFF":
                raise CommandError(
                    f"{path} has {file.n_frames} pages; save the one to complete as a "
                    "file of its own"
                )
            layout = "".join(str(tile.args) for tile in file.tile[:1])
            deep = "16" in layout and not file.mode.startswith("I")
            exif = file.getexif()
            turn = exif.get(ORIENTATION)  # loading a TIFF turns it
            picture = pillow("ImageOps").exif_transpose(file)
            info = {key: picture.info[key] for key in KEPT if picture.info.get(key)}
            for tag in LAYOUT.intersection(exif):
                del exif[tag]
            if len(exif):
                info["exif"] = exif
            if deep:
                return _deep(path, file.format, turn, info)
            picture = _in_known_mode(path, picture)
    except image.UnidentifiedImageError as error:
        if Path(path).suffix.lower() not in TIFF:
            raise CommandError(f"{path} is not a picture") from error
        return _deep(path, "TIFF", None, {})
    except (OSError, SyntaxError) as error:  # Pillow raises these for broken files
        if getattr(error, "strerror", None):
            raise
        raise CommandError(f"{path} cannot be read: {error}") from error
    pixels = np.atleast_3d(picture)
    return Raster(pixels, picture.mode in ("LA", "RGBA"), info)


def write_raster(raster: Raster, path: Path, suffix: str) -> None:
    """Write a picture in the format of a suffix, which `check_format` has accepted."""
    pixels, info = raster.pixels, raster.info
    if suffix in JPEG and raster.alpha:
        pixels = raster.colors
    pixels = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    if not raster.deep:
        image = pillow("Image")
        kind = image.registered_extensions()[suffix]
        image.fromarray(pixels).save(path, kind, **SAVED.get(kind, {}), **info)
    elif suffix in TIFF:
        optional("tifffile", "a TIFF picture", "tifffile").imwrite(
            path,
            pixels,
            photometric="rgb" if raster.colors.shape[2] == 3 else "minisblack",
            extrasamples=["unassalpha"] if raster.alpha else None,
            planarconfig="contig",
            compression="zlib",
            iccprofile=info.get("icc_profile"),
            metadata=None,
        )
    else:
        path.write_bytes(_codecs().png_encode(pixels))


def check_format(raster: Raster, source: str, path: str) -> str | None:
    """Check that a format can hold the pixels; return the parts that it loses."""
    suffix = Path(path).suffix.lower()
    kind = raster.pixels.dtype
    if suffix in JPEG and kind != np.uint8:
        raise UsageError(
            f"{path}: JPEG has 8 bits, {source} has {8 * kind.itemsize}; write PNG or "
            "TIFF"
        )
    if suffix == ".bmp" and (kind != np.uint8 or raster.alpha):
        what = "transparency" if raster.alpha else f"{8 * kind.itemsize} bits"
        raise UsageError(f"{path}: BMP has no {what}, {source} has; write PNG")
    if suffix not in TIFF and kind.kind == "f":
        raise UsageError(f"{path}: PNG has no floats, {source} has; write TIFF")
    lost = set()
    if raster.deep:
        lost = {*raster.info} - ({"icc_profile"} if suffix in TIFF else set())
    if not lost:
        return None
    return f"{path}: what {source} says besides is not written: {', '.join(lost)}"


def pillow(module: str) -> Any:
    """Import a module of Pillow."""
    return optional(f"PIL.{module}", "a picture", "Pillow")


def _codecs() -> Any:
    return optional("imagecodecs", "a picture of 16 bits in color", "imagecodecs")


def _deep(path: str, kind: str, turn: int | None, info: dict[str, Any]) -> Raster:
    """Read pixels that Pillow does not support."""
    codecs = _codecs()  # tifffile needs it for compressed files
    if kind != "TIFF":
        pixels = codecs.png_decode(Path(path).read_bytes())
        return Raster(_upright(pixels, turn), pixels.shape[-1] in (2, 4), info)
    tifffile = optional("tifffile", "a TIFF picture", "tifffile")
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            pixels, axes, alpha = page.asarray(), page.axes, bool(page.extrasamples)
            usual = page.photometric.name in ("MINISBLACK", "RGB")
    except (tifffile.TiffFileError, ValueError, IndexError) as error:
        raise CommandError(f"{path} is not a picture: {error}") from error
    small = pixels.dtype in (np.uint8, np.uint16) or pixels.dtype.kind == "f"
    if axes not in ("YX", "YXS", "SYX") or not (usual and small):
        raise CommandError(
            f"{path} has pixels of type {pixels.dtype} in the order {axes}; convert it "
            "to gray or RGB, of 8 or 16 bits or floats"
        )
    pixels = np.moveaxis(pixels, 0, -1) if axes == "SYX" else pixels
    return Raster(_upright(pixels, turn), alpha, info)


def _upright(pixels: np.ndarray, turn: int | None) -> np.ndarray:
    """Rotate pixels as EXIF says; shape (height, width, n_channels)."""
    pixels = np.atleast_3d(pixels)
    if turn is None:
        return pixels
    n_rows, n_cols, n_channels = pixels.shape
    places = np.arange(n_rows * n_cols, dtype=np.int32).reshape(n_rows, n_cols)
    picture = pillow("Image").fromarray(places)
    picture.getexif()[ORIENTATION] = turn
    turned = np.asarray(pillow("ImageOps").exif_transpose(picture))
    return pixels.reshape(-1, n_channels)[turned]


def _in_known_mode(path: str, picture: Any) -> Any:
    """Convert a picture of Pillow to one of `MODES`."""
    if picture.mode == "1":
        return picture.convert("L")
    if picture.mode in ("P", "L", "RGB") and picture.has_transparency_data:
        return picture.convert("LA" if picture.mode == "L" else "RGBA")
    if picture.mode == "P":
        return picture.convert("RGB")
    if picture.mode.startswith("I;16"):
        return picture.convert("I;16")
    if picture.mode not in MODES:
        raise CommandError(
            f"{path} has colors of mode {picture.mode}; convert it to gray or RGB"
        )
    return picture
