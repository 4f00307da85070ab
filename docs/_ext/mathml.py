"""Formulas as MathML, which browsers show without scripts, fonts or a network."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def translated(text: str, as_block: bool) -> str:
    """MathML of LaTeX, including shorthands that the translator does not know."""
    text = text.replace(r"\dfrac", r"\frac").replace("{split}", "{aligned}")
    text = re.sub(r"(\\t?frac) ?(\d)(\d)", r"\1{\2}{\3}", text)
    return tex2mathml(text, as_block=as_block)


def equation(text: str) -> str:
    """One displayed equation; lines that end with ``\\\\`` are aligned at ``&``."""
    if r"\\" in text and r"\begin{" not in text:
        text = rf"\begin{{aligned}} {text} \end{{aligned}}"
    return translated(text, as_block=True)


def equations(text: str) -> str:
    """All equations of a block; empty lines separate them."""
    return "".join(map(equation, re.split(r"\n\s*\n", text.strip())))


def inline(translator, node):
    translator.body.append(translated(node.astext(), as_block=False))
    raise nodes.SkipNode


def display(translator, node):
    translator.body.append(f'<div class="math">{equations(node.astext())}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
