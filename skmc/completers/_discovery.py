"""The completers of this folder, found by the names of their classes.

Their files are read and not imported: that takes seconds, and waits for the first use.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent


def modules() -> dict[str, str]:
    """The module of each class whose name ends in "Completer"."""
    found = {}
    for path in FOLDER.rglob("[!_]*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^class ([A-Z]\w*Completer)\b", text, re.MULTILINE):
            found[name] = ".".join(("skmc.completers", *parts))
    return dict(sorted(found.items()))


def completer_classes() -> list[type]:
    """Import all completers.

    Returns
    -------
    list of type
        The classes, sorted by name.
    """
    return [getattr(import_module(module), name) for name, module in modules().items()]


def advice_of(name: str) -> str:
    """What a completer is good for.

    Parameters
    ----------
    name : str
        Name of its class.

    Returns
    -------
    str
        The class attribute ``advice``, or the first line of the docstring.
    """
    path = FOLDER.joinpath(*modules()[name].split(".")[2:]).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (cls,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    for node in cls.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "advice":
            return str(ast.literal_eval(node.value))
    return (ast.get_docstring(cls) or "").split("\n")[0]
