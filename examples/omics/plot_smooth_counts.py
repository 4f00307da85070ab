"""
How much to smooth counts, and what not to test then
====================================================

Most zeros of single-cell counts are not missing, and a completion smooths the counts
instead: it replaces them by the expected ones of a model. `CountSplit` chooses how
much, without the truth. But genes that have nothing to do with each other become
correlated.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SVDCompleter
from skmc.model_selection import CountSplit, compare

# %%
# Counts of four programs
# -----------------------
# In 300 cells, four programs determine the expected counts of 100 genes. Fifty more
# genes have the same expected count in all cells.
rng = np.random.RandomState(0)
programs = rng.gamma(0.5, 2, (300, 4)) @ rng.gamma(0.5, 1, (4, 100))
expected = np.hstack([programs, np.tile(rng.gamma(2, 2, 50), (300, 1))])
counts = rng.poisson(expected)
print(f"{(counts == 0).mean():.0%} of the counts are zeros")

# %%
# Molecules held out
# ------------------
# `CountSplit` holds out a fifth of the molecules of each count. The rank with the
# lowest error on them is also the one that is nearest to the expected counts, which
# only a simulation knows.
ranks = [1, 2, 3, 4, 6, 10, 20, 40]
table = compare(
    {rank: SVDCompleter(rank) for rank in ranks},
    counts,
    patterns=[CountSplit(0.2, n_splits=4, random_state=0)],
    metrics=["rmse"],
).set_index("completer")
held_out = table["mean"][ranks]
errors = []
for rank in ranks:
    smoothed = SVDCompleter(rank).fit(counts).reconstruction_
    errors.append(np.sqrt(np.square(smoothed - expected).mean()))
noise = np.sqrt(np.square(counts - expected).mean())
print(f"chosen rank: {held_out.idxmin()}; best rank: {ranks[np.argmin(errors)]}")

# %%
# False signals
# -------------
# The last fifty genes are independent of everything. In the counts, their correlations
# are small. In the smoothed counts many are large, because each gene was predicted from
# the others. Andrews and Hemberg (F1000Research 2018) show this for several methods:
# apply tests to the counts, and look at smoothed values only.
smoothed = SVDCompleter(int(held_out.idxmin())).fit(counts).reconstruction_
pairs = np.triu_indices(50, 1)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(ranks, errors, "o-", label="error of the expected counts")
left.axhline(noise, color="gray", linestyle=":", label="without smoothing")
left.axvline(held_out.idxmin(), color="C1", label="chosen by held-out molecules")
left.set(xscale="log", xlabel="rank", ylabel="root mean squared error")
left.set_xticks(ranks, ranks, minor=False)
left.minorticks_off()
left.legend()
for name, cells in (("counts", counts), ("smoothed", smoothed)):
    found = np.corrcoef(cells[:, 100:].T)[pairs]
    right.hist(found, bins=np.linspace(-1, 1, 41), alpha=0.7, label=name)
    print(f"{name}: {(abs(found) > 0.5).mean():.0%} of the correlations are above 0.5")
right.set(xlabel="correlation of independent genes", ylabel="pairs of genes")
right.legend()
plt.show()
