"""Discovery of all completers."""

from __future__ import annotations

from skmc.base import BaseCompleter
from skmc.completers import completer_classes


def all_completers() -> list[type[BaseCompleter]]:
    """Return every public completer class of the package, sorted by name.

    Returns
    -------
    list of type

    See Also
    --------
    check_completer : Runs all checks of a completer.

    Examples
    --------
    >>> from skmc.checks import all_completers
    >>> [cls.__name__ for cls in all_completers()][:1]
    ['AIRCompleter']
    """
    return [cls for cls in completer_classes() if issubclass(cls, BaseCompleter)]
