"""
Which drugs act on which ion channels?
======================================

A fifth of a drug-target matrix is hidden. AIR completes it and learns which drugs have
similar effects. (Needs ``drug_target/dti_ion_channel.npz`` in SKMC_DATA.)
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.metrics import roc_auc_score

from skmc import AIRCompleter, KNNCompleter, MeanCompleter, patterns
from skmc.datasets import load_drug_target
from skmc.metrics import nmae
from skmc.plot import CompletionDisplay, LaplacianDisplay, SpectrumDisplay

truth = load_drug_target("ion_channel").data
hidden = patterns.random(truth, 0.2, random_state=0)
X = np.ma.masked_array(truth.astype(np.float32), hidden)
air = AIRCompleter(scaling="global", random_state=0)
for completer in (MeanCompleter(), KNNCompleter(), air):
    completed = completer.fit_transform(X)
    auc = roc_auc_score(truth[hidden], completed[hidden])
    name = type(completer).__name__
    print(f"{name:>14}: NMAE {nmae(completed, truth, hidden):.4f}, AUC {auc:.3f}")

# %%
# Drugs and targets are ordered by a clustering of the observed cells.
orders = [leaves_list(linkage(M, "average")) for M in (X.filled(0), X.filled(0).T)]
figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
shown = [matrix[np.ix_(*orders)] for matrix in (X.filled(np.nan), completed, truth)]
CompletionDisplay(*shown[:2], truth=shown[2], name="AIR").plot(
    ax=axes[0], panels=("observed", "completed", "truth"), cmap="Greys"
)
LaplacianDisplay.from_estimator(
    air, ax=axes[1, :2], order=dict(zip(("rows", "columns"), orders, strict=True))
)
for axis, name in zip(axes[1], ("drugs", "targets"), strict=False):
    axis.set(title=f"similar {name}", xlabel=name, ylabel=name)
SpectrumDisplay.from_estimator(air, truth=truth, ax=axes[1, 2])
target = Path(sys.argv[0] or "ion_channels.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
