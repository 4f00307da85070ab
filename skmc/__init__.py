"""Matrix completion as scikit-learn estimators, solved in PyTorch."""

TYPE_CHECKING = False  # as in typing, which takes longer to import than this module
if TYPE_CHECKING:
    from skmc.cells import Entries, Observed, SparseObserved
    from skmc.completers import (
        AIRCompleter,
        AutoCompleter,
        AutoencoderCompleter,
        BayesianFactorizationCompleter,
        BiBNNCompleter,
        BiharmonicCompleter,
        DMFCompleter,
        FactorizationCompleter,
        GaussianCompleter,
        IALMCompleter,
        KNNCompleter,
        LinkedFactorizationCompleter,
        MeanCompleter,
        MixedCompleter,
        NCARLCompleter,
        NonlocalCompleter,
        NSRCompleter,
        PatchCNNCompleter,
        SNNCompleter,
        SoftImputeCompleter,
        SVDCompleter,
        SVTCompleter,
        TNNRCompleter,
        TreesCompleter,
    )
    from skmc.loop import Status, solve
    from skmc.tables import MaskedToNaN

__version__ = "0.1.0"

__all__ = [
    "AIRCompleter",
    "AutoCompleter",
    "AutoencoderCompleter",
    "BayesianFactorizationCompleter",
    "BiBNNCompleter",
    "BiharmonicCompleter",
    "DMFCompleter",
    "Entries",
    "FactorizationCompleter",
    "GaussianCompleter",
    "IALMCompleter",
    "KNNCompleter",
    "LinkedFactorizationCompleter",
    "MaskedToNaN",
    "MeanCompleter",
    "MixedCompleter",
    "NCARLCompleter",
    "NSRCompleter",
    "NonlocalCompleter",
    "Observed",
    "PatchCNNCompleter",
    "SNNCompleter",
    "SVDCompleter",
    "SVTCompleter",
    "SoftImputeCompleter",
    "SparseObserved",
    "Status",
    "TNNRCompleter",
    "TreesCompleter",
    "solve",
]
# Where the other names are.
_ROOMS = {
    "Entries": "cells",
    "MaskedToNaN": "tables",
    "Observed": "cells",
    "SparseObserved": "cells",
    "Status": "loop",
    "solve": "loop",
}


def _rooms() -> list[str]:
    from pkgutil import iter_modules

    return [room.name for room in iter_modules(__path__) if room.name[0] != "_"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_rooms()})


# Importing Torch and scikit-learn takes seconds, so it waits for the first use of a
# name. Type checkers do not see this function: they would accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in __all__:
            room = import_module(f"skmc.{_ROOMS.get(name, 'completers')}")
            found = getattr(room, name)
        elif name in _rooms():
            found = import_module(f"skmc.{name}")
        else:
            raise AttributeError(f"module 'skmc' has no attribute {name!r}")
        globals()[name] = found
        return found
