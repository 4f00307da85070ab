"""Pictures: our completers, scikit-image, OpenCV and public programs of papers.

``color``: the 192 x 192 pixels in the middle of pictures that scikit-image and
scikit-learn ship. ``gray``: pictures of `SKMC_DATA`, beside the published PSNR of the
deep image prior. ``masks``: holes of four kinds in seven gray pictures. ``few pixels``:
three color pictures, of which 10, 20 or 30 % are observed, also completed by the public
code of LRTFR (https://github.com/YisiLuo/LRTFR) and of RepTRFD
(https://github.com/YangyangXu2002/RepTRFD). ``SKMC_PEERS`` is a folder with checkouts
of both; their scripts run as they are, on the CPU, with the parameters that they have
for color pictures. Nothing is chosen by the hidden pixels.
"""

from __future__ import annotations

import importlib
import math
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import torch
from common import Results, folder_of, run
from PIL import Image, ImageDraw
from problems import FIRST_SEED
from scipy.io import savemat

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

# Deep image prior (Ulyanov, Vedaldi, Lempitsky, CVPR 2018), Table 1: PSNR with half of
# the pixels missing, of convolutional sparse coding (Papyan et al. 2017) and of theirs.
# Papers have Boat in 512 x 512, which is easier, and the cameraman in 256 x 256.
DIP_TABLE1 = {
    "barbara_512": (28.14, 32.22),
    "boat_256": (31.44, 33.06),
    "house_256": (34.58, 39.16),
    "peppers_256": (31.11, 33.05),
    "cameraman_240": (27.90, 29.80),
}


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


def opencv(name: str, picture: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """OpenCV's inpainting of a radius of 3 pixels."""
    import cv2

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


def score(truth: np.ndarray, missing: np.ndarray, method: str) -> dict[str, float]:
    holes = missing.reshape(*missing.shape, *[1] * (truth.ndim - 2))
    damaged = np.where(holes, 0, truth).astype(np.uint8)
    if method.startswith("OpenCV"):
        found = opencv(method.removeprefix("OpenCV, "), damaged, missing)
    else:
        found = pictures.complete(damaged, missing, COMPLETERS[method]())
    return decibels(found, truth, missing)


def color(results: Results) -> None:
    for name in COLOR:
        truth = color_picture(name)
        for kind in MASKS:
            missing = mask(kind, truth.shape[:2])
            for method in METHODS:
                key = ("color", name, kind, method)
                results.measure(key, score, truth, missing, method, limit=None)


def gray(results: Results) -> None:
    for name in GRAY:
        truth = np.rint(255 * load_image(name)).astype(np.uint8)
        for kind in RATES:
            missing = mask(kind, truth.shape)
            for method in ("Nonlocal", "Biharmonic"):
                key = ("gray", name, kind, method)
                results.measure(key, score, truth, missing, method, limit=None)
        printed = dict(zip(("CSC", "DIP"), DIP_TABLE1[name], strict=True))
        results.published("gray", name, RATES[0], "psnr_all", printed)


def masks(results: Results) -> None:
    for name in MASKED:
        truth = middle(np.rint(255 * load_image(name)).astype(np.uint8), 240)
        for kind in HOLES:
            shared = not kind.startswith("random")
            missing = ~load_mask(kind) if shared else mask(kind, truth.shape)
            for method in COMPLETERS:
                key = ("masks", name, kind, method)
                results.measure(key, score, truth, missing, method, limit=None)


# ------------------------------------------------------------------------ few pixels

REDUCED = 256
# A pixel is missing in all channels or in each of them by itself.
CHANNELS = {"whole pixels": 1, "single channels": 3}
SHARES = {"whole pixels": (10, 20, 30), "single channels": (20,)}
PICTURES = ("airplane", "rocket", "motorcycle")
Complete = Callable[[np.ndarray, np.ndarray], np.ndarray]


def peers() -> Path:
    return folder_of("SKMC_PEERS", "a folder with LRTFR and RepTRFD")


def picture(name: str) -> np.ndarray:
    """A square from the middle of a picture, reduced to 256 x 256."""
    if name == "airplane":
        whole = np.asarray(Image.open(peers() / "RepTRFD" / "data" / "airplane.tiff"))
    else:
        data = importlib.import_module("skimage.data")
        whole = data.rocket() if name == "rocket" else data.stereo_motorcycle()[0]
    side = min(whole.shape[:2])
    top, left = ((size - side) // 2 for size in whole.shape[:2])
    square = Image.fromarray(whole[top : top + side, left : left + side])
    return np.asarray(square.resize((REDUCED, REDUCED), Image.Resampling.BOX))


def missing_channels(kind: str, share: int) -> np.ndarray:
    """True where a channel of a pixel is missing."""
    draws = np.random.RandomState(FIRST_SEED).random_sample(
        (REDUCED, REDUCED, CHANNELS[kind])
    )
    return np.broadcast_to(draws > share / 100, (REDUCED, REDUCED, 3))


def ours(completer: object) -> Complete:
    def complete(damaged: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        return pictures.complete(damaged, hidden, completer)

    return complete


def lrtfr(damaged: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The script of LRTFR; it takes zeros for missing."""
    source = (peers() / "LRTFR" / "Demo_Image_inpainting.py").read_text()
    source = source.replace("torch.cuda.FloatTensor", "torch.FloatTensor")
    # Figures and the truth are for its reports alone.
    source = source.replace(".cuda()", "").replace("iter % 100 == 0", "False")
    cells = np.where(hidden, 0, np.maximum(damaged, 1)) / 255
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(source)
        Path(folder, "data").mkdir()
        savemat(f"{folder}/data/planep2.mat", {"Nhsi": cells})
        savemat(f"{folder}/data/planegt.mat", {"Ohsi": cells})
        home = os.getcwd()
        os.chdir(folder)
        try:
            torch.manual_seed(0)
            found = runpy.run_path(str(script))["X_Out"]
        finally:
            os.chdir(home)
    return found.detach().numpy()


def reptrfd(
    damaged: np.ndarray, hidden: np.ndarray, **parameters: object
) -> np.ndarray:
    """The script of RepTRFD, by default with its parameters for color pictures."""
    resize = ModuleType("torchvision")  # only to reduce pictures, which are reduced
    resize.transforms = None  # type: ignore[attr-defined]
    sys.modules.setdefault("torchvision", resize)
    sys.path.insert(0, str(peers() / "RepTRFD"))
    demo = importlib.import_module("Demo_inpainting")
    kept: list[torch.Tensor] = []

    def data(**_: object) -> tuple[torch.Tensor, ...]:
        mask = torch.tensor(~hidden, dtype=torch.float32)
        cells = torch.tensor(damaged / 255, dtype=torch.float32) * mask
        return cells, cells, mask

    def keep(found: torch.Tensor, _: torch.Tensor) -> float:
        kept[:] = [found]
        return 0.0

    scores = dict.fromkeys(("psnr", "ssim", "nrmse"), keep)
    replaced = {f"calculate_{name}": score for name, score in scores.items()}
    demo.set_seed(1)
    with patch.multiple(demo, preprocess_inpainting=data, **replaced):
        color = {
            "depths": [1, 1, 2],
            "omega_0": 90,
            "weight_decay": 0.5,
            "gamma2": 5e-5,
        }
        demo.train(
            file_path="picture",
            is_mat=False,
            obs_ratio=float(1 - hidden.mean()),
            ranks=[20, 20, 20],
            expansion=10,
            lr=3e-4,
            gamma1=5e-5,
            **{**color, **parameters},
        )
    return kept[0].numpy()


def bytes_of(complete: Complete) -> Complete:
    """The answer in [0, 1] as bytes; observed cells are kept."""

    def completed(damaged: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        found = np.rint(255 * complete(damaged, hidden).clip(0, 1)).astype(np.uint8)
        return np.where(hidden, found, damaged)

    return completed


WITH_FEW: dict[str, Complete] = {
    "NonlocalCompleter()": ours(NonlocalCompleter(random_state=0)),
    "BiharmonicCompleter(), scikit-image": ours(BiharmonicCompleter()),
    "RepTRFD": bytes_of(reptrfd),
    "LRTFR": bytes_of(lrtfr),
}


def completed(method: str, name: str, kind: str, share: int) -> dict[str, float]:
    truth, hidden = picture(name), missing_channels(kind, share)
    found = WITH_FEW[method](np.where(hidden, 0, truth).astype(np.uint8), hidden)
    return decibels(found, truth, hidden)


def few_pixels(results: Results) -> None:
    for kind, shares in SHARES.items():
        for share in shares:
            for name in PICTURES:
                for method in WITH_FEW:
                    key = ("few pixels", name, f"{kind}, {share} % observed", method)
                    results.measure(
                        key, completed, method, name, kind, share, limit=None
                    )


if __name__ == "__main__":
    run(__doc__, color, gray, masks, few_pixels)
