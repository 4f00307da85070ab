"""Conditional means and deviations of one column, given the other."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import GaussianCompleter

rng = np.random.RandomState(0)
x = rng.randn(120)
table = np.c_[x, 0.8 * x + 0.5 * rng.randn(120)]
truth = table.copy()
table[::4, 1] = np.nan
completer = GaussianCompleter(random_state=0, device="cpu")
completed = completer.fit_transform(table)
missing = np.isnan(table[:, 1])
half = 1.645 * completer.predict_std(table)[missing, 1]
figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axis.plot(*truth[~missing].T, ".", color="0.7", label="observed")
axis.errorbar(
    completed[missing, 0],
    completed[missing, 1],
    half,
    fmt="o",
    ms=4,
    lw=1,
    label="completed, with 90 % intervals",
)
axis.plot(*truth[missing].T, "x", color="C3", label="truth")
axis.set(xlabel="first column", ylabel="second column")
axis.legend()
