"""Conditional means against draws."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import ChainedCompleter

rng = np.random.RandomState(0)
group = rng.rand(600) < 0.5
x = rng.uniform(-2, 2, 600)
truth = np.column_stack([x, np.where(group, x, -x) + 0.2 * rng.randn(600)])
hidden = rng.rand(600) < 0.5
X = truth.copy()
X[hidden, 1] = np.nan
completer = ChainedCompleter(random_state=0).fit(X)
completions = {
    "truth": truth,
    "transform": completer.transform(X),
    "sample": completer.sample(X, random_state=0)[0],
}
figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.7), sharex=True, sharey=True)
for axis, (name, table) in zip(axes, completions.items(), strict=True):
    axis.scatter(*table[~hidden].T, s=5, color="0.8", label="observed")
    axis.scatter(*table[hidden].T, s=5, color="tab:blue", label="missing")
    axis.set(title=f"{name}, standard deviation {table[:, 1].std():.2f}")
    axis.title.set_fontsize("small")
axes[0].legend(fontsize="x-small")
