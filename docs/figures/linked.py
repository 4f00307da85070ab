"""A link function found from the data."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import LinkedFactorizationCompleter, SVDCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
latent = rng.randn(100, 3) @ rng.randn(3, 60)
truth = np.clip(latent, -1, 2)
hidden = patterns.random(truth, 0.4, random_state=0)
X = np.ma.masked_array(truth, hidden)
linked = LinkedFactorizationCompleter(
    3, 0.1, scaling="global", device="cpu", random_state=0
).fit(X)
plain = SVDCompleter(device="cpu", random_state=0).fit(X)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
slope, offset = np.polyfit(linked.latent_.ravel(), latent.ravel(), 1)
shown = np.linspace(*np.quantile(linked.latent_, [0.001, 0.999]), 300)
axes[0].plot(
    slope * shown + offset, np.clip(slope * shown + offset, -1, 2), lw=6, color="0.8",
    label="truth: a floor and a ceiling",
)  # fmt: skip
axes[0].plot(slope * shown + offset, linked.link(shown), "C1", label="learned link")
axes[0].set(xlabel="latent number", ylabel="cell")
axes[0].legend()
for name, fit, color in (("SVD", plain, "C0"), ("linked", linked, "C1")):
    error = relative_error(fit.reconstruction_, truth, hidden)
    axes[1].plot(
        truth[hidden], fit.reconstruction_[hidden], ".", ms=3, alpha=0.5, color=color,
        label=f"{name}: error {error:.0%}",
    )  # fmt: skip
axes[1].set(xlabel="hidden cell", ylabel="completed")
axes[1].legend()
