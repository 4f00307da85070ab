"""Digits with half of their pixels missing."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skmc import AutoencoderCompleter, SVDCompleter, patterns
from skmc.metrics import nmae

truth = load_digits().data[:800]
hidden = patterns.random(truth, 0.5, random_state=0)
X = np.ma.masked_array(truth, hidden)
fits = {
    "SVD": SVDCompleter(device="cpu", random_state=0),
    "AEMC": AutoencoderCompleter(max_iter=200, device="cpu", random_state=0),
}
shown = {"truth": truth, "observed": X}
for name, completer in fits.items():
    completed = completer.fit_transform(X)
    shown[f"{name}\n{nmae(completed, truth, hidden):.3f}"] = completed
greys = plt.get_cmap("Greys").with_extremes(bad="tab:orange")
figure, axes = plt.subplots(4, 10, figsize=(9, 4))
for row, (name, rows) in zip(axes, shown.items(), strict=True):
    for axis, digit in zip(row, rows, strict=False):
        axis.imshow(digit.reshape(8, 8), cmap=greys, vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
