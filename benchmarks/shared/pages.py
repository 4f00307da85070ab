"""Where pages and records go, and how tables are written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from textwrap import fill
from typing import Any

import numpy as np
import torch

from benchmarks.shared import made
from benchmarks.shared.made import DOCS, PAGES, processor
from benchmarks.shared.registry import of_page

TEMPLATES = DOCS / "templates"
OURS = r"Completer|\bskmc\b|\bours\b"
COLORS = "C0", "0.4", "C1", "C2", "C3", "C4", "C5", "C6"


def hardware() -> str:
    """The processor and the number of threads."""
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} threads, torch {torch.__version__}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def best(cells: Sequence[str], higher: bool = False) -> list[str]:
    """Print the smallest of our figures in bold, or the largest."""

    def loss(cell: str) -> float:
        try:
            return float(cell.split()[0]) * (-1 if higher else 1)
        except ValueError:
            return math.inf

    least = min(map(loss, cells))
    return [f"**{c}**" if loss(c) == least < math.inf else c for c in cells]


def write_page(name: str, fields: Mapping[str, object]) -> None:
    """Write ``name.md``: the template of this name with its fields filled in.

    The last line says when and on what the results were made.
    """
    template = Template((TEMPLATES / f"{name}.md").read_text())
    record = of_page(name)
    path = PAGES / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = template.substitute(fields)
    path.write_text(f"{text}\n{made.line(record)}\n")
    print(f"Wrote {path}", flush=True)


def save_figure(figure: Any, name: str, dpi: int = 64) -> None:
    """Write a Matplotlib figure to ``name.png`` and close it."""
    import matplotlib.pyplot as plt

    path = PAGES / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    print(f"Wrote {path}", flush=True)


def axes_of(labels: Iterable[str]) -> tuple[Any, Any, list[str]]:
    """A figure that is legible on a telephone, its axes, and labels that fit."""
    import matplotlib.pyplot as plt

    wrapped = [fill(x.replace("`", ""), 32, break_long_words=False) for x in labels]
    line = 0.46 if any("\n" in label for label in wrapped) else 0.3
    with plt.rc_context({"font.size": 11}):
        figure, axes = plt.subplots(
            figsize=(5.6, 1.1 + line * len(wrapped)), layout="constrained"
        )
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes, wrapped


def shown(figure: Any, name: str, what: str) -> str:
    """Save a figure of `axes_of`; returns the Markdown that shows it."""
    save_figure(figure, name, 115)
    return f"![{what}]({name}.png)"


def short(value: float) -> str:
    """Three digits."""
    return f"{value:#.3g}".rstrip(".")


def chart(
    name: str,
    measure: str,
    values: Mapping[str, float],
    unit: str = "",
    higher: bool = False,
) -> str:
    """A chart of one number for each method; returns the Markdown that shows it.

    The best method is on top, the one with the lowest or the ``higher`` number. Methods
    that are ours by their names have a color.
    """
    ordered = sorted(values.items(), key=lambda pair: pair[1], reverse=not higher)
    labels = [label for label, _ in ordered]
    numbers = [value for _, value in ordered]
    colors = ["C0" if re.search(OURS, label) else "0.7" for label in labels]
    figure, axes, wrapped = axes_of(labels)
    bars = axes.barh(wrapped, numbers, color=colors)
    axes.bar_label(bars, [f" {short(value)}{unit}" for value in numbers])
    axes.margins(x=0.15, y=0.02)
    axes.locator_params(axis="x", nbins=6)
    figure.supxlabel(measure, x=0.99, ha="right", fontsize=11)
    return shown(figure, name, f"{measure} of each method")


def dots(
    name: str,
    measure: str,
    rows: Mapping[str, Mapping[str, float | None]],
    log: bool = False,
    at: float | None = None,
) -> str:
    """A chart of some numbers for each case, from above; returns its Markdown.

    ``rows`` holds them by case and method. There is a vertical line ``at`` a number.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes, labels = axes_of(rows)
    places = -np.arange(len(rows))
    axes.set_yticks(places, labels)
    methods = list(
        dict.fromkeys(m for row in rows.values() for m in row if row[m] is not None)
    )
    styles = zip("osDv^XP*", COLORS, strict=True)
    if at is not None:
        axes.axvline(at, color="0.7", linewidth=1)
    for method, (marker, color) in reversed(list(zip(methods, styles, strict=False))):
        numbers = np.array([row.get(method) for row in rows.values()], float)
        label = method.replace("`", "")
        axes.plot(numbers, places, marker, color=color, label=label, markersize=7)
    if log:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5)[: 3 if high < 50 * low else 1], numticks=4)
        )
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylim(0.3 - max(len(rows), 1), 0.7)
    figure.supxlabel(measure, x=0.99, ha="right", fontsize=11)
    axes.tick_params(axis="y", length=0)
    if len(methods) > 1:
        figure.legend(
            *(part[::-1] for part in axes.get_legend_handles_labels()),
            loc="outside upper center",
            ncols=max(1, 60 // (8 + max(map(len, methods)))),
            frameon=False,
        )
    return shown(figure, name, f"{measure}: {', '.join(methods)}".replace("`", ""))


def folded(summary: str, text: str) -> str:
    """Text that a click opens."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def record(name: str, found: Mapping[str, Any]) -> None:
    """Print results and add them to ``name.json``."""
    print(json.dumps(found, indent=2), flush=True)
    made.add(name, found, made.indented)
