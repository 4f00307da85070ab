"""The share of hidden cells."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from skmc import KNNCompleter, MeanCompleter, SVDCompleter, TreesCompleter, patterns
from skmc.metrics import rmse

truth = load_wine().data
truth = (truth - truth.mean(0)) / truth.std(0)
shares = [0.1, 0.2, 0.3, 0.4, 0.5]
completers = {
    "TreesCompleter": TreesCompleter(random_state=0),
    "TreesCompleter, max_iter=5": TreesCompleter(max_iter=5, random_state=0),
    "KNNCompleter": KNNCompleter(device="cpu"),
    "SVDCompleter": SVDCompleter(device="cpu", random_state=0),
    "MeanCompleter": MeanCompleter(),
}
figure, axis = plt.subplots(figsize=(6.5, 3.4))
for name, completer in completers.items():
    errors = []
    for share in shares:
        hidden = patterns.random(truth, share, random_state=0)
        X = np.ma.masked_array(truth, hidden)
        errors.append(rmse(completer.fit_transform(X), truth, hidden))
    axis.plot(shares, errors, "o-", ms=4, label=name)
axis.set(xlabel="share of hidden cells", ylabel="RMSE, in deviations", ylim=(0, None))
axis.set_title("178 wines, 13 measurements")
axis.legend(fontsize="small")
