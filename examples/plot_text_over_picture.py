"""
What does AIR learn while it takes the writing off a picture?
=============================================================

Words are written over a photograph. AIR completes it and learns, at the same time,
which rows and which columns resemble each other.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import AIRCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import nmae
from skmc.plot import draw_similarities, draw_spectra

photo = load_photo("flower").astype(np.float32)
hidden = patterns.text(photo, "what was here before the words", height=0.1)
X = np.ma.masked_array(photo, hidden)
air = AIRCompleter(random_state=0)
completed = air.fit_transform(X)
print(f"{hidden.mean():.0%} hidden, NMAE {nmae(completed, photo, hidden):.4f}")

# %%
# Rows and columns next to each other are alike: the dark diagonals. What is left of the
# similarities at the end of a fit is what the picture bears out.
figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
for axis, (title, picture) in zip(
    axes[0],
    {"observed": X.filled(1.0), "completed": completed, "truth": photo}.items(),
    strict=True,
):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_axis_off()
for axis, (name, L) in zip(axes[1], air.laplacians_.items(), strict=False):
    draw_similarities(L, axis)
    axis.set_title(f"similar {name}")
draw_spectra({"completed": air.reconstruction_, "truth": photo}, axes[1, 2])
target = Path(sys.argv[0] or "text.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
