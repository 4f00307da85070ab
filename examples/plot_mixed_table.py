"""
Can a completer fill a table of numbers, grades and categories?
===============================================================

The table has thirteen measurements of wines, one of them recorded only as a grade, and
the cultivar as a category. A quarter of all cells is missing. `MixedCompleter` encodes
the table as a matrix in which every column has the same weight, completes it, and
decodes the result: categories are returned as categories.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV

from skmc import (
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
)

# %%
# The table
# ---------
# The pandas types determine how a column is treated: an ordered category is ordinal.
wine = load_wine(as_frame=True)
truth = wine.data.rename(columns={"od280/od315_of_diluted_wines": "od280"})
truth["hue"] = pd.cut(truth["hue"], 4, labels=["low", "medium", "high", "highest"])
truth["cultivar"] = pd.Categorical.from_codes(
    wine.target, ["Barolo", "Grignolino", "Barbera"]
)
hidden = np.random.RandomState(0).uniform(size=truth.shape) < 0.25
damaged = truth.mask(hidden)

# %%
# How well is each type completed?
# --------------------------------
# The error of numbers is relative to the range of their column, the error of grades is
# relative to the largest possible error, and the error of categories is the share of
# wrong ones. The mean completer predicts means, middle grades and the most frequent
# category.
completers = {
    "means": MeanCompleter(),
    "neighbors": KNNCompleter(),
    "truncated SVD": SVDCompleter(scaling=None, random_state=0),
    "Gaussian rows": GaussianCompleter(),
    "factorization": FactorizationCompleter(scaling=None, random_state=0),
}
errors = {
    name: MixedCompleter(completer).fit(damaged).error_by_type(damaged, truth)
    for name, completer in completers.items()
}
table = pd.DataFrame(errors).T
print(table.round(3))

# %%
# Parameters are chosen as usual
# ------------------------------
# Without the truth, `score` hides some observed cells of the test rows.
search = GridSearchCV(
    MixedCompleter(SVDCompleter(scaling=None, max_iter=3000)),
    {"completer__rank": [1, 2, 3, 4]},
    cv=3,
).fit(damaged)
print(search.best_params_, f"{search.score(damaged, truth):.3f}")
completed = search.transform(damaged)
print(completed.dtypes[["alcohol", "hue", "cultivar"]])

# %%
# The answer
# ----------
# The three errors have different units, so each has its own axis.
units = {
    "numeric": "numbers:\nmean error / range",
    "ordinal": "grades:\nmean error / largest",
    "categorical": "cultivars:\nshare of wrong ones",
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for axis, (kind, title) in zip(axes, units.items(), strict=True):
    best = table[kind] == table[kind].min()
    bars = axis.barh(table.index, table[kind], color=np.where(best, "tab:green", "0.7"))
    axis.bar_label(bars, fmt="%.3f", padding=3)
    axis.set_xlim(0, 1.3 * table[kind].max())
    axis.set_title(title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
figure.suptitle("178 wines, a quarter of the cells hidden; the best is green")
target = Path(sys.argv[0] or "mixed.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
