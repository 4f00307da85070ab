"""
Why is it missing, and why this value?
======================================

Two questions about a table with missing cells: is there a reason why cells are missing,
and how did the completer come to a value? `MissingnessDisplay` and `little_test` help
with the first, the method ``explain`` and `ExplanationDisplay` with the second.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from skmc import GaussianCompleter, KNNCompleter
from skmc.plot import ExplanationDisplay, MissingnessDisplay
from skmc.uncertainty import little_test

# %%
# Analyses that were not made
# ---------------------------
# Of 178 wines, a laboratory measures phenols and flavanoids together, and often leaves
# them out if the alcohol is low. A tenth of the cells of two other columns is missing
# by chance.
rng = np.random.RandomState(0)
truth = load_wine(as_frame=True).data.iloc[:, :8]
truth.index = [f"wine {k}" for k in range(len(truth))]
hidden = np.zeros(truth.shape, bool)
hidden[:, [1, 4]] = rng.uniform(size=(len(truth), 2)) < 0.1
skipped = rng.uniform(size=len(truth)) < np.where(truth["alcohol"] < 12.7, 0.6, 0.05)
hidden[:, 5:7] = skipped[:, None]
X = truth.mask(hidden)

# %%
# The right panel shows that the two columns are missing together. The p-value of
# Little's test is small, so the cells are not missing completely at random. The test
# cannot tell whether the reason is in the table (MAR), as here, or in the missing
# values themselves (MNAR). For that, ask the laboratory.
print(little_test(X))
MissingnessDisplay.from_matrix(X)

# %%
# The same cells, moved to random rows, are missing completely at random.
moved = truth.mask(rng.permutation(hidden))
print(little_test(moved))

# %%
# One value
# ---------
# `GaussianCompleter` predicts the flavanoids of a wine by a regression on the other
# columns. A contribution is a coefficient times the deviation of a column from its
# mean. `KNNCompleter` takes the mean of similar wines, the donors.
wine = X.index[hidden[:, 6]][0]
gaussian, knn = GaussianCompleter(random_state=0).fit(X), KNNCompleter().fit(X)
explanation = gaussian.explain(X, wine, "flavanoids")
print(explanation)
print(pd.DataFrame(knn.explain(X, wine, "flavanoids").contributions).round(2))
print("truth:", truth.loc[wine, "flavanoids"])

# %%
# Each bar begins where the one above it ends. The first one begins at the base, here
# the mean of the column, and the last one ends at the completed value.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for completer, axis in zip((gaussian, knn), axes, strict=True):
    ExplanationDisplay.from_estimator(completer, X, wine, "flavanoids", ax=axis)
    axis.set_title(f"{axis.get_title()}, {type(completer).__name__}", fontsize="medium")
plt.show()
