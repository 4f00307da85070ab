"""`AutoCompleter`: many completers, stacked where they are used."""

from skmc.completers.auto._candidates import all_candidates, candidates_for
from skmc.completers.auto.auto import AutoCompleter

__all__ = ["AutoCompleter", "candidates_for"]
