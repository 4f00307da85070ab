"""
What does AIR learn while it removes text from a picture?
=========================================================

Words are written over a photograph. AIR completes it and at the same time learns which
rows and which columns are similar.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import AIRCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import nmae
from skmc.plot import CompletionDisplay, LaplacianDisplay, SpectrumDisplay

photo = load_photo("flower").astype(np.float32)
hidden = patterns.text(photo, "what was here before the words", height=0.1)
X = np.ma.masked_array(photo, hidden)
air = AIRCompleter(scaling="global", random_state=0)
completed = air.fit_transform(X)
print(f"{hidden.mean():.0%} hidden, NMAE {nmae(completed, photo, hidden):.4f}")

# %%
# Adjacent rows and columns are similar, which shows as dark diagonals. The similarities
# that remain at the end of a fit are those that the picture supports.
figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
panels = ("observed", "completed", "error")
CompletionDisplay.from_estimator(
    air, X, truth=photo, ax=axes[0], panels=panels, cmap="gray"
)
LaplacianDisplay.from_estimator(air, ax=axes[1, :2])
SpectrumDisplay.from_estimator(air, truth=photo, ax=axes[1, 2])
target = Path(sys.argv[0] or "text.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
