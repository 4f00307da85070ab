"""How many cells are enough? The phase diagrams of two methods."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skmc import IALMCompleter, LogDetCompleter, patterns
from skmc.metrics import relative_error

size, ranks, oversampling = 30, (1, 2, 3, 4), (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
methods = {
    "LogDetCompleter": LogDetCompleter(max_iter=100, random_state=0, device="cpu"),
    "IALMCompleter": IALMCompleter(max_iter=300, device="cpu"),
}
found = np.full((2, len(oversampling), len(ranks)), np.nan)
for j, rank in enumerate(ranks):
    rng = np.random.RandomState(rank)
    truth = rng.randn(size, rank) @ rng.randn(rank, size)
    for i, factor in enumerate(oversampling):
        share = factor * rank * (2 * size - rank) / size**2
        hidden = patterns.random(truth, 1 - share, random_state=0)
        determined = hidden & patterns.is_determined(~hidden, rank)
        if not determined.any():
            continue
        X = np.ma.masked_array(truth, hidden)
        for k, completer in enumerate(methods.values()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                completer.fit(X)
            error = relative_error(completer.reconstruction_, truth, determined)
            found[k, i, j] = np.log10(error + 1e-16)
figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for name, errors, axis in zip(methods, found, axes, strict=True):
    picture = axis.imshow(errors, vmin=-8, vmax=0, origin="lower", aspect="auto")
    axis.set_xticks(range(len(ranks)), ranks)
    axis.set_yticks(range(len(oversampling)), oversampling)
    axis.set(title=name, xlabel="rank")
axes[0].set_ylabel("cells / degrees of freedom")
figure.colorbar(picture, ax=axes, label="log10 of the error")
