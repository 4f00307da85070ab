"""Tables whose columns hold numbers, ordered levels or categories."""

from skmc.tables.mixed import MixedCompleter

__all__ = [
    "MixedCompleter",
]
