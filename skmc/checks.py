"""Discovery of all completers, for tests."""

from __future__ import annotations

import importlib
import pkgutil

import skmc.completers
from skmc.base import BaseCompleter


def all_completers() -> list[type[BaseCompleter]]:
    """Return every public completer class of the package, sorted by name.

    Returns
    -------
    list of type

    Examples
    --------
    >>> from skmc.checks import all_completers
    >>> [cls.__name__ for cls in all_completers()][:1]
    ['AIRCompleter']
    """
    found: set[type[BaseCompleter]] = set()
    for info in pkgutil.iter_modules(skmc.completers.__path__):
        module = importlib.import_module(f"skmc.completers.{info.name}")
        found.update(
            member
            for member in vars(module).values()
            if isinstance(member, type)
            and issubclass(member, BaseCompleter)
            and f"{member.__module__}.".startswith(f"{module.__name__}.")
            and not member.__name__.startswith("_")
        )
    return sorted(found, key=lambda cls: cls.__name__)
