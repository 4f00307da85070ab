"""More factors give fewer large singular values."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import DMFCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
truth = rng.randn(40, 3) @ rng.randn(3, 30)
hidden = patterns.random(truth, 0.6, random_state=0)
X = np.ma.masked_array(truth, hidden)
figure, axis = plt.subplots(figsize=(6.5, 3.6))
axis.semilogy(np.linalg.svd(truth)[1][:3], "k_", ms=14, label="truth, rank 3")
for depth in (1, 2, 3):
    completer = DMFCompleter(
        depth=depth, max_iter=1500, lr=0.01, early_stopping=False, scaling=None,
        device="cpu", random_state=0,
    ).fit(X)  # fmt: skip
    error = relative_error(completer.reconstruction_, truth, hidden)
    values = np.linalg.svd(completer.reconstruction_)[1]
    label = f"{depth} factor{'s' * (depth > 1)}: error of hidden cells {error:.0%}"
    axis.semilogy(values, "o-", ms=4, label=label)
axis.set(ylim=(1e-3, 100), xlabel="index", ylabel="singular value")
axis.legend(loc="upper right")
