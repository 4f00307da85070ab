"""The completers of this folder, found by the names of their classes.

Their files are read and not imported, because an import takes seconds.
"""

from __future__ import annotations

import ast
import difflib
import re
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent


def _classes() -> dict[str, tuple[str, str]]:
    """Module and bases of each class whose name ends in "Completer"."""
    found = {}
    for path in FOLDER.rglob("[!_]*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        pattern = r"^class ([A-Z]\w*Completer)\b\(?([^):]*)"
        for name, bases in re.findall(pattern, text, re.MULTILINE):
            found[name] = ".".join(("skmc.completers", *parts)), bases
    return dict(sorted(found.items()))


def modules() -> dict[str, str]:
    """The module of each class whose name ends in "Completer"."""
    return {name: module for name, (module, _) in _classes().items()}


def methods() -> list[str]:
    """List the classes that complete a matrix by themselves.

    Returns
    -------
    list of str
        Names of the completers, except those that work with another one, which are
        derived from `skmc.base.Estimator` directly.
    """
    return [name for name, (_, bases) in _classes().items() if bases != "Estimator"]


def completer_classes() -> list[type]:
    """Import all completers.

    Returns
    -------
    list of type
        The classes, sorted by name.
    """
    return [getattr(import_module(module), name) for name, module in modules().items()]


def name_of(title: str) -> str:
    """Name a class: ``SoftImputeCompleter`` is ``soft-impute``.

    Parameters
    ----------
    title : str
        Name of the class.

    Returns
    -------
    str

    Examples
    --------
    >>> from skmc.completers import name_of
    >>> name_of("AIRCompleter"), name_of("PatchCNNCompleter")
    ('air', 'patch-cnn')
    """
    stem = title.removesuffix("Completer")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", stem).lower()


def title_of(text: str) -> str:
    """Find the name of a class by that of the method.

    Parameters
    ----------
    text : str
        Name of the method or class, for example "soft-impute" or "SoftImputeCompleter".

    Returns
    -------
    str

    Raises
    ------
    ValueError
        No method has this name; the message suggests a similar one.
    """
    titles = {title: name_of(title) for title in methods()}
    plain = {name.replace("-", ""): title for title, name in titles.items()}
    wanted = re.sub(r"[-_\s]", "", text.lower()).removesuffix("completer")
    if wanted not in plain:
        near = difflib.get_close_matches(wanted, plain, 1)
        hint = f"did you mean {titles[plain[near[0]]]!r}? " if near else ""
        raise ValueError(
            f"there is no method {text!r}; {hint}'skmc methods' lists them"
        )
    return plain[wanted]


def advice_of(name: str) -> str:
    """Describe the purpose of a completer in a few words.

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
