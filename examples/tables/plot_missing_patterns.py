"""
MCAR, MAR and MNAR: which cells to hold out
===========================================

The error of a completion is estimated on observed cells that are held out. The estimate
is right if the held-out cells are like the missing ones. So it matters why cells are
missing: at random (MCAR), depending on observed cells (MAR), or depending on their own
value (MNAR).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from skmc import GaussianCompleter, patterns
from skmc.metrics import rmse
from skmc.model_selection import compare

# %%
# Three reasons to be missing
# ---------------------------
# Each pattern hides 30 % of the same table of ten measurements of 442 patients. With
# `mar`, cells are missing where other columns are large, and with `mnar` where they are
# large themselves. All columns have mean 0 and standard deviation 1.
truth = scale(load_diabetes().data)
missing = {
    "MCAR": patterns.random(truth, 0.3, random_state=0),
    "MAR": patterns.mar(truth, 0.3, random_state=0),
    "MNAR": patterns.mnar(truth, 0.3, random_state=0),
}

# %%
# Estimates of the error
# ----------------------
# `compare` holds out observed cells in several patterns. The error of the missing cells
# is known in this experiment only.
completer = GaussianCompleter(random_state=0)
errors, means = {}, {}
for reason, mask in missing.items():
    X = np.where(mask, np.nan, truth)
    completed = completer.fit_transform(X)
    table = compare(
        [completer], X, cv=3, patterns=("mcar", "mar", "mnar"), metrics=("rmse",)
    )
    held_out = table.set_index("pattern")["mean"]
    errors[reason] = {
        "held out at random": held_out["mcar"],
        "held out likewise": held_out[reason.lower()],
        "missing cells (truth)": rmse(completed, truth, mask),
    }
    means[reason] = {
        "observed cells": np.nanmean(X, axis=0).mean(),
        "completed table": completed.mean(),
    }
errors, means = pd.DataFrame(errors).T, pd.DataFrame(means).T
print(errors.round(2))
print(means.round(2))

# %%
# What to do
# ----------
# - MCAR: hold out cells at random. The estimate is a little too high here, because the
#   completer is fitted to fewer cells.
# - MAR: hold out cells in the same way. The completion corrects the means, because the
#   reason is in the table.
# - MNAR: no method can see the reason in the table. Random cells underestimate the
#   error, and the completed means are too low, although less than before. Hold out with
#   ``"mnar"`` to see how large the error may be.
#
# The table alone does not tell MAR from MNAR; you have to know how the data were
# collected. If cells are missing in gaps or blocks, use ``"like_missing"``, which
# repeats the pattern of the missing cells.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
errors.plot.bar(ax=axes[0], rot=0, color=["tab:orange", "tab:green", "0.4"])
axes[0].set(ylabel="RMSE / standard deviation", ylim=(0, 1.3), title="error")
means.plot.bar(ax=axes[1], rot=0, color=["0.7", "tab:green"])
axes[1].axhline(0, color="0.4", lw=1)
axes[1].set(ylabel="mean of all columns", title="mean, which is 0 in truth")
for axis in axes:
    axis.legend(loc="upper left" if axis is axes[0] else "lower left", ncols=1)
plt.show()
