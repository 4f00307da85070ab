"""Pictures in color and in gray: our completers, scikit-image, OpenCV, published PSNR.

Color: the 192 x 192 pixels in the middle of pictures that scikit-image and scikit-learn
ship. Gray: pictures of `SKMC_DATA`. Nothing is chosen by the hidden pixels.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.shared.problems import FIRST_SEED
from benchmarks.shared.results import Results
from skmc import (
    AIRCompleter,
    BiharmonicCompleter,
    NonlocalCompleter,
    PatchCNNCompleter,
    patterns,
    pictures,
)
from skmc.datasets import load_image, load_mask
from skmc.metrics import nmae

SIDE = 192
COLOR = ("astronaut", "coffee", "chelsea", "flower", "china")
MASKS = ("random 50 %", "random 80 %", "text", "scratches")
GRAY = ("house_256", "peppers_256", "boat_256", "cameraman_240", "barbara_512")
RATES = ("random 50 %", "random 80 %")
COMPLETERS = {
    "Nonlocal": lambda: NonlocalCompleter(random_state=0),
    "AIR": lambda: AIRCompleter(scaling="global", random_state=0),
    "PatchCNN": lambda: PatchCNNCompleter(random_state=0),
    "Biharmonic": BiharmonicCompleter,
}
OPENCV = ("Navier-Stokes", "Telea")
METHODS = ("Nonlocal", "AIR", "Biharmonic", *(f"OpenCV, {name}" for name in OPENCV))
MASKED = (
    "barbara_240",
    "baboon_240",
    "cameraman_240",
    "peppers_256",
    "house_256",
    "boat_256",
    "monarch_256",
)
HOLES = ("random 30 %", "text", "texture", "patch")
WORDS = "the quick brown fox jumps over the lazy dog"


def color_picture(name: str) -> np.ndarray:
    """The middle of a picture, uint8 of shape (192, 192, 3)."""
    if name in ("flower", "china"):
        from sklearn.datasets import load_sample_image

        whole = load_sample_image(f"{name}.jpg")
    else:
        from skimage import data

        whole = getattr(data, name)()
    return middle(whole, SIDE)


def mask(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """True where pixels are missing.

    Text is that of `skmc.patterns.text`, an eighth of the height per line. Scratches
    are 16 straight lines of 1 to 3 pixels in width between random points.
    """
    rng = np.random.RandomState(FIRST_SEED)
    if kind.startswith("random"):
        return rng.random_sample(shape) <= int(kind.split()[1]) / 100
    if kind == "text":
        return patterns.text(np.zeros(shape), WORDS, height=0.125)
    image = Image.new("1", shape[::-1])
    draw = ImageDraw.Draw(image)
    for _ in range(16):
        ends = rng.randint(0, shape[::-1], (2, 2))
        draw.line([*map(tuple, ends.tolist())], fill=1, width=rng.randint(1, 4))
    return np.array(image)


def opencv(name: str, picture: np.ndarray, missing: np.ndarray) -> np.ndarray | None:
    """OpenCV's inpainting of a radius of 3 pixels; None if it is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    flags = {"Navier-Stokes": cv2.INPAINT_NS, "Telea": cv2.INPAINT_TELEA}
    return cv2.inpaint(picture, missing.astype(np.uint8), 3, flags[name])


def decibels(found: np.ndarray, truth: np.ndarray, missing: np.ndarray) -> dict:
    """PSNR over the missing pixels and over all pixels; NMAE of gray pictures."""
    squares = np.square(found.astype(float) - truth)
    means = {"psnr": squares[missing].mean(), "psnr_all": squares.mean()}
    scores = {k: round(10 * math.log10(255**2 / v), 3) for k, v in means.items()}
    if truth.ndim == 2:
        scores["nmae"] = round(nmae(found, truth, missing), 5)
    return scores


def middle(picture: np.ndarray, side: int) -> np.ndarray:
    """``side`` x ``side`` pixels."""
    top, left = ((size - side) // 2 for size in picture.shape[:2])
    return picture[top : top + side, left : left + side]


def measure(
    results: Results, key: str, truth: np.ndarray, missing: np.ndarray, methods: tuple
) -> None:
    damaged = np.where(
        missing.reshape(*missing.shape, *[1] * (truth.ndim - 2)), 0, truth
    )
    damaged = damaged.astype(np.uint8)
    for method in methods:
        name = method.removeprefix("OpenCV, ")
        if name in OPENCV:
            fill = partial(opencv, name, damaged, missing)
            if fill() is None:
                continue
        else:
            completer = COMPLETERS[method]()
            fill = partial(pictures.complete, damaged, missing, completer)
        results.measure(
            f"{key}/{method}/0",
            None,
            lambda _, fill=fill: decibels(fill(), truth, missing),
            limit=None,
        )


def run(results: Results, *parts: str) -> None:
    """All parts, or those named: color, gray, masks."""
    if not parts or "color" in parts:
        for name in COLOR:
            truth = color_picture(name)
            for kind in MASKS:
                missing = mask(kind, truth.shape[:2])
                measure(results, f"color/{name}, {kind}", truth, missing, METHODS)
    if not parts or "gray" in parts:
        for name in GRAY:
            truth = np.rint(255 * load_image(name)).astype(np.uint8)
            for kind in RATES:
                missing = mask(kind, truth.shape)
                methods = ("Nonlocal", "Biharmonic")
                measure(results, f"gray/{name}, {kind}", truth, missing, methods)
    if not parts or "masks" in parts:
        for name in MASKED:
            truth = middle(np.rint(255 * load_image(name)).astype(np.uint8), 240)
            for kind in HOLES:
                shared = not kind.startswith("random")
                missing = ~load_mask(kind) if shared else mask(kind, truth.shape)
                measure(
                    results, f"masks/{name}, {kind}", truth, missing, (*COMPLETERS,)
                )
