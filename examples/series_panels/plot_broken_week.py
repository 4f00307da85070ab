"""
Fill a long gap in the time series of a sensor
==============================================

Twelve sensors count vehicles every hour. One of them was broken for a week, and all of
them lose single hours. A line through the gap misses the daily pattern, and the mean of
each hour misses that this week was busy. The other sensors saw it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter

from skmc import SeriesCompleter
from skmc.metrics import rmse

# %%
# Five weeks of twelve sensors
# ----------------------------
# The data are simulated, so we know the truth. Traffic has two daily patterns, whose
# sizes change from day to day for all sensors. The fourth week is busy.
rng = np.random.RandomState(0)
hours = pd.date_range("2024-03-04", periods=24 * 35, freq="h")
hour, day = hours.hour.to_numpy(), np.arange(len(hours)) // 24
commute = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6)
leisure = np.exp(-((hour - 14) ** 2) / 12)
weekend, busy = day % 7 >= 5, day // 7 == 3
sizes = 1 + 0.15 * rng.randn(35, 2)
traffic = np.outer(
    commute * np.where(weekend, 0.2, 1.0) * sizes[day, 0], rng.uniform(50, 300, 12)
) + np.outer(
    leisure * np.where(weekend | busy, 1.6, 0.6) * sizes[day, 1],
    rng.uniform(50, 200, 12),
)
names = [f"sensor {k}" for k in range(12)]
truth = pd.DataFrame(20 + traffic + 6 * rng.randn(*traffic.shape), hours, names)

hidden = rng.rand(*truth.shape) < 0.05
broken = busy & (day >= 21)
hidden[broken, 0] = True
counts = truth.mask(hidden)

# %%
# The completion
# --------------
# `SeriesCompleter` finds the daily and the weekly period by itself.
completer = SeriesCompleter(random_state=0).fit(counts)
completed = completer.transform(counts)
low, high = completer.predict_interval(counts)
print(f"Periods: {completer.periods_} hours")

line = counts.interpolate(limit_direction="both")
means = counts.fillna(counts.groupby(hour).transform("mean"))
week = np.zeros(truth.shape, bool)
week[broken, 0] = True
for name, found in (("line", line), ("mean", means), ("completion", completed)):
    error = rmse(found, truth, week)
    print(f"{name:>10}: RMSE of the broken week {error:.0f} vehicles")
inside = ((low <= truth) & (truth <= high)).to_numpy()[week].mean()
print(f"{100 * inside:.0f} % of this week's hours lie in the 90 % intervals.")

# %%
# The broken week
# ---------------
shown = slice(24 * 20, 24 * 29)
fig, ax = plt.subplots(figsize=(9, 3.6))
own = "sensor 0"
ax.fill_between(
    hours[shown], low[own][shown], high[own][shown], color="C0", alpha=0.25, lw=0,
    label="90 % interval",
)  # fmt: skip
ax.plot(hours[shown], truth[own][shown], "k", lw=0.8, label="truth")
ax.plot(hours[shown], completed[own][shown], "C0", lw=1.4, label="completion")
ax.plot(hours[shown], means[own][shown], "C1:", lw=1.4, label="mean of the hour")
ax.axvspan(hours[broken][0], hours[broken][-1], color="0.93", zorder=0)
ax.set(ylabel="vehicles per hour", title="Sensor 0 was broken in the gray week")
ax.legend(ncols=4, loc="upper left", fontsize=8, frameon=False)
ax.set_ylim(top=1.25 * float(truth[own].max()))
ax.xaxis.set_major_formatter(DateFormatter("%d %b"))
fig.tight_layout()
plt.show()
