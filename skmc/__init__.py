"""Matrix completion as scikit-learn estimators, solved in PyTorch."""

from functools import cache as _cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skmc.base import Explanation as Explanation
    from skmc.cells import Entries as Entries
    from skmc.cells import Observed as Observed
    from skmc.cells import SparseObserved as SparseObserved
    from skmc.completers import *  # noqa: F403
    from skmc.loop import Status as Status
    from skmc.loop import solve as solve
    from skmc.tables import MaskedToNaN as MaskedToNaN

__version__ = "0.1.0rc1"


@_cache
def _rooms() -> list[str]:
    from pkgutil import iter_modules

    return [r.name for r in iter_modules(__path__) if r.name[0] != "_"]  # noqa: F405


# Importing Torch and scikit-learn takes seconds, so it waits for the first use of a
# name. Type checkers do not see these functions: they would accept any name.
if not TYPE_CHECKING:
    from skmc import completers

    _ROOM_OF = {
        **{n: "completers" for n in completers.__all__ if n.endswith("Completer")},
        "Entries": "cells",
        "Explanation": "base",
        "MaskedToNaN": "tables",
        "Observed": "cells",
        "SparseObserved": "cells",
        "Status": "loop",
        "solve": "loop",
    }
    __all__ = sorted(_ROOM_OF)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_rooms()})

    def _hint(name: str) -> str:
        from importlib import import_module

        if name[0] != "_":
            for room in _rooms():
                module = import_module(f"skmc.{room}")
                if name in getattr(module, "__all__", ()):
                    return f"; use skmc.{room}.{name}"
        # Short names are similar to any.
        known = [*__all__, *(_rooms() if len(name) > 4 else ())]
        near = completers.closest(name, known)
        return f"; did you mean {near!r}?" if near else ""

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _ROOM_OF:
            found = getattr(import_module(f"skmc.{_ROOM_OF[name]}"), name)
        elif name in _rooms():
            found = import_module(f"skmc.{name}")
        else:
            hint = _hint(name)
            raise AttributeError(f"module 'skmc' has no attribute {name!r}{hint}")
        globals()[name] = found
        return found
