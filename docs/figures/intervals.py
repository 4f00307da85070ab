"""The coverage of intervals."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import SVDCompleter, patterns
from skmc.uncertainty import MultipleCompletion

rng = np.random.RandomState(0)
truth = rng.randn(80, 3) @ rng.randn(3, 40) + 0.5 * rng.randn(80, 40)
hidden = patterns.random(truth, 0.3, random_state=0)
X = np.ma.masked_array(truth, hidden)
many = MultipleCompletion(SVDCompleter(3, device="cpu"), random_state=0).fit(X)
levels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
held = []
for level in levels:
    low, high = many.interval(level)
    held.append(np.mean(((low <= truth) & (truth <= high))[hidden]))
figure, axis = plt.subplots(figsize=(4.6, 3.8))
axis.plot([0.45, 1], [0.45, 1], color="0.7", label="nominal")
axis.plot(levels, held, "o-", label="hidden cells in their intervals")
axis.set(xlabel="nominal coverage", ylabel="observed coverage")
axis.legend()
