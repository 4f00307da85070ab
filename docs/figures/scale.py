"""Recorded time and memory by number of ratings, in memory and in blocks."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

# The plot directive runs this file in its own folder.
path = Path("../reproduction/records/speed-scale.json")
record = json.loads(path.read_text())["growth"]
hardware = record.pop("hardware")
sizes = sorted(record, key=float)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for how, label in (("memory", "in memory"), ("blocks", "in blocks")):
    runs = [(float(n), record[n][how]) for n in sizes if how in record[n]]
    x = [n for n, _ in runs]
    (line,) = axes[0].loglog(
        x, [run["seconds"]["fit"][1] for _, run in runs], "o-", label=f"fit {label}"
    )
    if how == "blocks":
        sort = [run["seconds"]["read"][1] for _, run in runs]
        axes[0].loglog(x, sort, "o:", color=line.get_color(), label="sort")
    memory = [run["peak bytes"] / 1e9 for _, run in runs]
    axes[1].semilogx(x, memory, "o-", label=label)
axes[0].set(xlabel="ratings", title="processor seconds")
axes[1].set(xlabel="ratings", title="largest memory, GB", ylim=(0, None))
axes[0].yaxis.set_minor_formatter(NullFormatter())
for axis in axes:
    axis.grid(True, alpha=0.3)
    axis.legend()
figure.suptitle(hardware, fontsize="small")
