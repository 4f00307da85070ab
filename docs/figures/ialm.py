"""The number of cells that the nuclear norm needs."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import IALMCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
shares = np.arange(0.1, 0.91, 0.1)
figure, axis = plt.subplots(figsize=(6.5, 3.6))
for rank in (2, 4, 8):
    truth = rng.randn(50, rank) @ rng.randn(rank, 50)
    errors = []
    for share in shares:
        hidden = patterns.random(truth, 1 - share, random_state=0)
        X = np.ma.masked_array(truth, hidden)
        completed = IALMCompleter(max_iter=300, tol=1e-2, device="cpu").fit(X)
        errors.append(relative_error(completed.reconstruction_, truth, hidden))
    [line] = axis.plot(shares, errors, "o-", ms=4, label=f"rank {rank}")
    freedom = rank * (100 - rank) / 2500
    axis.axvline(freedom, color=line.get_color(), ls=":", lw=1)
axis.set(xlabel="share of observed cells", ylabel="error of hidden cells")
axis.set_title("dotted: as many cells as degrees of freedom")
axis.legend()
