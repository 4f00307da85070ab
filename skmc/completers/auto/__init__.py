"""`AutoCompleter`: many completers, stacked where they are used."""

from skmc.completers.auto.completer import AutoCompleter

__all__ = ["AutoCompleter"]
