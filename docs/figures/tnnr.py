"""Singular values with and without shrinkage."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SoftImputeCompleter, TNNRCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
truth = rng.randn(60, 4) @ rng.randn(4, 60)
noisy = truth + 0.2 * rng.randn(60, 60)
hidden = patterns.random(truth, 0.6, random_state=0)
X = np.ma.masked_array(noisy, hidden)
fits = {
    "nuclear norm": SoftImputeCompleter(device="cpu", random_state=0),
    "truncated": TNNRCompleter(solver="apgl", device="cpu", random_state=0),
}
figure, axis = plt.subplots(figsize=(6.5, 3.6))
axis.plot(np.arange(1, 11), np.linalg.svd(truth)[1][:10], "k_", ms=14, label="truth")
for marker, (name, completer) in zip("os", fits.items(), strict=True):
    found = completer.fit(X).reconstruction_
    error = relative_error(found, truth, hidden)
    values = np.linalg.svd(found)[1][:10]
    label = f"{name}: error of hidden cells {error:.1%}"
    axis.plot(np.arange(1, 11), values, marker, ms=6, mfc="none", label=label)
axis.set(xlabel="index", ylabel="singular value")
axis.legend()
