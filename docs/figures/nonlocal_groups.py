"""A texture with missing pixels, completed by groups of similar patches."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import NonlocalCompleter, SVDCompleter, patterns
from skmc.metrics import nmae

row, col = np.mgrid[0:64, 0:64]
truth = np.sign(np.sin(row / 3 + col / 7) * np.sin(col / 2 - row / 9))
hidden = patterns.random(truth, 0.5, random_state=0)
X = np.ma.masked_array(truth, hidden)
panels = {"observed": X}
for name, completer in {
    "SVD": SVDCompleter(random_state=0, device="cpu"),
    "groups of patches": NonlocalCompleter(random_state=0, device="cpu"),
}.items():
    completed = completer.fit_transform(X)
    panels[f"{name}: NMAE {nmae(completed, truth, hidden):.3f}"] = completed
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
for axis, (title, picture) in zip(axes, panels.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=-1, vmax=1)
    axis.set(title=title, xticks=[], yticks=[])
