"""
Combine several imputation methods
==================================

`AutoCompleter` fits many methods, weights them column by column by their errors on
held-out cells, and estimates the uncertainty of each cell. In this table of
442 patients with diabetes, the blood tests s1 to s6 depend strongly on each other; the
other columns do not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from skmc import AutoCompleter, patterns

# %%
# Thirty percent of the cells are missing
# ---------------------------------------
# Six candidates keep this example short. By default, `AutoCompleter` tries all methods
# for which there is time.
table = load_diabetes()
truth, names = table.data / table.data.std(0), table.feature_names
hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
X = np.where(hidden, np.nan, truth)
candidates = ["mean", "knn", "ialm", "gaussian", "copula", "trees-linear"]
auto = AutoCompleter(candidates, random_state=0).fit(X)
print(auto.verdict_)
print(auto.leaderboard_.round(3).to_string(index=False))
low, high = auto.predict_interval(X, 0.9)
inside = (low <= truth) & (truth <= high)
print(f"{inside[hidden].mean():.0%} of the hidden cells are in intervals of 90 %")

# %%
# The error in each column
# ------------------------
# Predicting the mean of a column would have an error of 1. No method is the best in
# every column. Over all columns, the stack has the lowest error.


def error(completed):
    squares = np.where(hidden, np.square(completed - truth), np.nan)
    return np.sqrt(np.nanmean(squares, axis=0)), np.sqrt(np.nanmean(squares))


figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
members = {name: c.reconstruction_ for name, c in auto.completers_.items()}
for name, completed in {**members, "the stack": auto.reconstruction_}.items():
    columns, whole = error(completed)
    style = {"marker": "_", "ms": 24, "mew": 2, "color": "black"}
    style = style if name == "the stack" else {"marker": "o", "ms": 5}
    ax.plot(names, columns, ls="", label=f"{name}: {whole:.3f}", **style)
ax.set_ylabel("error of hidden cells")
ax.legend(title="error of all columns")
plt.show()
