"""The rank, and the chosen rank."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SVDCompleter, patterns
from skmc.metrics import relative_error

rng = np.random.RandomState(0)
truth = rng.randn(80, 5) @ rng.randn(5, 60)
noisy = truth + 0.5 * rng.randn(80, 60)
hidden = patterns.random(truth, 0.4, random_state=0)
X = np.ma.masked_array(noisy, hidden)
ranks = np.arange(1, 13)
fits = [SVDCompleter(int(r), device="cpu").fit(X).reconstruction_ for r in ranks]
figure, axis = plt.subplots(figsize=(6.5, 3.4))
axis.plot(ranks, [relative_error(f, truth, hidden) for f in fits], "o-", label="hidden")
axis.plot(
    ranks, [relative_error(f, noisy, ~hidden) for f in fits], "s:", label="observed"
)
chosen = SVDCompleter(device="cpu", random_state=0).fit(X).rank_
axis.axvline(chosen, color="C2", ls="--", label=f'"auto" chooses {chosen}')
axis.set(xlabel="rank", ylabel="relative error")
axis.legend()
