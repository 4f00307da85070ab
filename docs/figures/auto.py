"""The candidates that AutoCompleter tries on a picture and their weights."""

import matplotlib.pyplot as plt

from skmc import AutoCompleter, patterns
from skmc.datasets import load_photo

photo = load_photo("flower").astype(float)[60:140, 80:180]
hidden = patterns.random(photo, 0.3, random_state=0)
X = photo.copy()
X[hidden] = float("nan")
names = ["mean", "knn", "svd", "ialm", "ncarl", "air", "patch-cnn"]
auto = AutoCompleter(names, random_state=0).fit(X)
board = auto.leaderboard_[::-1]
figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), sharey=True, layout="constrained")
for axis, name in zip(axes, ["error", "weight", "seconds"], strict=True):
    axis.barh(board["candidate"], board[name])
    axis.set_xlabel(name)
axes[0].set_xlabel("root mean squared error on held-out cells")
axes[2].set_xscale("log")
