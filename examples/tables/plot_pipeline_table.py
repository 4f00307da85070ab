"""
Impute in a pipeline before a regression
========================================

A table loses 40 % of its cells, and a regression needs all of them. A completer in the
pipeline fills them. In cross-validation, rows of the test folds are completed by models
of the training folds, so no information leaks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmc import (
    GaussianCompleter,
    KNNCompleter,
    MaskedToNaN,
    MeanCompleter,
    TreesCompleter,
    patterns,
)

# %%
# The table
# ---------
# The alcohol content of a wine is predicted from its twelve other measurements. True in
# the mask of a masked array means missing.
measurements, alcohol = np.split(load_wine().data[:, ::-1], [12], axis=1)
hidden = patterns.random(measurements, 0.4, spare=True, random_state=0)
damaged = np.ma.masked_array(measurements, hidden)

# %%
# One pipeline per completer
# --------------------------
# `MaskedToNaN` comes first because scikit-learn's scalers respect NaN but drop masks. A
# table with NaN does not need it.
completers = [
    MeanCompleter(),
    KNNCompleter(),
    GaussianCompleter(random_state=0),
    TreesCompleter(linear=True, random_state=0),
]
folds = KFold(5, shuffle=True, random_state=0)
scores = {}
for completer in completers:
    name = type(completer).__name__.removesuffix("Completer")
    model = make_pipeline(MaskedToNaN(), StandardScaler(), completer, RidgeCV())
    scores[name] = cross_val_score(model, damaged, alcohol.ravel(), cv=folds)
complete = make_pipeline(StandardScaler(), RidgeCV())
scores["nothing missing"] = cross_val_score(
    complete, measurements, alcohol.ravel(), cv=folds
)
for name, score in scores.items():
    print(f"{name:>16}: R2 = {score.mean():.3f} +- {score.std() / 5**0.5:.3f}")

# %%
# R2 of each fold
# ---------------
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.boxplot(list(scores.values()), tick_labels=list(scores))
axis.set_ylabel("R2 on held-out rows")
axis.set_title("Alcohol of a wine from 12 measurements, 40 % of them missing")
plt.show()
