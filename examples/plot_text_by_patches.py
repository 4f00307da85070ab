"""
Do neighboring pixels or similar rows reveal more of what a text covers?
========================================================================

Words are written over a small photograph. `PatchCNNCompleter` learns to predict a pixel
from the pixels around it. `AIRCompleter` learns which rows and which columns are
similar.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import AIRCompleter, PatchCNNCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import psnr

# %%
# The photograph is reduced to half its size to save time.
photo = load_photo("flower")[:212].reshape(106, 2, 160, 2).mean((1, 3), np.float32)
hidden = patterns.text(photo, "what was here before the words", height=0.125)
X = np.ma.masked_array(photo, hidden)

figure, axes = plt.subplots(2, 3, figsize=(13, 6.2), layout="constrained")
first, *others = axes.T
pictures = {first[0]: (f"{hidden.mean():.0%} hidden", X.filled(1.0))}
pictures[first[1]] = "truth", photo
for (above, below), completer in zip(
    others,
    (PatchCNNCompleter(random_state=0), AIRCompleter(random_state=0)),
    strict=True,
):
    name = type(completer).__name__.removesuffix("Completer")
    start = time.perf_counter()
    completed = completer.fit_transform(X)
    seconds = time.perf_counter() - start
    title = f"{name}: {psnr(completed, photo):.1f} dB"
    print(f"{title} in {seconds:.1f} s")
    pictures[above] = title, completed
    wrong = below.imshow(abs(completed - photo), cmap="magma", vmin=0, vmax=0.3)
    below.set_title(f"{name}: |error|")
    below.set_axis_off()
for axis, (title, picture) in pictures.items():
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_axis_off()
figure.colorbar(wrong, ax=axes, shrink=0.6, label="|error|")
target = Path(sys.argv[0] or "patches.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
