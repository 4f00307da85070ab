"""Several methods on one table, the best of them, and how sure it is."""

import numpy as np

from skmc import AutoCompleter, ChainedCompleter, KNNCompleter, MeanCompleter
from skmc.model_selection import compare
from skmc.persistence import load, save
from skmc.uncertainty import MultipleCompletion

X = np.random.RandomState(0).randn(30, 5)
X[::3, 1] = np.nan
found = compare({"KNN": KNNCompleter(5), "mean": MeanCompleter()}, X, random_state=0)
auto = AutoCompleter(["mean", "knn"], max_time=10.0, random_state=0).fit(X)
weights: dict[str, float] = auto.weights_
save(auto, "auto.skmc")
again = load("auto.skmc")
draws = MultipleCompletion(ChainedCompleter(random_state=0), n_draws=2).fit(X)
