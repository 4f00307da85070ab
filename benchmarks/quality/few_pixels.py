"""Color pictures of few pixels: ``python -m benchmarks.quality.few_pixels [page]``.

Three pictures, of which 10, 20 or 30 % are observed, completed by ours, by
scikit-image and by the public code of LRTFR (https://github.com/YisiLuo/LRTFR) and of
RepTRFD (https://github.com/YangyangXu2002/RepTRFD). ``SKMC_PEERS`` is a folder with
checkouts of both; their scripts run as they are, on the CPU, with the parameters that
they have for color pictures. It measures what is not in
``docs/reproduction/records/few-pixels.json`` yet and writes ``few-pixels.md``.
"""

from __future__ import annotations

import importlib
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
from PIL import Image
from scipy.io import savemat

from benchmarks.reproduce.pictures import decibels
from benchmarks.shared.pages import best, chart, table, write_page
from benchmarks.shared.problems import FIRST_SEED
from benchmarks.shared.results import Results
from skmc import BiharmonicCompleter, NonlocalCompleter, pictures

SIDE = 256
# A pixel is missing in all channels or in each of them by itself.
CHANNELS = {"whole pixels": 1, "single channels": 3}
SHARES = {"whole pixels": (10, 20, 30), "single channels": (20,)}
TOLD = {
    "whole pixels": "A pixel is missing in all channels or in none.",
    "single channels": "Each channel of a pixel is missing by itself, as in the script "
    "of RepTRFD.",
}
PICTURES = ("airplane", "rocket", "motorcycle")
Complete = Callable[[np.ndarray, np.ndarray], np.ndarray]


def peers() -> Path:
    return Path(os.environ["SKMC_PEERS"])


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
    return np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BOX))


def missing(kind: str, share: int) -> np.ndarray:
    """True where a channel of a pixel is missing."""
    draws = np.random.RandomState(FIRST_SEED).random_sample(
        (SIDE, SIDE, CHANNELS[kind])
    )
    return np.broadcast_to(draws > share / 100, (SIDE, SIDE, 3))


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


def reptrfd(damaged: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The script of RepTRFD, with its parameters for color pictures."""
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
        demo.train(
            file_path="picture",
            is_mat=False,
            obs_ratio=float(1 - hidden.mean()),
            ranks=[20, 20, 20],
            depths=[1, 1, 2],
            expansion=10,
            omega_0=90,
            lr=3e-4,
            weight_decay=0.5,
            gamma1=5e-5,
            gamma2=5e-5,
        )
    return kept[0].numpy()


def bytes_of(complete: Complete) -> Complete:
    """The answer in [0, 1] as bytes; observed cells are kept."""

    def completed(damaged: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        found = np.rint(255 * complete(damaged, hidden).clip(0, 1)).astype(np.uint8)
        return np.where(hidden, found, damaged)

    return completed


METHODS: dict[str, Complete] = {
    "`NonlocalCompleter()`": ours(NonlocalCompleter(random_state=0)),
    "`BiharmonicCompleter()`, scikit-image": ours(BiharmonicCompleter()),
    "RepTRFD": bytes_of(reptrfd),
    "LRTFR": bytes_of(lrtfr),
}


def score(complete: Complete, name: str, kind: str, share: int) -> dict[str, float]:
    truth, hidden = picture(name), missing(kind, share)
    found = complete(np.where(hidden, 0, truth).astype(np.uint8), hidden)
    return decibels(found, truth, hidden)


def run(results: Results, *words: str) -> None:
    """All cases, or those whose key has all of some words."""
    for kind, shares in SHARES.items():
        for share in shares:
            for name in PICTURES:
                for method, complete in METHODS.items():
                    key = f"{kind}/{name}, {share} %/{method}/0"
                    if all(word in key for word in words):
                        results.measure(
                            key,
                            None,
                            lambda _, c=complete, n=name, k=kind, s=share: score(
                                c, n, k, s
                            ),
                            limit=None,
                        )


def cases(results: Results, kind: str) -> list[str]:
    """Cases of a kind that all methods have completed."""
    return [
        case
        for share in SHARES[kind]
        for name in PICTURES
        if all(
            f"{kind}/{(case := f'{name}, {share} %')}/{method}/0" in results.records
            for method in METHODS
        )
    ]


def rows_of(results: Results, kind: str) -> list[list[str]]:
    body = []
    for case in cases(results, kind):
        psnr = [results.values(f"{kind}/{case}/{m}", "psnr")[0] for m in METHODS]
        body.append([case, *best([f"{x:.2f}" for x in psnr], higher=True)])
    return body


def page(results: Results) -> None:
    every = [(kind, case) for kind in SHARES for case in cases(results, kind)]

    def mean(method: str, name: str) -> float:
        keys = [f"{kind}/{case}/{method}" for kind, case in every]
        return float(np.mean([results.values(key, name) for key in keys]))

    psnr = {method: mean(method, "psnr") for method in METHODS}
    seconds = {method: mean(method, "seconds") for method in METHODS}
    own, *others = METHODS
    second = max(others, key=psnr.__getitem__)
    gain = psnr[own] - psnr[second]
    fields = {
        "gain": f"{abs(gain):.1f} dB {'above' if gain > 0 else 'below'}",
        "second": second,
        "times": f"{seconds[second] / seconds[own]:.2g}",
        "chart": chart(
            "few-pixels", "Mean PSNR over missing pixels, dB", psnr, higher=True
        ),
        "seconds": table(["", "seconds"], [[m, f"{seconds[m]:.1f}"] for m in METHODS]),
        "tables": "\n\n".join(
            f"## {kind.capitalize()}\n\n{TOLD[kind]}\n\n{table(['', *METHODS], rows)}"
            for kind in SHARES
            if (rows := rows_of(results, kind))
        ),
    }
    write_page("few-pixels", fields)


if __name__ == "__main__":
    results = Results("few-pixels")
    if sys.argv[1:] != ["page"]:
        run(results, *sys.argv[1:])
    page(results)
