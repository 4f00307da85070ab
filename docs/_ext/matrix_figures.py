"""Figures of small matrices as HTML, which follow the theme and the width of the page.

``{matrix-figure} NAME`` is replaced by steps side by side, or one below the other on a
telephone. Each step has a title, a matrix and a sentence. In a matrix, ``o`` is an
observed cell, ``.`` a missing one, ``c`` a completed one, ``h`` one that is hidden to
be compared, ``x`` its completion, and ``r`` a whole row or column.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive

SIZE = 14  # of a cell, in pixels
FLOW, CARDS = "flow", "cards"
# Kind of figure, label for readers of screens, steps.
FIGURES = {
    "in-and-out": (
        FLOW,
        "What goes in and what comes out",
        [
            (
                "In",
                "o.oooo ooo.oo oooo.o .ooooo oo.oo. oooo.o",
                "Numbers, words, dates, ratings or pixels. Some cells are missing.",
            ),
            (
                "fit",
                "..r... ..r... rrrrrr ..r... ..r... ..r...",
                "The completer learns from the observed cells how rows and columns "
                "depend on each other.",
            ),
            (
                "transform",
                "ocoooo ooocoo ooooco cooooo oocooc ooooco",
                "Missing cells are filled. Observed ones stay as they are.",
            ),
            (
                "and more",
                "...... ...... cccccc",
                "New rows, draws and intervals for uncertainty, recommendations.",
            ),
        ],
    ),
    "methods": (
        CARDS,
        "Which method for which data",
        [
            (
                "Table",
                "o.oooo ooo.oo oooo.o .ooooo oo.oo. oooo.o",
                "MixedCompleter. In a second: GaussianCompleter. If an analysis "
                "follows: ChainedCompleter.",
            ),
            (
                "Picture",
                "oooooo oo..oo o...oo oo..oo oooooo .ooooo",
                "pictures.complete, with NonlocalCompleter. Quickly: "
                "BiharmonicCompleter.",
            ),
            (
                "Ratings, clicks",
                ".o...o ..o... o....o ...o.. .o.... ....o.",
                "FactorizationCompleter. Lower errors: BayesianFactorizationCompleter.",
            ),
            (
                "Series over time",
                "oooooo o.oooo o.oo.o o.oo.o oooo.o oooooo",
                "SeriesCompleter, with a row for each time.",
            ),
            (
                "Treated units",
                "oooooo oooooo oooooo ooo... ooo... oooo..",
                "panel.effect: what would have been without treatment.",
            ),
            (
                "Low rank",
                "o.oo.o .oo.oo oo.o.o o.o.oo .oo.oo oo.oo.",
                "FactorizationCompleter with noise, LogDetCompleter without.",
            ),
        ],
    ),
    "judged": (
        FLOW,
        "How a completion is judged",
        [
            (
                "Your data",
                "o.oooo ooo.oo oooo.o .ooooo oo.oo. oooo.o",
                "The truth of the missing cells is unknown.",
            ),
            (
                "Hide",
                "o.hooo hoo.oo oooo.h .oohoo oh.oo. ooho.o",
                "Some observed cells are hidden, too, in the pattern of the missing "
                "ones.",
            ),
            (
                "Complete",
                "ocxooo xoocoo oooocx cooxoo oxcooc ooxoco",
                "Each method fills all gaps and sees only the other cells.",
            ),
            (
                "Compare",
                "..x... x..... .....x ...x.. .x.... ..x...",
                "Hidden cells have a known truth. The mean error there judges the "
                "method. Repeat, and test differences.",
            ),
        ],
    ),
}


def picture(cells: str) -> str:
    rows = cells.split()
    width, height = SIZE * max(map(len, rows)), SIZE * len(rows)
    rects = "".join(
        f'<rect class="{"none" if kind == "." else kind}" x="{SIZE * j + 1}" '
        f'y="{SIZE * i + 1}" width="{SIZE - 2}" height="{SIZE - 2}" rx="2"/>'
        for i, row in enumerate(rows)
        for j, kind in enumerate(row)
    )
    return f'<svg width="{width}" height="{height}" aria-hidden="true">{rects}</svg>'


def figure(name: str) -> str:
    kind, label, steps = FIGURES[name]
    parts = [
        f"<li><strong>{escape(title)}</strong>{picture(cells)}"
        f"<span>{escape(text)}</span></li>"
        for title, cells, text in steps
    ]
    return (
        f'<figure class="matrices" aria-label="{escape(label)}">'
        f'<ul class="{kind}">{"".join(parts)}</ul></figure>'
    )


class MatrixFigure(Directive):
    """The figure of this name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", figure(self.arguments[0]), format="html")]


def setup(app):
    app.add_directive("matrix-figure", MatrixFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
