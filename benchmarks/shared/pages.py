"""Where pages and records go, and how tables are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

import torch

from benchmarks.shared import made, registry
from benchmarks.shared.made import DOCS, PAGES, processor
from benchmarks.shared.registry import of_page

TEMPLATES = DOCS / "templates"


def hardware() -> str:
    """The processor and the number of threads."""
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} threads, torch {torch.__version__}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page(name: str, fields: Mapping[str, object]) -> None:
    """Write ``name.md``: the template of this name with its fields filled in.

    The last line says when and on what the results were made.
    """
    template = Template((TEMPLATES / f"{name}.md").read_text())
    record = of_page(name)
    if registry.RECORDS[record].page_only:
        made.note(record, ())
    path = PAGES / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = template.substitute(fields)
    path.write_text(f"{text}\n{made.line(record)}\n")
    print(f"Wrote {path}", flush=True)


def save_figure(figure: Any, name: str) -> None:
    """Write a Matplotlib figure to ``name.png`` and close it."""
    import matplotlib.pyplot as plt

    path = PAGES / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=64)
    plt.close(figure)
    print(f"Wrote {path}", flush=True)


def chart(name: str, measure: str, values: Mapping[str, float], unit: str = "") -> str:
    """A chart of one number for each method; returns the Markdown that shows it.

    Methods are in the order of their numbers. Those with a "Completer" in their names
    are ours, and have a color.
    """
    import matplotlib.pyplot as plt

    ordered = sorted(values.items(), key=lambda pair: -pair[1])
    labels = [label.replace("`", "") for label, _ in ordered]
    numbers = [value for _, value in ordered]
    colors = ["C0" if "Completer" in label else "0.7" for label in labels]
    height = 0.6 + 0.32 * len(labels)
    figure, axes = plt.subplots(figsize=(8, height), layout="tight")
    bars = axes.barh(labels, numbers, color=colors)
    axes.bar_label(bars, [f" {value:.3g}{unit}" for value in numbers])
    axes.margins(x=0.12)
    axes.set_xlabel(measure)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, name)
    return f"![{measure} of each method]({name}.png)"


def record(name: str, found: Mapping[str, Any]) -> None:
    """Print results and add them to ``name.json``."""
    print(json.dumps(found, indent=2), flush=True)
    made.add(name, found, lambda records: json.dumps(records, indent=2) + "\n")
