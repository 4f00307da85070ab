"""
Does AIR find the groups behind the ratings?
============================================

In these synthetic ratings, users and films form groups, and 70 % of the ratings are
hidden. AIR finds the groups without being given them.
(Needs ``graph/syn_netflix.npz`` in SKMC_DATA.)
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import AIRCompleter, patterns
from skmc.datasets import load_syn_netflix
from skmc.metrics import nmae
from skmc.plot import CompletionDisplay, LaplacianDisplay, SpectrumDisplay

truth = load_syn_netflix().data
hidden = patterns.random(truth, 0.7, spare=True, random_state=0)
X = np.ma.masked_array(truth.astype(np.float32), hidden)
air = AIRCompleter(scaling="global", max_iter=2000, random_state=0)
completed = air.fit_transform(X)
print(f"70 % hidden, NMAE {nmae(completed, truth, hidden):.5f}")

# %%
# Users and films are sorted by their true ratings, so groups appear as squares.
orders = [np.lexsort(truth.T), np.lexsort(truth)]
figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
shown = [matrix[np.ix_(*orders)] for matrix in (X.filled(np.nan), completed, truth)]
CompletionDisplay(*shown[:2], truth=shown[2], name="AIR").plot(
    ax=axes[0], panels=("observed", "completed", "truth")
)
LaplacianDisplay.from_estimator(
    air, ax=axes[1, :2], order=dict(zip(("rows", "columns"), orders, strict=True))
)
for axis, name in zip(axes[1], ("users", "films"), strict=False):
    axis.set(title=f"similar {name}", xlabel=name, ylabel=name)
SpectrumDisplay.from_estimator(air, truth=truth, ax=axes[1, 2])
target = Path(sys.argv[0] or "netflix.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
