"""The number of neighbors."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skmc import KNNCompleter, MeanCompleter, patterns
from skmc.metrics import nmae

truth = load_digits().data[:600]
hidden = patterns.random(truth, 0.3, random_state=0)
X = np.ma.masked_array(truth, hidden)
counts = [1, 2, 3, 5, 8, 12, 20, 40]
figure, axis = plt.subplots(figsize=(6.5, 3.4))
for weights in ("uniform", "distance"):
    errors = [
        nmae(
            KNNCompleter(k, weights=weights, device="cpu").fit_transform(X),
            truth,
            hidden,
        )
        for k in counts
    ]
    axis.semilogx(counts, errors, "o-", ms=4, label=f'weights="{weights}"')
mean = nmae(MeanCompleter().fit_transform(X), truth, hidden)
axis.axhline(mean, color="0.6", ls="--", label="MeanCompleter")
axis.set_xticks(counts, counts)
axis.minorticks_off()
axis.set(xlabel="neighbors", ylabel="NMAE of hidden pixels", ylim=(0, None))
axis.set_title("600 handwritten digits, 30 % of the pixels hidden")
axis.legend()
