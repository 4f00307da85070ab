"""The energies of a picture fade, and its error with them."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from skmc import AIRCompleter, patterns

photo = load_sample_image("china.jpg")[100:228, 230:358].mean(2) / 255
X = np.ma.masked_array(photo, patterns.random(photo, 0.3, random_state=0))
given = {"scaling": "global", "device": "cpu", "random_state": 0}
held_out = {**given, "early_stopping": True, "n_iter_no_change": 400}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), constrained_layout=True)
history = AIRCompleter(0.25, 0.25, **given).fit(X).history_
for name in ("rows", "columns"):
    left.semilogy(history["n_iter"], history[f"energy_{name}"], label=f"energy, {name}")
misfit = history["objective"] - history["energy_rows"] - history["energy_columns"]
left.semilogy(history["n_iter"], misfit, "k:", label="misfit")
left.set(xlabel="steps", title="Terms of the objective")
left.legend()
for weight, label in ((0.25, "with energies"), (0.0, "without")):
    air = AIRCompleter(
        weight, weight, early_stopping=True, n_iter_no_change=400, **given
    )
    history = air.fit(X).history_
    right.plot(history["n_iter"], history["validation"], label=label)
right.set(xlabel="steps", title="Error of held-out cells", ylim=(0, 1))
right.legend()
