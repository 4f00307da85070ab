"""Single backticks become a link for a public name, and a literal otherwise."""

from __future__ import annotations

import re

import api_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


def targets() -> dict[str, str]:
    """Maps names, with and without their module, to the documented object."""
    found: dict[str, str] = {}
    for (_, module), names in api_pages.groups().items():
        for name in names:
            found.setdefault(name, f"{module}.{name}")
            found[f"{module}.{name}"] = f"{module}.{name}"
    return found


def target_of(text: str, known: dict[str, str]) -> str | None:
    """The object that a name, or a method of a name, refers to."""
    if text in known:
        return known[text]
    head, _, last = text.rpartition(".")
    return f"{known[head]}.{last}" if head in known else None


def link_to(target: str, text: str, docname: str) -> nodes.Node:
    return addnodes.pending_xref(
        "",
        nodes.literal("", text, classes=["xref", "py"]),
        refdomain="py",
        reftype="obj",
        reftarget=target,
        refexplicit=True,
        refwarn=False,
        refdoc=docname,
    )


class Code(SphinxTransform):
    """Links code of Markdown pages, and does not highlight literal blocks."""

    default_priority = 500

    def apply(self) -> None:
        for block in self.document.findall(nodes.literal_block):
            block.setdefault("language", "none")
        if not str(self.env.doc2path(self.env.docname)).endswith(".md"):
            return
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.reference, nodes.title)):
                continue
            text = literal.astext()
            called = re.fullmatch(r"([\w.]+)(\(.*\))?", text)
            # Outside docstrings, `rows` and the like are ordinary words.
            target = (
                called
                and re.search(r"[A-Z._]", called[1])
                and target_of(called[1], self.app.known_names)
            )
            if target:
                literal.replace_self(link_to(target, text, self.env.docname))


def setup(app):
    app.known_names = targets()

    def role(name, rawtext, text, lineno, inliner, options=None, content=()):
        target = re.fullmatch(r"[\w.]+", text) and target_of(text, app.known_names)
        if not target:
            return [nodes.literal(rawtext, text)], []
        docname = inliner.document.settings.env.docname
        return [link_to(target, text, docname)], []

    app.add_role("name", role)
    app.add_transform(Code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
