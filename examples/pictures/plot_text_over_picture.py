"""
Remove text from a picture
==========================

Words are written over a photo. `AIRCompleter` completes the pixels under them, and
learns which rows and which columns are similar. The plots show what it has learned.
"""

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
# What it has learned
# -------------------
# Dark cells mark similar rows and similar columns. Most of them are adjacent, so the
# dark cells are near the diagonal. The last plot shows the singular values.
figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
panels = ("observed", "completed", "error")
CompletionDisplay.from_estimator(
    air, X, truth=photo, ax=axes[0], panels=panels, cmap="gray"
)
LaplacianDisplay.from_estimator(air, ax=axes[1, :2])
SpectrumDisplay.from_estimator(air, truth=photo, ax=axes[1, 2])
plt.show()
