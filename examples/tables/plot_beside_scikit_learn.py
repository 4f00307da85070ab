"""
Compare with KNNImputer and IterativeImputer
============================================

Completers are used as scikit-learn's imputers are. Which of them is the most accurate
depends on the table, so compare them on yours. Here the table has ten measurements of
442 patients with diabetes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from skmc import GaussianCompleter, KNNCompleter, TreesCompleter, patterns
from skmc.model_selection import compare

# %%
# The same call
# -------------
# A tenth of the cells is missing. Both take NaN, and return the table without it.
table = load_diabetes()
missing = patterns.random(table.data, 0.1, random_state=0)
X = np.where(missing, np.nan, table.data)

by_scikit_learn = KNNImputer().fit_transform(X)
by_skmc = KNNCompleter().fit_transform(X)
print(np.isnan(by_scikit_learn).sum(), np.isnan(by_skmc).sum())

# %%
# The comparison
# --------------
# `compare` hides a fifth of the observed cells, three times, and fits all of them to
# the others. ``nmae`` is the mean error of the hidden cells, relative to the range of
# the values. ``p_value`` tests whether a method is worse than the best one by chance.
# With a forest, `IterativeImputer` follows relations that are not linear.
forest = ExtraTreesRegressor(30, min_samples_leaf=5, random_state=0)
ranking = compare(
    {
        "KNNImputer": KNNImputer(),
        "IterativeImputer": IterativeImputer(random_state=0),
        "IterativeImputer, forest": IterativeImputer(forest, max_iter=3, tol=0.1),
        "KNNCompleter": KNNCompleter(),
        "GaussianCompleter, copula": GaussianCompleter(marginals="copula"),
        "TreesCompleter": TreesCompleter(linear=True, random_state=0),
    },
    X,
    cv=3,
)
print(ranking[["completer", "mean", "std_error", "p_value", "seconds"]].round(4))

# %%
# Errors of the hidden cells
# --------------------------
figure, axis = plt.subplots(figsize=(8, 3.5), layout="constrained")
own = ranking["completer"].str.contains("Completer")
axis.barh(
    ranking["completer"],
    ranking["mean"],
    xerr=ranking["std_error"],
    color=np.where(own, "tab:green", "0.7"),
)
axis.invert_yaxis()
axis.set(xlabel="mean error of hidden cells / range of the values")
axis.set_title("Completers of skmc are green")
plt.show()
