"""The estimator contract that every completer keeps."""

from skmc.base.completer import HIDDEN_TO_SCORE, HOOKS, BaseCompleter, CompleterTags
from skmc.base.factored import FactoredCompleter
from skmc.base.iterative import POOR, IterativeCompleter, memory_of, resolve_device
from skmc.base.reading import ReadsCells
from skmc.base.reporting import CallbackHooks, diverged, record, unfinished
from skmc.base.summary import ShowsFit

__all__ = [
    "HIDDEN_TO_SCORE",
    "HOOKS",
    "POOR",
    "BaseCompleter",
    "CallbackHooks",
    "CompleterTags",
    "FactoredCompleter",
    "IterativeCompleter",
    "ReadsCells",
    "ShowsFit",
    "diverged",
    "memory_of",
    "record",
    "resolve_device",
    "unfinished",
]
