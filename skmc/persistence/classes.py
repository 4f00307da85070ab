"""Which classes a file may name. None of them is ever imported because of a file."""

from __future__ import annotations

import sys

from sklearn.impute import MissingIndicator
from torch import nn

from skmc.base import BaseCompleter
from skmc.solvers import Solver, State
from skmc.tables import MixedCompleter

BASES = (BaseCompleter, MixedCompleter, Solver, State, nn.Module)  # terms are modules
REGISTERED: list[type] = [MissingIndicator]


def register(class_: type) -> type:
    """Let files hold instances of a class of your own.

    Subclasses of skmc's completers, `Term`, `Solver`, `State` and `torch.nn.Module`
    need no registration. Other classes among their attributes do.

    Parameters
    ----------
    class_ : type
        A class at the top level of a module. Its attributes are stored by name, and
        ``__init__`` is not called when an instance is loaded.

    Returns
    -------
    type
        The same class, so that `register` can decorate it.

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


def storable_classes() -> dict[str, type]:
    """The classes that a file may name, by their qualified names.

    These are the classes of skmc, the subclasses of `BASES`, and registered classes, as
    far as the running program has defined them. Of PyTorch's own modules, only those in
    ``torch.nn`` are included. A class that runs code when an instance is deleted is
    excluded.

    Returns
    -------
    dict
    """
    found = [cls for base in BASES for cls in _subclasses(base)] + REGISTERED
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "skmc":
            members = list(vars(module).values())
            found += [
                m for m in members if isinstance(m, type) and m.__module__ == name
            ]
    return {
        qualified_name(cls): cls
        for cls in found
        if "<locals>" not in cls.__qualname__
        and not hasattr(cls, "__del__")
        and (cls.__module__.startswith("torch.nn.") or not _is_torch(cls))
    }


def _is_torch(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "torch"


def _subclasses(base: type) -> list[type]:
    """A class and everything derived from it, older classes first."""
    found = [base]
    for cls in found:  # which grows
        found += type.__subclasses__(cls)
    return found


def qualified_name(class_: type) -> str:
    """The name of a class with its module.

    Parameters
    ----------
    class_ : type
        A class.

    Returns
    -------
    str
    """
    return f"{class_.__module__}.{class_.__qualname__}"


def why_not_storable(class_: type) -> str:
    """The reason why instances of a class cannot be stored, and what to do.

    Parameters
    ----------
    class_ : type
        A class that is not among `storable_classes`.

    Returns
    -------
    str
    """
    if "<locals>" in class_.__qualname__:
        return "it is defined inside a function; define it at the top level of a module"
    if qualified_name(class_) in storable_classes():
        return "another class of this name was defined later; make the object anew"
    return (
        "only numbers, strings, containers, arrays, tensors, and instances of skmc's "
        "classes, of subclasses of BaseCompleter, Term, Solver, State and "
        "torch.nn.Module, and of classes given to skmc.persistence.register can be"
    )
