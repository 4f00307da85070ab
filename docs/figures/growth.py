"""Recorded times of a step by size."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator


def record(name):
    # The plot directive runs this file in its own folder.
    path = Path("../reproduction/records") / f"speed-{name}.json"
    return json.loads(path.read_text())["growth"]


air, least_squares = record("air"), record("low-rank")
panels = [
    ("AIR: ms an iteration", "rows and columns", air, air["hardware"]),
    *(
        ("least squares: s a sweep", label, times, least_squares["hardware"])
        for label, times in least_squares.items()
        if label != "hardware"
    ),
]
figure, axes = plt.subplots(1, len(panels), figsize=(11, 4), layout="constrained")
for axis, (title, label, times, hardware) in zip(axes, panels, strict=True):
    points = {
        float(size.removeprefix("m = ")): time
        for size, time in times.items()
        if size != "hardware"
    }
    axis.loglog(list(points), list(points.values()), "o-")
    axis.set_xlabel(label)
    where = hardware.replace(", ", "\n", 1)
    axis.set_title(f"{title}\n{where}", fontsize="small")
    axis.grid(True, which="major", alpha=0.3)
    axis.minorticks_off()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
