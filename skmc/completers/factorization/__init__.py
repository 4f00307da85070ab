"""`FactorizationCompleter`: low-rank factors by alternating least squares."""

from skmc.completers.factorization.factorization import FactorizationCompleter

__all__ = ["FactorizationCompleter"]
