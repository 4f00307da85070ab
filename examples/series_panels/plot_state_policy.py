"""
Estimate the effect of a policy in a panel
==========================================

One of 30 states starts a policy in 2000. Its sales without the policy are unknown.
`skmc.panel.effect` completes them from the other states: each state has a level, each
year has an effect on all states, and a few trends affect some states more than others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmc.panel import effect

# %%
# Thirty states for 30 years
# --------------------------
# The data are simulated: the policy lowers the sales by two more packs a head each
# year, up to 12.
rng = np.random.RandomState(0)
years = np.arange(1980, 2010)
states = [f"state {k}" for k in range(30)]
levels = 120 + 15 * rng.randn(30, 1)
shared = -1.2 * (years - 1980)
trends = np.cumsum(rng.randn(2, 30), axis=1)
noise = 2.5 * rng.randn(30, 30)
sales = pd.DataFrame(levels + shared + rng.randn(30, 2) @ trends + noise, states, years)

treated = pd.DataFrame(False, states, years)
treated.loc["state 7", 2000:] = True
true_effect = -np.minimum(12, 2 * (years - 1999))
sales = sales + treated * true_effect

# %%
# The effect and its placebos
# ---------------------------
# Each other state takes the place of the treated one (a placebo). It has no policy, so
# an effect that is found there is an error.
found = effect(sales, treated)
print(found.summary())
truth = true_effect[years >= 2000].mean()
low, high = found.interval
print(f"\nThe true effect is {truth:.1f}, the estimate {found.att:.1f}.")
print(f"The 90 % interval from placebos is [{low:.1f}, {high:.1f}].")

# Comparing with the years before attributes the decline of all states to the policy.
own = sales.loc["state 7"]
naive = own[years >= 2000].mean() - own[years < 2000].mean()
print(f"After minus before: {naive:.1f}.")

# %%
# The outcomes, and the gaps
# --------------------------
# On the left, the sales of the state and those without the policy; on the right, their
# difference, with the placebo states in gray.
found.plot()
outcomes, gaps = found.axes_
outcomes.set(xlabel="year", ylabel="packs per head")
gaps.set(xlabel="year", ylabel="observed - without policy")
gaps.plot(years[years >= 2000], true_effect[years >= 2000], "C0", label="true effect")
gaps.legend(fontsize="small")
plt.show()
