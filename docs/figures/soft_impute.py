"""The path of weights, and the chosen weight."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SoftImputeCompleter, patterns

rng = np.random.RandomState(0)
truth = rng.randn(80, 5) @ rng.randn(5, 60)
noisy = truth + 0.7 * rng.randn(80, 60)
X = np.ma.masked_array(noisy, patterns.random(noisy, 0.4, random_state=0))
completer = SoftImputeCompleter(device="cpu", random_state=0).fit(X)
path = completer.path_
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
for axis, name in zip(axes, ("error", "rank"), strict=True):
    axis.semilogx(path["lambda_nuclear"], path[name], "o-", ms=4)
    axis.axvline(completer.lambda_nuclear_, color="C1", ls="--", label="chosen")
    axis.invert_xaxis()
    axis.set(xlabel="lambda", title=f"{name} along the path")
axes[0].set_ylabel("root mean square, held-out cells")
axes[1].axhline(5, color="0.6", ls=":", label="truth")
axes[1].legend()
