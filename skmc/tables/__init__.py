"""Tables with categories and ordered levels beside numbers."""

from skmc.tables.mixed import MixedCompleter

__all__ = [
    "MixedCompleter",
]
