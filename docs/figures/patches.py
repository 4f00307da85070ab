"""Holes are filled from their boundary inwards."""

import matplotlib.pyplot as plt
import numpy as np
import torch

from skmc import PatchCNNCompleter, patterns
from skmc.datasets import load_photo
from skmc.models import filling_order

photo = load_photo()[:96:2, :128:2]
hidden = patterns.random(photo, 0.2, random_state=0)
hidden |= patterns.patch(photo, boxes=((10, 24, 30, 44),))
X = np.ma.masked_array(photo, hidden)
completer = PatchCNNCompleter(5, max_iter=60, device="cpu", random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.9))
axes[0].imshow(X.filled(1.0), cmap="gray", vmin=0, vmax=1)
axes[0].set_title("observed")
rounds = filling_order(torch.from_numpy(~hidden))
drawn = axes[1].imshow(rounds.numpy(), cmap="viridis")
axes[1].set_title("the round in which a cell is filled")
figure.colorbar(drawn, ax=axes[1], shrink=0.8)
axes[2].imshow(completer.fit_transform(X), cmap="gray", vmin=0, vmax=1)
axes[2].set_title("completed")
for axis in axes:
    axis.set_axis_off()
