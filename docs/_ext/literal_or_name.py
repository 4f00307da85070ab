"""Single backticks: a link where a public name is meant, a literal everywhere else."""

from __future__ import annotations

import re

import api_pages
from docutils import nodes
from sphinx import addnodes


def targets() -> dict[str, str]:
    """Names, short and with their modules, to the path of their page's object."""
    found: dict[str, str] = {}
    for module, names in api_pages.names().items():
        for name in names:
            found.setdefault(name, f"{module}.{name}")
            found[f"{module}.{name}"] = f"{module}.{name}"
    return found


def target_of(text: str, known: dict[str, str]) -> str | None:
    """What a name, or a method behind one, refers to."""
    if text in known:
        return known[text]
    head, _, last = text.rpartition(".")
    return f"{known[head]}.{last}" if head in known else None


def setup(app):
    known = targets()

    def role(name, rawtext, text, lineno, inliner, options=None, content=()):
        literal = nodes.literal(rawtext, text, classes=["xref", "py"])
        target = re.fullmatch(r"[\w.]+", text) and target_of(text, known)
        if not target:
            return [nodes.literal(rawtext, text)], []
        env = inliner.document.settings.env
        link = addnodes.pending_xref(
            rawtext,
            literal,
            refdomain="py",
            reftype="obj",
            reftarget=target,
            refexplicit=True,
            refwarn=False,
            refdoc=env.docname,
        )
        return [link], []

    app.add_role("name", role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
