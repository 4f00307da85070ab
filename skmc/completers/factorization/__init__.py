"""`FactorizationCompleter`: low-rank factors by alternating least squares."""

from skmc.completers.factorization.completer import FactorizationCompleter

__all__ = ["FactorizationCompleter"]
