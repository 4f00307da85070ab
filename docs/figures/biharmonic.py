"""Scratches through a shaded disk and through stripes, filled smoothly."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import BiharmonicCompleter
from skmc.metrics import nmae

row, col = np.mgrid[0:64, 0:128]
disk = np.clip(28 - np.hypot(row - 32, col - 32), 0, 1) * (0.3 + col / 90)
stripes = 0.5 + 0.5 * np.sin(row / 1.5 + col / 2.5)
truth = np.where(col < 64, disk, stripes)
hidden = abs(row - 15 - col / 4) < 2.5
completed = BiharmonicCompleter().fit_transform(np.ma.masked_array(truth, hidden))
error = nmae(completed, truth, hidden)
panels = {
    "observed": np.where(hidden, np.nan, truth),
    f"biharmonic: NMAE {error:.3f}": completed,
    "truth": truth,
}
figure, axes = plt.subplots(1, 3, figsize=(9.5, 2), layout="constrained")
for axis, (title, picture) in zip(axes, panels.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set(title=title, xticks=[], yticks=[], facecolor="tab:red")
