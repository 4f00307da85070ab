"""
Learn which columns are similar
===============================

Each column of the matrix is a handwritten digit with 64 pixels, half of which are
missing. `NCARLCompleter` completes them and learns a graph of similar columns at the
same time. It does not know which digit a column shows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skmc import KNNCompleter, MeanCompleter, NCARLCompleter, patterns
from skmc.metrics import nmae
from skmc.plot import LaplacianDisplay

# %%
# Ten pictures each of six digits, shuffled
# -----------------------------------------
pixels, digit = load_digits(return_X_y=True)
shown = (0, 1, 2, 4, 6, 7)
chosen = np.concatenate([np.flatnonzero(digit == k)[:10] for k in shown])
chosen = np.random.RandomState(0).permutation(chosen)
truth, group = pixels[chosen].T / 16, digit[chosen]
hidden = patterns.random(truth, 0.5, spare=True, random_state=0)
X = np.ma.masked_array(truth, hidden)

# %%
# Completion and graph at once
# ----------------------------
ncarl = NCARLCompleter(scaling="global", random_state=0)
for completer in (MeanCompleter(), KNNCompleter(), ncarl):
    completed = completer.fit_transform(X)
    name = type(completer).__name__
    print(f"{name:>14}: NMAE {nmae(completed, truth, hidden):.4f}")
weights = -ncarl.laplacian_
pairs = ~np.eye(60, dtype=bool)
same = group[:, None] == group
inside = weights[pairs & same].sum() / weights[pairs].sum()
print(
    f"The graph connects {ncarl.laplacian_axis_}, each with its "
    f"{ncarl.n_neighbors_} nearest: {inside:.0%} of its weight joins pictures of the "
    f"same digit; by chance it would be {same[pairs].mean():.0%}."
)

# %%
# Pictures in the order of their digits
# -------------------------------------
# If the graph separates the digits, it consists of six dark squares.
order = np.argsort(group, kind="stable")


def sheet(matrix):
    """One row of pictures per digit."""
    tiles = np.ma.masked_invalid(matrix).T[order].reshape(6, 10, 8, 8)
    tiles = np.pad(tiles.filled(np.nan), [(0, 0)] * 2 + [(1, 1)] * 2, constant_values=0)
    return tiles.transpose(0, 2, 1, 3).reshape(60, 100)


figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
grays = plt.get_cmap("gray").with_extremes(bad="#29ABE2")
matrices = {"observed": X.filled(np.nan), "completed": completed, "truth": truth}
for axis, (title, matrix) in zip(axes.flat, matrices.items(), strict=False):
    axis.imshow(sheet(matrix), cmap=grays, vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_axis_off()
LaplacianDisplay.from_estimator(ncarl, ax=axes[1, 1], order={"columns": order})
axes[1, 1].set(title="learned graph of the pictures", xlabel="", ylabel="")
axes[1, 1].set(xticks=[], yticks=[])
for k, name in enumerate(shown):
    axes[1, 1].text(-2, 10 * k + 4.5, name, ha="right", va="center")
    axes[1, 1].text(10 * k + 4.5, 62, name, ha="center", va="top")
plt.show()
