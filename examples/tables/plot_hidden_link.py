"""
Complete a matrix with a nonlinear link
=======================================

Each cell of a low-rank matrix is transformed by the same function, the link: by a
sensor that saturates, or by the wave of the synthetic data of DNN-NSR (Faramarzi et al.
2024). Half of the cells are missing. `LinkedFactorizationCompleter` learns the link and
the matrix together.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import LinkedFactorizationCompleter, SVDCompleter, patterns
from skmc.metrics import relative_error


def sensor(c):
    return 1 / (1 + np.exp(-1.5 * c))


def wave(c):
    def g(x):
        return 1.71 * np.tanh(2 / 3 * x)

    return g(1.2 * (0.5 * g(c) ** 2 - g(c) - 1)) + c


# %%
# A latent matrix of rank 5 and two links
# ---------------------------------------
# Neither completer knows the link or the rank.
rng = np.random.RandomState(0)
C = rng.standard_normal((160, 5)) @ rng.standard_normal((5, 120))
figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
for (curve, scatter), link in zip(axes, (sensor, wave), strict=True):
    truth = link(C).astype(np.float32)
    hidden = patterns.random(truth, 0.5, spare=True, random_state=0)
    X = np.ma.masked_array(truth, hidden)
    linked = LinkedFactorizationCompleter(
        max_iter=250, scaling="global", random_state=0
    )
    for completer in (SVDCompleter(random_state=0), linked):
        completed = completer.fit_transform(X)
        name = type(completer).__name__.removesuffix("Completer")
        error = relative_error(completed, truth, hidden)
        label = f"{name}, rank {completer.rank_}: error {error:.3f}"
        print(f"{link.__name__:>6}: {label}")
        scatter.plot(truth[hidden], completed[hidden], ".", ms=2, label=label)
    scatter.axline((truth.mean(),) * 2, slope=1, color="black", lw=0.8)
    scatter.set(xlabel="truth", ylabel="completed", ylim=scatter.get_xlim())
    scatter.set_title(f"{link.__name__}: hidden cells")
    scatter.legend(markerscale=6)

    # %%
    # The latent values are determined up to an affine map, for which the link
    # compensates. Only for the plot, they are aligned with the true ones by least
    # squares.
    slope, offset = np.polyfit(linked.latent_.ravel(), C.ravel(), 1)
    shown = np.linspace(*np.quantile(linked.latent_, [0.001, 0.999]), 300)
    aligned = slope * shown + offset
    curve.plot(aligned, link(aligned), lw=6, color="lightgray", label="truth")
    curve.plot(aligned, linked.link(shown), color="tab:orange", label="learned")
    curve.set(xlabel="latent value", ylabel="cell", title=f"{link.__name__}: the link")
    curve.legend()
plt.show()
