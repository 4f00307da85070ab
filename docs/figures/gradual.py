"""Gradual learning: how mu falls, and how the penalties come in."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import NSRCompleter, patterns
from skmc.solvers.nonsmooth import CosineSchedule

rng = np.random.RandomState(0)
truth = np.tanh(rng.randn(30, 3) @ rng.randn(3, 20))
X = np.ma.masked_array(truth, patterns.random(truth, 0.3, random_state=0))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
epochs = np.arange(201)
for mu_max in (1e5, 1e3, 1):
    schedule = CosineSchedule(mu_max, 1, 200)
    name = f"mu_max = {mu_max:g}"
    axes[0].semilogy(epochs, [schedule(k) for k in epochs], label=name)
    fit = NSRCompleter(
        "paper", mu_max=mu_max, max_iter=200, device="cpu", random_state=0
    ).fit(X)
    axes[1].semilogy(fit.history_["n_iter"], fit.history_["objective"], label=name)
axes[0].set(xlabel="epoch", title="mu: the slack weighs 1 / (2 mu)")
axes[1].set(xlabel="epoch", title="objective in penalty form, at mu = 1")
axes[0].legend()
