"""
Does better completion improve the model that follows?
======================================================

A table loses 40 % of its cells. A regressor needs all of them, so the pipeline has a
completer in front of it. Rows of the test folds are completed by models of the
training folds, so nothing leaks.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmc import (
    AIRCompleter,
    KNNCompleter,
    MaskedToNaN,
    MeanCompleter,
    SVDCompleter,
    patterns,
)

# %%
# The table
# ---------
# The task is to predict the alcohol content of a wine from its twelve other
# measurements.
measurements, alcohol = np.split(load_wine().data[:, ::-1], [12], axis=1)
hidden = patterns.random(measurements, 0.4, spare=True, random_state=0)
damaged = np.ma.masked_array(measurements, hidden)

# %%
# One pipeline per completer
# --------------------------
# `MaskedToNaN` comes first because a scaler follows: scikit-learn's scalers respect
# NaN but drop masks. AIR scales the data itself; KNN does not.
completers = [
    MeanCompleter(),
    KNNCompleter(),
    SVDCompleter(random_state=0),
    AIRCompleter(random_state=0),
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
# The answer
# ----------
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.boxplot(list(scores.values()), tick_labels=list(scores))
axis.set_ylabel("R2 on held-out rows")
axis.set_title("Alcohol of a wine from 12 measurements, 40 % of them missing")
target = Path(sys.argv[0] or "pipeline.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
