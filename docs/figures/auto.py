"""The candidates that AutoCompleter tries on a picture and the ones it keeps."""

import matplotlib.pyplot as plt

from skmc import AutoCompleter, patterns
from skmc.datasets import load_photo

photo = load_photo("flower").astype(float)[60:140, 80:180]
hidden = patterns.random(photo, 0.3, random_state=0)
X = photo.copy()
X[hidden] = float("nan")
names = ["means", "KNN", "SVD", "IALM", "NCARL", "AIR", "patch CNN"]
auto = AutoCompleter(names, max_time=None, random_state=0).fit(X)
board = auto.leaderboard_[::-1]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.5), sharey=True, layout="constrained"
)
colors = ["tab:orange" if weight else "tab:blue" for weight in board["weight"]]
left.barh(board["candidate"], board["error"], color=colors)
left.set_xlabel("mean error on held-out cells (kept: orange)")
right.barh(board["candidate"], board["seconds"], color="tab:gray")
right.set(xlabel="seconds", xscale="log")
