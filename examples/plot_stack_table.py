"""
Is a stack of methods better than each of them?
===============================================

`AutoCompleter` fits many methods, weights them by their errors on held-out cells, and
estimates the uncertainty of each cell. In the diabetes table of scikit-learn, the blood
tests (s1 to s6) strongly depend on each other; the other columns hardly do.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from skmc import AutoCompleter, patterns

# %%
# Ten columns of 442 patients, of which 30 % of the cells are hidden
# ------------------------------------------------------------------
# Six candidates, so that this page takes only seconds; the default tries all of them.
table = load_diabetes()
truth, names = table.data / table.data.std(0), table.feature_names
hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
X = np.where(hidden, np.nan, truth)
candidates = ["means", "KNN", "IALM", "Gaussian", "copula", "trees, linear"]
auto = AutoCompleter(candidates, random_state=0).fit(X)
print(auto.verdict_)
print(auto.leaderboard_.round(3).to_string(index=False))
low, high = auto.predict_interval(X, 0.9)
inside = (low <= truth) & (truth <= high)
print(f"{inside[hidden].mean():.0%} of the hidden cells are in intervals of 90 %")

# %%
# The error in each column
# ------------------------
# An error of 1 is that of the column's mean. No member is the best in every column.
# Over all columns, the stack has the lowest error.


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
target = Path(sys.argv[0] or "stack.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
