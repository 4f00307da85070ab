"""
How many cells are enough?
==========================

A matrix of rank r with m rows and n columns has r (m + n - r) degrees of freedom. Fewer
cells cannot determine it. Are slightly more cells enough? This example counts how often
`LogDetCompleter` recovers random matrices of your shape exactly. It then shows which
missing cells your own mask determines, before any fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import LogDetCompleter, patterns
from skmc.metrics import relative_error

# %%
# Your shape
# ----------
# Replace the shape by that of your matrix. If you do not know its rank, try several.
shape, ranks, n_draws = (40, 30), (1, 3), 10
freedom = {rank: rank * (sum(shape) - rank) / np.prod(shape) for rank in ranks}
print({f"rank {rank}": f"{least:.0%} of the cells" for rank, least in freedom.items()})

# %%
# How many cells are needed?
# --------------------------
# For each share of observed cells, ten random matrices are completed. A matrix counts
# as recovered if the relative error of all of its cells is below one in ten thousand.
# `skmc.patterns.is_determined` says in advance whether a mask determines all cells.
# Otherwise no method can recover the matrix, and it is not completed here.
shares = np.arange(0.05, 0.31, 0.05)
determined = np.zeros((len(ranks), len(shares), n_draws), bool)
recovered = determined.copy()
for (i, j, draw), _ in np.ndenumerate(determined):
    rng = np.random.RandomState(draw)
    truth = rng.randn(shape[0], ranks[i]) @ rng.randn(ranks[i], shape[1])
    missing = patterns.random(truth, 1 - shares[j], random_state=draw)
    determined[i, j, draw] = patterns.is_determined(~missing, ranks[i]).all()
    if determined[i, j, draw]:
        X = np.where(missing, np.nan, truth)
        completed = LogDetCompleter(random_state=0).fit_transform(X)
        recovered[i, j, draw] = relative_error(completed, truth) < 1e-4
print(f"{determined.sum()} of {determined.size} masks determine all cells")
print(f"{recovered.sum()} of these matrices were recovered")

# %%
# Does your mask determine the matrix?
# ------------------------------------
# Masks are seldom random. Here, one half of the rows has answered the first questions
# of a survey, the other half the last ones, and three questions are common to both
# halves. They connect the halves up to rank 3. At rank 4, the mask determines cells
# within the two blocks only, although nearly half of all cells are observed. Pass
# ``~np.isnan(X)`` for your own data.
half, common = shape[0] // 2, slice(14, 17)
asked = np.zeros(shape, bool)
asked[:half, : common.stop] = asked[half:, common.start :] = True
skipped = patterns.random(np.ones(shape), 0.15, random_state=0)
mask = asked & ~skipped
for rank in range(1, 6):
    known = patterns.is_determined(mask, rank)
    print(f"rank {rank}: {known[~mask].mean():.0%} of the missing cells are determined")

# %%
# Left, solid lines are the recovered matrices, and dotted ones the masks that determine
# all cells. Both coincide: `LogDetCompleter` recovers every matrix that can be
# recovered. Triangles mark the degrees of freedom. Some more cells are needed, because
# each row and column needs as many cells as the rank.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for k, rank in enumerate(ranks):
    left.plot(shares, recovered[k].mean(1), f"C{k}", label=f"rank {rank}")
    left.plot(shares, determined[k].mean(1), "k:", lw=2)
    left.plot(freedom[rank], 0, f"C{k}^", clip_on=False)
left.set(xlabel="share of observed cells", ylabel="share of matrices")
left.set_title("Recovered matrices")
left.legend()
kind = np.where(mask, 2, patterns.is_determined(mask, 4))
picture = right.imshow(kind, plt.get_cmap("cividis", 3), vmin=-0.5, vmax=2.5)
right.set(title="A survey in two halves, rank 4", xlabel="question", ylabel="person")
bar = figure.colorbar(picture, ticks=[0, 1, 2])
bar.set_ticklabels(["not determined", "determined", "observed"])
plt.show()
