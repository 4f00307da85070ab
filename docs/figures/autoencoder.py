"""A curve in many columns."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import AutoencoderCompleter, SVDCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
angle = np.sort(rng.uniform(-2.5, 2.5, 500))
phase = rng.uniform(0, 6, 40)
rate = rng.uniform(0.5, 4, 40)
truth = np.sin(rate * angle[:, None] + phase)
hidden = patterns.random(truth, 0.5, random_state=0)
X = np.ma.masked_array(truth + 0.05 * rng.randn(*truth.shape), hidden)
fits = {
    "SVD": SVDCompleter(device="cpu", random_state=0),
    "AEMC": AutoencoderCompleter(max_iter=200, device="cpu", random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True)
at = hidden[:, :2].any(axis=1)
for axis, (name, completer) in zip(axes, fits.items(), strict=True):
    completed = completer.fit_transform(X)
    error = relative_error(completed, truth, hidden)
    axis.plot(truth[:, 0], truth[:, 1], color="0.7", lw=4)
    axis.plot(completed[at, 0], completed[at, 1], ".", ms=4)
    axis.set(title=f"{name}: error of hidden cells {error:.0%}", xlabel="column 0")
axes[0].set_ylabel("column 1")
