"""The phase diagrams of two methods: how many cells are enough."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skmc import LogDetCompleter, SoftImputeCompleter, patterns
from skmc.metrics import relative_error

size, ranks, oversampling = 40, (1, 2, 3, 4), (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
methods = {
    "LogDetCompleter": LogDetCompleter(max_iter=150, random_state=0, device="cpu"),
    "SoftImputeCompleter": SoftImputeCompleter(random_state=0, device="cpu"),
}
figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for (name, completer), axis in zip(methods.items(), axes, strict=True):
    found = np.zeros((len(oversampling), len(ranks)))
    for j, rank in enumerate(ranks):
        rng = np.random.RandomState(rank)
        truth = rng.randn(size, rank) @ rng.randn(rank, size)
        for i, factor in enumerate(oversampling):
            share = factor * rank * (2 * size - rank) / size**2
            hidden = patterns.random(truth, 1 - share, random_state=0)
            hidden &= patterns.is_determined(~hidden, rank)
            X = np.ma.masked_array(truth, hidden)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                completer.fit(X)
            error = relative_error(completer.reconstruction_, truth, hidden)
            found[i, j] = np.log10(error + 1e-16)
    picture = axis.imshow(found, vmin=-8, vmax=0, origin="lower", aspect="auto")
    axis.set_xticks(range(len(ranks)), ranks)
    axis.set_yticks(range(len(oversampling)), oversampling)
    axis.set(title=name, xlabel="rank")
axes[0].set_ylabel("cells / degrees of freedom")
figure.colorbar(picture, ax=axes, label="log10 of the error")
