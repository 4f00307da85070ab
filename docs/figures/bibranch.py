"""Held-out error over the epochs, with and without a hidden layer."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import BiBNNCompleter, patterns

rng = np.random.RandomState(0)
truth = rng.randn(80, 4) @ rng.randn(4, 60)
X = np.ma.masked_array(truth, patterns.random(truth, 0.5, random_state=0))
figure, axis = plt.subplots(figsize=(6.5, 3.4))
for hidden, label in (((), "no hidden layer: U V'"), ((256,), "256 units each")):
    fit = BiBNNCompleter(4, hidden, max_iter=1500, device="cpu", random_state=0).fit(X)
    axis.semilogy(fit.history_["n_iter"], fit.history_["validation"], label=label)
axis.set(xlabel="epoch", ylabel="error of held-out cells")
axis.legend()
