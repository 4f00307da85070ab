"""
Impute a pandas table with categories and dates
===============================================

The orders of a shop have numbers, categories, ordered sizes and dates. A fifth of the
cells is missing. `MixedCompleter` fills them and keeps the types of the columns.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmc import GaussianCompleter, MeanCompleter, MixedCompleter

# %%
# The table
# ---------
# The orders are simulated, so that we can compare the completed cells with the truth.
# Heavy parcels are large and expensive, and distant countries wait longer. With your
# own file, you would start with ``pd.read_csv("orders.csv", parse_dates=["ordered",
# "delivered"])``.
rng = np.random.RandomState(0)
n = 500
weight = rng.gamma(2, 2, n)
country = rng.choice(3, n, p=[0.5, 0.3, 0.2])
ordered = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.randint(0, 90, n), "D")
travel = np.array([2, 5, 14])[country] + rng.randint(0, 3, n)
truth = pd.DataFrame(
    {
        "weight": weight.round(2),
        "size": pd.Categorical.from_codes(
            np.digitize(weight, [2, 4, 7]), ["S", "M", "L", "XL"], ordered=True
        ),
        "country": pd.Categorical.from_codes(country, ["France", "Spain", "Chile"]),
        "postage": (4 + 6 * country + 1.5 * weight + 0.5 * rng.randn(n)).round(2),
        "ordered": ordered,
        "delivered": ordered + pd.to_timedelta(travel, "D"),
    }
)
hidden = rng.uniform(size=truth.shape) < 0.2
orders = truth.mask(hidden)
print(orders.head())

# %%
# The completion
# --------------
# The types of the columns say what they are: an ordered category has levels, another
# category has not. `MixedCompleter` without an argument compares about twenty methods
# for at most a minute; this page names one to be quick.
completer = MixedCompleter(GaussianCompleter(marginals="copula", random_state=0))
completed = completer.fit_transform(orders)
print(completed.head())
print(completed.dtypes)

# %%
# ``completed.to_csv("completed.csv", index=False)`` would write the result to a file.
#
# How accurate is it?
# -------------------
# `error_by_type` compares with the truth: numbers and dates by the mean error relative
# to the range of the column, sizes by the mean error relative to the largest possible
# one, and countries by the share of wrong ones. The baseline fills in means, middle
# sizes and the most frequent country. If you do not know the truth,
# ``completer.score(orders)`` hides some of the observed cells instead.
baseline = MixedCompleter(MeanCompleter()).fit(orders)
errors = pd.DataFrame(
    {
        "baseline": baseline.error_by_type(orders, truth),
        "completed": completer.error_by_type(orders, truth),
    }
)
print(errors.round(3))

# %%
# The dates of delivery
# ---------------------
# A point far from the line is an order of which both dates are missing.
late = hidden[:, 5]
figure, axes = plt.subplots(
    1, 2, figsize=(11, 4), layout="constrained", width_ratios=[1, 1.3]
)
errors.plot.barh(ax=axes[0], color=["0.7", "tab:green"])
axes[0].set(xlabel="error of the missing cells", ylabel="")
for name, group in truth[late].groupby("country", observed=True):
    found = completed.loc[group.index, "delivered"]
    axes[1].plot(group["delivered"], found, ".", label=name)
ends = [truth["delivered"].min(), truth["delivered"].max()]
axes[1].plot(ends, ends, color="0.7", lw=1)
axes[1].set(xlabel="true day of delivery", ylabel="completed")
axes[1].tick_params(axis="x", rotation=30)
axes[1].legend()
plt.show()
