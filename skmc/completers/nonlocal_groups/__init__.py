"""`NonlocalCompleter`: low-rank groups of similar patches."""

from skmc.completers.nonlocal_groups.completer import NonlocalCompleter

__all__ = ["NonlocalCompleter"]
