"""One page for each public name, generated from the package."""

from __future__ import annotations

import enum
import importlib
import inspect
from pathlib import Path
from typing import NamedTuple

from skmc.base import FOR_AUTHORS

PACKAGE = "skmc"
# The public modules, in the order of the overview. Names that are not in their
# ``__all__`` are internal.
PARTS = {
    "For users": (
        "skmc",
        "skmc.patterns",
        "skmc.metrics",
        "skmc.model_selection",
        "skmc.pictures",
        "skmc.uncertainty",
        "skmc.omics",
        "skmc.panel",
        "skmc.plot",
        "skmc.persistence",
        "skmc.exceptions",
        "skmc.distributed",
        "skmc.datasets",
        "skmc.sensing",
        "skmc.inverses",
        "skmc.loop",
    ),
    "For authors of methods": (
        "skmc.base",
        "skmc.completers",
        "skmc.parameters",
        "skmc.checks",
        "skmc.cells",
        "skmc.terms",
        "skmc.models",
        "skmc.solvers",
        "skmc.linalg",
    ),
}


class Group(NamedTuple):
    """The names of one module in one part of the overview."""

    part: str
    module: str


def groups() -> dict[Group, list[str]]:
    """The public names in the order of the overview, each once, by part and module."""
    made: dict[Group, list[str]] = {}
    listed: set[int] = set()
    for part, some in PARTS.items():
        for name in some:
            module = importlib.import_module(name)
            members = {id(getattr(module, member)): member for member in module.__all__}
            made[Group(part, name)] = [
                member for key, member in members.items() if key not in listed
            ]
            listed |= members.keys()
    return made


def first_line(member) -> str:
    text = inspect.getdoc(member) or ""
    # A constant has the docstring of its type. A dataclass or named tuple without a
    # docstring gets its signature as one.
    described = callable(member) or inspect.ismodule(member)
    if not described or text.startswith(f"{getattr(member, '__name__', '')}("):
        return ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(":").strip()


def own_members(cls: type) -> list[tuple[str, str]]:
    """The members of a class that the package defines, as (directive, name)."""
    found = {}
    for base in cls.__mro__:
        if not base.__module__.startswith(PACKAGE):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in found:
                continue
            if name in FOR_AUTHORS and not cls.__module__.startswith("skmc.base"):
                continue
            if isinstance(member, property):
                kind = "autoproperty"
            elif isinstance(member, (staticmethod, classmethod)) or callable(member):
                kind = "automethod"
            else:
                continue
            if (inspect.getdoc(member) or "").strip() and not inspect.isclass(member):
                found[name] = kind
    return [(kind, name) for name, kind in found.items()]


def entry(module: str, name: str) -> list[str]:
    """The directives that document one name."""
    member = getattr(importlib.import_module(module), name)
    lines = []
    if inspect.isclass(member):
        lines += [f".. autoclass:: {name}"]
        if issubclass(member, enum.Enum):
            lines += ["   :members:", "   :undoc-members:"]
        elif methods := own_members(member):
            lines += ["", "   .. rubric:: Methods", ""]
            for kind, method in methods:
                lines += [f"   .. {kind}:: {method}", ""]
    elif callable(member):
        lines += [f".. autofunction:: {name}"]
    else:
        lines += [f".. autodata:: {name}"]
    if callable(member):
        lines += ["", f".. minigallery:: {module}.{name}", "   :add-heading: Examples"]
        lines += ["   :heading-level: ^"]
    return [*lines, ""]


def titled(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def pages(listing: dict[Group, list[str]]) -> dict[str, str]:
    """A page for each name."""
    made = {}
    for (_, module), listed in listing.items():
        for name in listed:
            title = f"{module}.{name}".removeprefix(f"{PACKAGE}.")
            lines = [*titled(title, "="), f".. currentmodule:: {module}", ""]
            made[f"{module}.{name}"] = "\n".join([*lines, *entry(module, name)])
    return made


def overview(listing: dict[Group, list[str]]) -> str:
    lines = titled("API reference", "=")
    lines += ["All public names. Other names are internal and can change at any time."]
    current = None
    for (part, module), listed in listing.items():
        loaded = importlib.import_module(module)
        if part != current:
            lines += ["", *titled(part, "-")]
            current = part
        lines += ["", *titled(module, "~"), f".. py:module:: {module}", ""]
        lines += [first_line(loaded), ""]
        lines += [".. list-table::", "   :widths: 35 65", "   :class: api", ""]
        for name in listed:
            lines += [f"   * - :py:obj:`{name} <{module}.{name}>`"]
            lines += [f"     - {first_line(getattr(loaded, name))}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   {name}" for name in pages(listing)]
    return "\n".join(lines) + "\n"


def write(app) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    listing = groups()
    made = {**pages(listing), "index": overview(listing)}
    for path in folder.glob("*.rst"):
        if path.stem not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def without_edit_link(app, pagename, templatename, context, doctree) -> None:
    """Generated pages have no file in the repository."""
    if pagename.startswith(("api/", "gallery/")):
        context["page_source_suffix"] = ""


def setup(app):
    app.connect("builder-inited", write)
    app.connect("html-page-context", without_edit_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
