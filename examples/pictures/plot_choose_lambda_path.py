"""
Choose the penalty of Soft-Impute
=================================

Soft-Impute has one hyperparameter, the weight of the nuclear norm. Here it completes a
noisy photo of which 30 % of the pixels are missing. With ``lambda_nuclear="auto"``, it
holds out a tenth of the other pixels and decreases the weight step by step until their
error rises.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SoftImputeCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import rmse

photo = load_photo("china")[:160, 40:240].astype(np.float32)
noise = np.random.RandomState(0).normal(0, 0.15, photo.shape).astype(np.float32)
hidden = patterns.random(photo, 0.3, random_state=0)
X = np.ma.masked_array(photo + noise, hidden)

# %%
# One fit computes the path and chooses
# -------------------------------------
completer = SoftImputeCompleter(random_state=0).fit(X)
path = completer.path_
print("lambda_nuclear  rank  error on held-out cells")
for share, rank, error in zip(*path.values(), strict=True):
    chosen = "  <- chosen" if share == completer.lambda_nuclear_ else ""
    print(f"{share:14.4f} {rank:5d}  {error:.4f}{chosen}")

# %%
# The error on the missing pixels
# -------------------------------
# This error is computed against the photograph without noise. The held-out cells are
# noisy, so their error is larger, but its minimum is at about the same weight. The
# truth was not used to choose anything. Two weights are smaller than those of the path.
step = path["lambda_nuclear"][1] / path["lambda_nuclear"][0]
shares = [
    *path["lambda_nuclear"],
    *path["lambda_nuclear"][-1] * step ** np.array([1, 2]),
]
fits = [SoftImputeCompleter(share).fit(X) for share in shares]
# `path_` is in units of the standard deviation of the observed cells.
truth = [rmse(fit.reconstruction_, photo, hidden) / X.std() for fit in fits]
best = int(path["error"].argmin())
print(f"true error {truth[best]:.4f} at the chosen weight, minimum {min(truth):.4f}")

# %%
# Strong, chosen, weak
# --------------------
figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
ranks = [fit.rank_ for fit in fits]
panels = {
    "lambda_nuclear": (shares, (0.5, 0.2, 0.1, 0.05, 0.02)),
    "rank": (ranks, (1, 2, 5, 10, 20, 50, 100)),
}
for axis, (name, (every, ticks)) in zip(axes[0], panels.items(), strict=False):
    known = path[name]
    axis.semilogx(known, path["error"], "o-", label="held-out cells (used)")
    axis.semilogx(every, truth, "s--", color="0.6", label="the truth (not used)")
    axis.plot(known[best], path["error"][best], "o", ms=14, mfc="none", mec="C3")
    axis.annotate(
        "chosen",
        (known[best], path["error"][best]),
        (0, 14),
        textcoords="offset points",
        ha="center",
        color="C3",
    )
    axis.minorticks_off()
    axis.set_xticks(ticks, ticks)
    axis.set_xlabel(name)
    axis.set_ylabel("RMSE / standard deviation of the data")
    axis.legend()
axes[0, 0].invert_xaxis()
pictures = {"observed": (axes[0, 2], X.filled(1.0))}
names = {"strong": 4, "chosen": best, "weak": -1}
for axis, (name, k) in zip(axes[1], names.items(), strict=True):
    title = f"{name}: rank {ranks[k]}, true error {truth[k]:.3f}"
    pictures[title] = axis, fits[k].reconstruction_
for title, (axis, picture) in pictures.items():
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_axis_off()
plt.show()
