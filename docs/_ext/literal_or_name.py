"""Single backticks become a link for a public name, and a literal otherwise."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re

import api_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


def targets() -> dict[str, str]:
    """Maps names, with and without their module, to the documented object."""
    found: dict[str, str] = {}
    pages: dict[int, str] = {}
    for (_, module), names in api_pages.groups().items():
        found[module] = module
        for name in names:
            page = f"{module}.{name}"
            pages[id(getattr(importlib.import_module(module), name))] = page
            found.setdefault(name, page)
    for _, module in api_pages.groups():  # a name can be in several modules
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            found[f"{module}.{name}"] = pages[id(getattr(loaded, name))]
    return found


def source_of(text: str) -> str | None:
    """The file of an internal name, such as that of a solver, in the repository."""
    try:
        found = pkgutil.resolve_name(text)
    except (AttributeError, ImportError):
        return None
    where = getattr(found, "__module__", getattr(found, "__name__", None))
    if not where:  # a constant
        where = text.rpartition(".")[0]
    path = importlib.util.find_spec(where).origin
    return "skmc" + path.rpartition("/skmc")[2]


def target_of(text: str, known: dict[str, str]) -> str | None:
    """The object that a name, or a method of a name, refers to."""
    if text in known:
        return known[text]
    head, _, last = text.rpartition(".")
    modules = {name for part in api_pages.PARTS.values() for name in part}
    return f"{known[head]}.{last}" if head in known and head not in modules else None


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


def link_to_source(app, path: str, text: str) -> nodes.Node:
    url = f"{app.config.repository}/blob/main/{path}"
    return nodes.reference("", "", nodes.literal("", text), refuri=url)


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
            elif re.fullmatch(r"skmc(\.\w+)+", text) and (path := source_of(text)):
                literal.replace_self(link_to_source(self.app, path, text))


def setup(app):
    app.known_names = targets()
    app.add_config_value("repository", "", "env")

    def role(name, rawtext, text, lineno, inliner, options=None, content=()):
        target = re.fullmatch(r"[\w.]+", text) and target_of(text, app.known_names)
        if not target:
            internal = re.fullmatch(r"skmc(\.\w+)+", text)
            if internal and (path := source_of(text)):
                return [link_to_source(app, path, text)], []
            return [nodes.literal(rawtext, text)], []
        docname = inliner.document.settings.env.docname
        return [link_to(target, text, docname)], []

    app.add_role("name", role)
    app.add_transform(Code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
