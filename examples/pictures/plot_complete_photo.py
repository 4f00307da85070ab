"""
Compare inpainting methods on a photo
=====================================

A third of a gray photo is missing: 30 % of its pixels at random, and two rectangles.
Five methods complete it with their default parameters.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from skmc import (
    AIRCompleter,
    BiharmonicCompleter,
    DMFCompleter,
    NonlocalCompleter,
    SVDCompleter,
    patterns,
)
from skmc.datasets import load_photo
from skmc.metrics import psnr

# %%
# The damaged photo
# -----------------
# A gray picture is a matrix. In the mask of a masked array, True means missing.
photo = load_photo("china").astype(np.float32)
missing = patterns.random(photo, 0.3, random_state=0)
missing |= patterns.patch(photo, [(60, 90, 60, 100), (150, 175, 200, 235)])
damaged = np.ma.masked_array(photo, missing)

# %%
# Five methods
# ------------
# Similar patches and a smooth surface are for pictures. AIR, DMF and the singular value
# decomposition are for matrices of any kind, whose rows depend on each other. The PSNR
# counts the missing pixels only; higher is better.
completers = {
    "similar patches": NonlocalCompleter(random_state=0),
    "smooth surface": BiharmonicCompleter(),
    "AIR": AIRCompleter(scaling="global", random_state=0),
    "DMF": DMFCompleter(random_state=0),
    "SVD": SVDCompleter(scaling="global", random_state=0),
}
shown = {"truth": photo, "observed": damaged}
for name, completer in completers.items():
    start = time.perf_counter()
    completed = completer.fit_transform(damaged)
    seconds = time.perf_counter() - start
    quality = psnr(completed[missing], photo[missing])
    print(f"{name:>15}: {quality:.1f} dB in {seconds:.1f} s")
    shown[f"{name}: {quality:.1f} dB"] = completed

# %%
# Side by side
# ------------
figure, axes = plt.subplots(2, 4, figsize=(14, 5.2), layout="constrained")
for axis, (title, picture) in zip(axes.flat, shown.items(), strict=False):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
for axis in axes.flat:
    axis.set_axis_off()
plt.show()
