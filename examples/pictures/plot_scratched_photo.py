"""
Restore a scratched photo
=========================

A photo and a mask of its scratches are read from files, and the restored photo is
written to another file. `skmc.pictures.complete` fills the masked pixels with similar
patches of the photo. scikit-image's ``inpaint_biharmonic`` is shown beside it.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage.restoration import inpaint_biharmonic
from sklearn.datasets import load_sample_image

from skmc import pictures
from skmc.metrics import psnr

# %%
# A photo and a mask
# ------------------
# The mask is white where the photo is to be restored: paint it in any program for
# pictures. Here we draw 14 scratches, so that we know the truth. With your own files,
# skip this part.
folder = Path(tempfile.mkdtemp())
truth = load_sample_image("china.jpg")[100:228, 230:422]
rng = np.random.RandomState(0)
row, col = np.mgrid[: truth.shape[0], : truth.shape[1]]
scratches = np.zeros(row.shape, bool)
for _ in range(14):
    angle, middle = np.pi * rng.rand(), rng.rand(2) * row.shape
    away = np.cos(angle) * (row - middle[0]) + np.sin(angle) * (col - middle[1])
    along = np.cos(angle) * (col - middle[1]) - np.sin(angle) * (row - middle[0])
    scratches |= (abs(away) < rng.uniform(1.5, 2.5)) & (abs(along) < 60)
Image.fromarray(np.where(scratches[..., None], np.uint8(255), truth)).save(
    folder / "photo.png"
)
Image.fromarray(scratches).save(folder / "mask.png")

# %%
# From file to file
# -----------------
# The mask is an array of bool that is True where a pixel is missing. The result has the
# shape and the type of the photo, and its other pixels are unchanged.
photo = np.asarray(Image.open(folder / "photo.png"))
mask = np.asarray(Image.open(folder / "mask.png").convert("L")) > 127
start = time.perf_counter()
restored = pictures.complete(photo, mask)
seconds = time.perf_counter() - start
Image.fromarray(restored).save(folder / "restored.png")
print(f"{mask.mean():.0%} of the pixels restored in {seconds:.1f} s")

# %%
# Beside scikit-image
# -------------------
# ``inpaint_biharmonic`` bends a smooth surface over each hole. It is faster, and it
# blurs edges and texture. `BiharmonicCompleter` gives the same answer. The PSNR counts
# the missing pixels only; higher is better.
smooth = inpaint_biharmonic(photo / 255, mask, channel_axis=-1)
found = {"photo": photo / 255, "inpaint_biharmonic": smooth, "skmc": restored / 255}
print({name: round(psnr(p[mask], truth[mask] / 255), 1) for name, p in found.items()})

# %%
# Side by side
# ------------
# The lower row enlarges a part of the upper one.
found["truth"] = truth / 255
figure, axes = plt.subplots(2, 4, figsize=(12.8, 4.6), layout="constrained")
for (above, below), (title, picture) in zip(axes.T, found.items(), strict=True):
    quality = psnr(picture[mask], truth[mask] / 255)
    above.imshow(picture)
    below.imshow(picture[64:112, 20:92])
    above.set_title(f"{title}: {quality:.1f} dB" if quality < 99 else title)
    above.set_axis_off()
    below.set_axis_off()
if plt.get_backend().lower() == "agg":  # without a screen
    figure.savefig(folder / "comparison.png")
    print(f"The picture is in {folder / 'comparison.png'}")
else:
    plt.show()
