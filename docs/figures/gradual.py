"""Gradual learning: the schedule of mu."""

import matplotlib.pyplot as plt
import numpy as np

from skmc.solvers import CosineSchedule

figure, axis = plt.subplots(figsize=(5, 3.6))
epochs = np.arange(1001)
for mu_max in (1e5, 1e3, 1):
    schedule = CosineSchedule(mu_max, 1, 1000)
    label = f"mu_max = {mu_max:g}"
    axis.semilogy(epochs, [schedule(k) for k in epochs], label=label)
axis.set(xlabel="epoch", title="mu: the slack weighs 1 / (2 mu)")
axis.legend()
