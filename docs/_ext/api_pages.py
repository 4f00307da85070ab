"""One page for each public name, generated from the package."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

PACKAGE = "skmc"
# Patterns of names, in the order of the overview. A name belongs to the first part
# with a matching pattern. Names without one are internal to a room.
PARTS = {
    "What users call": [
        "skmc.*",
        "skmc.patterns.*",
        "skmc.metrics.*",
        "skmc.model_selection.*",
        "skmc.pictures.*",
        "skmc.uncertainty.*",
        "skmc.plot.*",
        "skmc.loop.*Recorder",
        "skmc.distributed.*",
        "skmc.persistence.*",
        "skmc.datasets.*",
        "skmc.checks.*",
        "skmc.sensing.*",
        "skmc.inverses.*",
        "skmc.completers.*",
    ],
    "What it is made of": [
        "skmc.linalg.*",
        "skmc.cells.*",
        "skmc.terms.*",
        "skmc.models.*",
        "skmc.solvers.*",
        "skmc.loop.*",
        "skmc.new_rows.*",
        "skmc.blocks.*",
        "skmc.base.*",
        "skmc.parameters.*",
        "skmc.compatibility.*",
        "skmc.tables.*",
    ],
}
INSIDE = "Inside the rooms"
NOTES = {
    "What users call": "",
    "What it is made of": "For extensions: the names that each room exports.",
    INSIDE: "Used by their own room only; these names may change in any release.",
}


class Group(NamedTuple):
    """The names of one module in one part of the overview."""

    part: str
    module: str


def modules() -> list[str]:
    """Names of all public modules of the package."""
    package = importlib.import_module(PACKAGE)
    return [PACKAGE] + [
        info.name
        for info in pkgutil.walk_packages(package.__path__, f"{PACKAGE}.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]


def public(module) -> list[str]:
    """``__all__``, or the classes and functions that a module defines."""
    if hasattr(module, "__all__"):
        return [n for n in module.__all__ if not inspect.ismodule(getattr(module, n))]
    return [
        name
        for name, member in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(member) or inspect.isfunction(member))
        and member.__module__ == module.__name__
    ]


def names() -> dict[str, list[str]]:
    """Module -> its public names, each object at the shortest of its paths."""
    paths: dict[int, str] = {}
    members = {}
    found = [(name, importlib.import_module(name)) for name in modules()]
    for name, module in found:
        for member in public(module):
            key = id(getattr(module, member))
            members[f"{name}.{member}"] = key
            here = paths.get(key)
            if here is None or name.count(".") < here.count(".") - 1:
                paths[key] = f"{name}.{member}"
    return {
        name: listed
        for name, module in found
        if (
            listed := [
                member
                for member in public(module)
                if paths[members[f"{name}.{member}"]] == f"{name}.{member}"
            ]
        )
    }


def groups() -> dict[Group, list[str]]:
    """The names in the order of the overview, each once, by part and module."""
    order = [(part, pattern) for part, some in PARTS.items() for pattern in some]
    made: dict[Group, list[str]] = {}
    rest = names()
    for part, pattern in order:
        module = pattern.rpartition(".")[0]
        chosen = [
            name
            for name in rest.get(module, [])
            if fnmatchcase(f"{module}.{name}", pattern)
        ]
        if chosen:
            made[Group(part, module)] = chosen
            rest[module] = [name for name in rest[module] if name not in chosen]
    return made | {Group(INSIDE, module): some for module, some in rest.items() if some}


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
    """A page for each name, and one for each module inside a room."""
    made = {}
    for (part, module), listed in listing.items():
        current = [f".. currentmodule:: {module}", ""]
        if part != INSIDE:
            for name in listed:
                title = f"{module}.{name}".removeprefix(f"{PACKAGE}.")
                lines = [*titled(title, "="), *current, *entry(module, name)]
                made[f"{module}.{name}"] = "\n".join(lines)
        else:
            text = first_line(importlib.import_module(module))
            lines = [*titled(module, "="), *current, text, ""]
            for name in listed:
                lines += [*titled(name, "-"), *entry(module, name)]
            made[f"module.{module}"] = "\n".join(lines)
    return made


def overview(listing: dict[Group, list[str]]) -> str:
    lines = titled("API reference", "=")
    lines += ["Every public name, at the shortest path from which it can be imported."]
    current = None
    for (part, module), listed in listing.items():
        loaded = importlib.import_module(module)
        if part != current:
            lines += ["", *titled(part, "-"), NOTES[part]]
            current = part
        lines += ["", *titled(module, "~"), first_line(loaded), ""]
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


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
