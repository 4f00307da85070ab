"""Classes that a file may name. Files import only modules of skmc and scikit-learn."""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

from torch import nn

from skmc.solvers import Result, Solver, State

Class = TypeVar("Class", bound=type)
REGISTERED: list[type] = [nn.Module, Result, Solver, State]  # terms are modules


def register(class_: Class) -> Class:
    """Allow files to hold instances of your own class and of its subclasses.

    Subclasses of skmc's completers, `Term`, `Solver`, `State`, `Result` and
    `torch.nn.Module` need no registration. Other classes among their attributes do.

    Parameters
    ----------
    class_ : type
        Class at the top level of a module. Its attributes are stored by name, and
        ``__init__`` is not called when an instance is loaded.

    Returns
    -------
    type
        The same class, so that `register` can decorate it.

    See Also
    --------
    save : Writes instances of registered classes.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from skmc.persistence import register
    >>> @register
    ... @dataclass
    ... class RowMap:
    ...     slope: float
    """
    REGISTERED.append(class_)
    return class_


def qualified_name(class_: type) -> str:
    """The name of a class with its module."""
    return f"{class_.__module__}.{class_.__qualname__}"


def find_class(name: str) -> type | None:
    """Find the class that a file names, if the running program has defined it.

    These are the classes of skmc and scikit-learn, and the registered ones and their
    subclasses. Of PyTorch's own modules, only those in ``torch.nn`` are included. A
    class that runs code when an instance is deleted is excluded.
    """
    module, _, last = name.rpartition(".")
    top = module.partition(".")[0]
    candidates: list[Any]
    if top in ("skmc", "sklearn"):  # installed, and safe to import
        try:
            candidates = [vars(importlib.import_module(module)).get(last)]
        except ImportError:
            candidates = []
    elif top == "torch" and not module.startswith("torch.nn."):
        candidates = []
    else:
        candidates = [cls for base in REGISTERED for cls in _subclasses(base)]
    named = [
        cls
        for cls in candidates
        if isinstance(cls, type) and qualified_name(cls) == name
    ]
    if not named or "<locals>" in name or hasattr(named[-1], "__del__"):
        return None
    return named[-1]


def _subclasses(base: type) -> list[type]:
    """A class and all derived classes, the oldest first."""
    derived = [base]
    for cls in derived:  # the list grows
        derived += type.__subclasses__(cls)
    return derived


def why_not_storable(class_: type) -> str:
    """Give the reason why instances of a class cannot be stored, and a remedy."""
    if "<locals>" in class_.__qualname__:
        return "it is defined inside a function; define it at the top level of a module"
    if find_class(qualified_name(class_)) is not None:
        return "another class of this name was defined later; make the object anew"
    return (
        "only numbers, strings, containers, arrays, tensors, and instances of skmc's "
        "and scikit-learn's classes, of subclasses of BaseCompleter, Term, Solver, "
        "State, Result and torch.nn.Module, and of classes given to "
        "skmc.persistence.register can be"
    )
