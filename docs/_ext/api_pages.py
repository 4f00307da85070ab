"""One page for each public name, made from the package itself."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from pathlib import Path

PACKAGE = "skmc"
# What users call comes first; modules that are not named here follow by name.
FIRST = [
    "skmc",
    "skmc.patterns",
    "skmc.metrics",
    "skmc.model_selection",
    "skmc.uncertainty",
    "skmc.plot",
    "skmc.loop",
    "skmc.distributed",
    "skmc.persistence",
    "skmc.datasets",
    "skmc.checks",
    "skmc.sensing",
    "skmc.linalg",
    "skmc.terms",
    "skmc.models",
    "skmc.solvers",
]


def modules() -> list[str]:
    """Names of all public modules of the package."""
    package = importlib.import_module(PACKAGE)
    names = [PACKAGE] + [
        info.name
        for info in pkgutil.walk_packages(package.__path__, f"{PACKAGE}.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]
    return [name for name in FIRST if name in names] + [
        name for name in names if name not in FIRST
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


def first_line(member) -> str:
    text = inspect.getdoc(member) or ""
    # What a dataclass or a named tuple makes up of its fields is no description.
    if text.startswith(f"{getattr(member, '__name__', '')}("):
        return ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(":").strip()


def own_members(cls: type) -> list[tuple[str, str]]:
    """What to document of a class: (directive, name), if the package defines it."""
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


def pages(listing: dict[str, list[str]]) -> dict[str, str]:
    """A page for each name of the modules in FIRST, one for each other module."""
    made = {}
    for module, listed in listing.items():
        current = [f".. currentmodule:: {module}", ""]
        if module in FIRST:
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


def overview(listing: dict[str, list[str]]) -> str:
    lines = titled("API reference", "=")
    lines += [
        "Every public name. What users call comes first, then what it is made of."
    ]
    for module, listed in listing.items():
        loaded = importlib.import_module(module)
        if module == "skmc" or module == next(m for m in listing if m not in FIRST):
            part = "What users call" if module == "skmc" else "What it is made of"
            lines += ["", *titled(part, "-")]
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
    listing = names()
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
