"""
An event study with states that start at different times
=========================================================

Six of 40 states start a policy, some of them later than others. Weights of the other
states estimate what would have happened without it, and the event study aligns the
states at their own first year.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmc.panel import effect, simulate
from skmc.plot import EventStudyDisplay

# %%
# Forty states that drift
# -----------------------
# Each state has a level and drifts away from the common trend; two trends affect some
# states more than others. The policy adds one unit in its first year, two in the next,
# and three from then on.
rng = np.random.RandomState(0)
years = np.arange(1990, 2015)
states = [f"state {k}" for k in range(40)]
drift = np.cumsum(0.5 * rng.randn(40, 25), axis=1)
trends = np.cumsum(rng.randn(2, 25), axis=1)
jobs = 60 + 8 * rng.randn(40, 1) + 0.4 * (years - 1990)
jobs = jobs + drift + rng.randn(40, 2) @ trends + 0.3 * rng.randn(40, 25)
jobs = pd.DataFrame(jobs, states, years)

treated = pd.DataFrame(False, states, years)
treated.iloc[:4] = years >= 2006
treated.iloc[4:6] = years >= 2009
since = treated.cumsum(axis=1)
jobs = jobs + since.clip(upper=3)

# %%
# Which estimator?
# ----------------
# States without the policy take the place of those with it. There is no effect, so each
# estimate is an error. This comparison does not look at the treated cells.
print(simulate(jobs, treated, n_draws=20, random_state=0))

# %%
# The effect
# ----------
# The average is over all treated years of all treated states.
found = effect(jobs, treated, weights="averaged", random_state=0)
print(found.summary())
truth = since.clip(upper=3).to_numpy()[treated].mean()
print(f"\nThe true average effect is {truth:.2f}.")

# %%
# The event study
# ---------------
# Before the policy, the intervals contain zero, and the gaps are smallest in the last
# years, which have the largest weights. After it, the gaps grow to three. The bars are
# 90 % intervals of each year from the placebo states.
display = EventStudyDisplay.from_effect(found)
(axis,) = display.axes_
years_since = display.since
axis.step(years_since, np.clip(years_since + 1, 0, 3), "C0", where="mid", label="truth")
axis.set(xlabel="years since the policy", ylabel="gap")
axis.legend(loc="upper left")
plt.show()
