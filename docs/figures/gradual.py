"""Gradual learning: the schedule of mu, and the recorded effect of its start."""

import json
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skmc.solvers import CosineSchedule

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
epochs = np.arange(1001)
for mu_max in (1e5, 1e3, 1):
    schedule = CosineSchedule(mu_max, 1, 1000)
    label = f"mu_max = {mu_max:g}"
    axes[0].semilogy(epochs, [schedule(k) for k in epochs], label=label)
axes[0].set(xlabel="epoch", title="mu: the slack weighs 1 / (2 mu)")
axes[0].legend()

# The plot directive runs this file in its own folder.
records = json.loads(Path("../reproduction/records/networks.json").read_text())
for missing in ("50 %", "80 %"):
    errors = defaultdict(list)
    for key, record in records.items():
        part, data, name, _ = key.split("/", 3) if key.count("/") == 3 else [""] * 4
        if part == "table5" and data == missing and name[0].isdigit():
            errors[float(name)].append(record["percent"])
    starts = sorted(errors)
    axes[1].semilogx(
        starts, [np.mean(errors[m]) for m in starts], "o-", label=f"{missing} hidden"
    )
axes[1].set(xlabel="mu_max", title="% of the hidden energy lost, as recorded")
axes[1].set_ylim(0, None)
axes[1].legend()
