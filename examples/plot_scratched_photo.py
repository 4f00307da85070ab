"""
How are scratches removed from a color photograph?
==================================================

A scratched color photograph is completed as one picture: `NonlocalCompleter` finds
similar patches on all channels. A smooth surface (`BiharmonicCompleter`, scikit-image's
inpainting) is shown beside it.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from skmc import BiharmonicCompleter, NonlocalCompleter, pictures
from skmc.metrics import psnr

# %%
# The damaged photograph
# ----------------------
# 14 scratches of 3 to 5 pixels in width. The mask is True where a pixel is missing.
photo = load_sample_image("china.jpg")[100:228, 230:422]
rng = np.random.RandomState(0)
row, col = np.mgrid[: photo.shape[0], : photo.shape[1]]
mask = np.zeros(row.shape, bool)
for _ in range(14):
    angle, middle = np.pi * rng.rand(), rng.rand(2) * row.shape
    away = np.cos(angle) * (row - middle[0]) + np.sin(angle) * (col - middle[1])
    along = np.cos(angle) * (col - middle[1]) - np.sin(angle) * (row - middle[0])
    mask |= (abs(away) < rng.uniform(1.5, 2.5)) & (abs(along) < 60)
damaged = np.where(mask[..., None], np.uint8(255), photo)

# %%
# Two ways to complete it
# -----------------------
# `skmc.pictures.complete` keeps the shape and the type of the picture.
hidden = np.dstack([mask] * 3)
found = {f"{mask.mean():.0%} missing": damaged}
for completer in (BiharmonicCompleter(), NonlocalCompleter(random_state=0)):
    start = time.perf_counter()
    completed = pictures.complete(damaged, mask, completer)
    seconds = time.perf_counter() - start
    name = type(completer).__name__.removesuffix("Completer")
    quality = psnr(completed[hidden] / 255, photo[hidden] / 255)
    print(f"{name}: {quality:.1f} dB on the missing pixels, in {seconds:.1f} s")
    found[f"{name}: {quality:.1f} dB"] = completed
found["truth"] = photo

# %%
# Side by side
# ------------
# The lower row enlarges a part of the upper one.
figure, axes = plt.subplots(2, 4, figsize=(12.8, 4.6), layout="constrained")
for (above, below), (title, picture) in zip(axes.T, found.items(), strict=True):
    above.imshow(picture)
    above.set_title(title)
    below.imshow(picture[64:112, 20:92])
    above.set_axis_off()
    below.set_axis_off()
target = Path(sys.argv[0] or "scratched.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
