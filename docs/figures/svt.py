"""The effect of tau on the bias and on the number of steps."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import IALMCompleter, SVTCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
truth = rng.randn(60, 3) @ rng.randn(3, 60)
hidden = patterns.random(truth, 0.5, random_state=0)
X = np.ma.masked_array(truth, hidden)
exact = IALMCompleter(device="cpu").fit(X).reconstruction_
taus = [0.1, 0.2, 0.5, 1, 2, 5]
fits = [SVTCompleter(tau, device="cpu").fit(X) for tau in taus]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
axes[0].loglog(
    taus, [relative_error(f.reconstruction_, exact) for f in fits], "o-", ms=4
)
axes[0].set(xlabel="tau", ylabel="distance", title="from the minimum nuclear norm")
axes[1].semilogx(taus, [f.n_iter_ for f in fits], "o-", ms=4)
axes[1].set(xlabel="tau", ylabel="steps", title="until convergence")
