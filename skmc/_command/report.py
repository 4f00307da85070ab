"""Reports of a comparison, on a terminal and as a self-contained page."""

from __future__ import annotations

import base64
import importlib
import io
import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

import skmc
from skmc._command.arguments import METRICS, PATTERNS
from skmc._command.file import File
from skmc.model_selection import ComparisonDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNIFICANCE_LEVEL = 0.05
COLUMNS = ("± std. error", "p", "seconds", "MiB", "warnings")


class Report:
    """The table of `skmc.model_selection.compare` and its settings."""

    def __init__(
        self, table: Any, file: File, cells: Any, seen: np.ndarray, options: Namespace
    ):
        self.table, self.options = table, options
        self.cells, self.seen, self.one_unit = cells, seen, file.one_unit
        columns = getattr(file, "columns", ())
        has_all_columns = len(columns) == cells.shape[1]
        self.names = [c.name for c in columns if has_all_columns or c.numeric]
        self.metric = options.metric or "nmae"
        error = f"error is {file.error or METRICS[self.metric]}"
        if options.draws is not None:
            self.metric = "crps"
            error = (
                f"score is the CRPS (continuous ranked probability score) of "
                f"{options.draws} draws in standard deviations of the columns"
            )
        self.head = ("method", self.metric, *COLUMNS)
        self.title = f"Which method completes {options.source} best?"
        shape = "{} x {}".format(*seen.shape)
        self.text = (
            f"{shape} cells, {seen.sum()} of them observed. A fifth was hidden "
            f"{PATTERNS[options.pattern]}, {options.splits} times (seed "
            f"{options.seed}), and completed from the others.{file.matrix_of} "
            f"The {error}; lower is better. A method with p "
            f"below {SIGNIFICANCE_LEVEL} is significantly worse than the best."
        )

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Rank ("best", "equal", "worse", "failed") and cells of each row."""
        for k, row in enumerate(self.table.itertuples()):
            if math.isnan(row.mean):
                kind = "failed"
            elif k == 0:
                kind = "best"
            else:
                kind = "worse" if row.p_value < SIGNIFICANCE_LEVEL else "equal"
            yield (
                kind,
                [
                    row.completer,
                    "failed" if kind == "failed" else f"{row.mean:.4f}",
                    _number(row.std_error, ".4f"),
                    "< .001" if row.p_value < 0.001 else _number(row.p_value, ".3f"),
                    f"{row.seconds:.2f}",
                    _number(row.memory_mib, ".0f"),
                    str(row.warnings or ""),
                ],
            )

    def print(self) -> None:
        from rich.box import SIMPLE
        from rich.console import Console
        from rich.table import Table

        width = None if sys.stdout.isatty() else 120
        console = Console(file=sys.stdout, width=width)
        table = Table(box=SIMPLE)
        for k, name in enumerate(self.head):
            table.add_column(name, justify="right" if k else "left")
        styles = {"best": "bold green", "worse": "dim", "failed": "red", "equal": ""}
        for kind, cells in self.rows():
            table.add_row(*cells, style=styles[kind])
        console.print(table)
        if not self.options.quiet:
            for line in (self.text, *self._warned()):
                console.print(line, markup=False, highlight=False)

    def _warned(self) -> list[str]:
        """Warnings, and the methods that caused them."""
        names: dict[str, list[str]] = {}
        for row in self.table.itertuples():
            for text in row.messages:
                names.setdefault(text, []).append(row.completer)
        return [f"{', '.join(who)} warned: {text}" for text, who in names.items()]

    def html(self, best: Any) -> str:
        """The report as one self-contained page; the best method completes the file."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.head)
        body = "\n".join(
            f'<tr class="{kind}">{"".join(f"<td>{escape(c)}</td>" for c in cells)}</tr>'
            for kind, cells in self.rows()
        )
        failed = [
            f"<p><b>{escape(row.completer)}</b> failed: {escape(row.error)}</p>\n"
            for row in self.table.itertuples()
            if row.error
        ]
        warned = [f"<p>{escape(line)}</p>\n" for line in self._warned()]
        figures = "\n".join(
            f'<h2>{escape(title)}</h2>\n<img alt="{escape(title)}" '
            f'src="data:image/png;base64,{picture}">'
            for title, picture in self._figures(best)
        )
        page = files("skmc._command").joinpath("report.html").read_text("utf-8")
        return Template(page).substitute(
            title=escape(self.title),
            text=escape(self.text),
            head=head,
            body=body,
            messages="".join([*failed, *warned]),
            figures=figures,
            version=skmc.__version__,
        )

    def _figures(self, best: Any) -> Iterator[tuple[str, str]]:
        import matplotlib

        matplotlib.use("Agg")
        good = self.table[self.table["mean"].notna()]
        display = ComparisonDisplay(good).plot()
        display.axes_[0, 0].set(title="", xlabel=self.metric)
        yield (
            f"{self.metric} and standard errors; filled: not significantly worse than "
            "the best",
            _encoded(display.figure_),
        )
        yield f"{self.metric} and time", _encoded(_scatter(good, self.metric))
        if not (self.one_unit or self.seen.all()):
            from skmc.plot import DistributionDisplay

            pandas = importlib.import_module("pandas")
            before, after = self.cells, clone(best).fit_transform(self.cells)
            if isinstance(before, np.ndarray):
                names = self.names or None
                before, after = (
                    pandas.DataFrame(x, columns=names).infer_objects()
                    for x in (before, after)
                )
            shown = DistributionDisplay.from_completion(before, after)
            title = f"Imputed and observed values: {good['completer'].iloc[0]}"
            yield title, _encoded(shown.figure_)


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def _scatter(table: Any, metric: str) -> Any:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
    ax.scatter(table["seconds"], table["mean"])
    for row in table.itertuples():
        ax.annotate(
            row.completer,
            (row.seconds, row.mean),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8,
        )
    ax.set(xscale="log", xlabel="seconds per fit", ylabel=metric)
    ax.margins(x=0.25)  # for the names
    ax.grid(alpha=0.3)
    return figure


def _encoded(figure: Figure) -> str:
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    plt.close(figure)
    return base64.b64encode(file.getvalue()).decode()
