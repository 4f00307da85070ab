"""The graph of columns that NCARL learns."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import NCARLCompleter, patterns
from skmc.plot import LaplacianDisplay

rng = np.random.RandomState(0)
groups = np.sort(rng.randint(3, size=36))
truth = rng.randn(60, 3)[:, groups] + 0.4 * rng.randn(60, 36)
X = np.ma.masked_array(truth, patterns.random(truth, 0.5, random_state=0))
shuffled = rng.permutation(36)
ncarl = NCARLCompleter(device="cpu", random_state=0).fit(X[:, shuffled])
figure, axes = plt.subplots(1, 2, figsize=(7, 3.5))
display = LaplacianDisplay({"columns": ncarl.laplacian_})
display.plot(ax=axes[:1], colorbar=False)
axes[0].set_title("learned graph, original order")
display.plot(ax=axes[1:], order={"columns": np.argsort(shuffled)}, colorbar=False)
axes[1].set_title("the same, sorted by group")
