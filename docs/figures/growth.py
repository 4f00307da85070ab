"""Recorded times of a step against size."""

import json
from pathlib import Path

import matplotlib.pyplot as plt


def record(name):
    # The directive has moved to this file's folder.
    path = Path("../reproduction") / f"speed-{name}.json"
    return json.loads(path.read_text())["growth"]


figure, axes = plt.subplots(1, 3, figsize=(11, 3.6))
panels = {
    "AIR, an iteration of m x m (ms)": record("air"),
    **record("low-rank"),
}
panels.pop("hardware")
titles = iter(
    ["AIR: ms an iteration", "least squares: s a sweep", "least squares: s a sweep"]
)
labels = iter(["rows and columns", "ratings", "rows, 50 ratings each"])
for axis, times in zip(axes, panels.values(), strict=True):
    points = {
        float(size.removeprefix("m = ")): seconds
        for size, seconds in times.items()
        if size != "hardware"
    }
    axis.loglog(list(points), list(points.values()), "o-")
    axis.set(xlabel=next(labels), title=next(titles))
    axis.grid(True, which="major", alpha=0.3)
    axis.minorticks_off()
