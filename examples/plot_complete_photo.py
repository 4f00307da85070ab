"""
Which method restores a damaged photograph?
===========================================

A third of a photograph is missing: 30 % of its pixels at random, and two patches. Four
methods complete it. None has been tuned; the truth is used only to score them.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.callback import ProgressBar

from skmc import AIRCompleter, DMFCompleter, KNNCompleter, SVDCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import nmae, psnr, ssim

# %%
# The damaged photograph
# ----------------------
# A completer needs only a masked array, in which True means missing.
photo = load_photo("china").astype(np.float32)
hidden = patterns.random(photo, 0.3, random_state=0)
hidden |= patterns.patch(photo, [(60, 90, 60, 100), (150, 175, 200, 235)])
damaged = np.ma.masked_array(photo, hidden)

# %%
# Four completers
# ---------------
completers = [
    AIRCompleter(scaling="global", random_state=0),
    DMFCompleter(random_state=0),
    KNNCompleter(),
    SVDCompleter(random_state=0),
]
pictures = {"observed": damaged.filled(1.0)}
table = Table("method", "NMAE", "PSNR (dB)", "SSIM", "seconds")
for completer in completers:
    name = type(completer).__name__.removesuffix("Completer")
    if hasattr(completer, "set_callbacks"):
        completer.set_callbacks(ProgressBar())
    start = time.perf_counter()
    completed = completer.fit_transform(damaged)
    seconds = time.perf_counter() - start
    pictures[name] = completed
    scores = nmae(completed, photo, hidden), psnr(completed, photo)
    table.add_row(
        name,
        f"{scores[0]:.4f}",
        f"{scores[1]:.2f}",
        f"{ssim(completed, photo):.3f}",
        f"{seconds:.2f}",
    )
Console().print(table)

# %%
# Side by side
# ------------
pictures["truth"] = photo
figure, axes = plt.subplots(2, 3, figsize=(12, 5.8), layout="constrained")
for axis, (name, picture) in zip(axes.flat, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_title(name)
    axis.set_axis_off()
target = Path(sys.argv[0] or "photo.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
