"""
How sure is a completed passenger list?
=======================================

A simulated list of passengers has numbers, categories, ordered classes, dates, and
names, which cannot be inferred. `AutoCompleter` completes it without preparation, and
gives intervals for the ages.
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmc import AutoCompleter

# %%
# The list
# --------
# First-class passengers are older and pay more; children travel with their parents.
rng = np.random.RandomState(0)
n = 600
grade = rng.choice(3, n, p=[0.25, 0.25, 0.5])
family = rng.poisson(0.6, n)
age = (44 - 7 * grade - 5 * family + 9 * rng.randn(n)).clip(1, 80).round()
fare = np.exp(4.4 - 0.9 * grade + 0.3 * family + 0.25 * rng.randn(n)).round(2)
port = np.where(rng.uniform(size=n) < 0.8, np.array(["C", "Q", "S"])[grade], "S")
truth = pd.DataFrame(
    {
        "name": [f"Passenger {k}" for k in range(n)],
        "class": pd.Categorical.from_codes(
            grade, ["first", "second", "third"], ordered=True
        ),
        "age": age,
        "family": family,
        "fare": fare,
        "port": port,
        "boarded": pd.Timestamp("1912-04-10") + pd.to_timedelta(grade // 2, "D"),
    }
)
hidden = rng.uniform(size=truth.shape) < 0.2
hidden[:, [0, 3]] = False  # all names and families are known
damaged = truth.mask(hidden)

# %%
# The completion
# --------------
# Three candidates keep this example short; the default is all for which there is time.
# The warning lists the columns that are returned unchanged.
completer = AutoCompleter(["KNN", "Gaussian", "copula"], random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    completed = completer.fit_transform(damaged)
print(caught[0].message)
print(completer.verdict_)
for name in ("class", "port", "boarded"):
    holes = hidden[:, truth.columns.get_loc(name)]
    right = (completed[name] == truth[name])[holes].mean()
    print(f"{name}: {right:.0%} of {holes.sum()} hidden cells are right")

# %%
# How sure are the ages?
# ----------------------
# The intervals are calibrated on held-out cells, and should contain 90 % of the hidden
# ages.
column = truth.columns.get_loc("age")
holes = hidden[:, column]
low, high = (bound[:, column] for bound in completer.predict_interval(damaged, 0.9))
inside = truth["age"].between(low, high)[holes].mean()
print(f"{inside:.0%} of the hidden ages are in their interval")

# %%
# The answer
# ----------
figure, (table, axis) = plt.subplots(
    1, 2, figsize=(12, 4.5), width_ratios=[1.2, 1], layout="constrained"
)
shown = completed.drop(columns="name")[:12].assign(
    boarded=lambda t: t["boarded"].dt.date
)
cells = table.table(
    shown.astype(str).to_numpy(),
    cellColours=np.where(hidden[:12, 1:], "moccasin", "white"),
    colLabels=shown.columns,
    bbox=[0, 0, 1, 1],
)
cells.auto_set_font_size(False)
cells.set_fontsize(9)
table.set_axis_off()
table.set_title("Completed cells are shaded")
ages = completed["age"].to_numpy()
order = np.flatnonzero(holes)[np.argsort(ages[holes], kind="stable")]
place = np.arange(len(order))
axis.vlines(place, low[order], high[order], color="tab:orange", alpha=0.5)
axis.plot(place, truth["age"].to_numpy()[order], "k.", ms=4, label="true age")
axis.plot(place, ages[order], color="tab:red", label="completed, with 90 % interval")
axis.set(xlabel="passengers of unknown age", ylabel="age")
axis.set_title(f"{inside:.0%} of the true ages are in their interval")
axis.legend()
target = Path(sys.argv[0] or "passengers.py").with_suffix(".png")
figure.savefig(target, dpi=100)
print(f"Wrote {target}")
