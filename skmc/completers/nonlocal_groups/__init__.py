"""`NonlocalCompleter`: low-rank groups of similar patches."""

from skmc.completers.nonlocal_groups.nonlocal_groups import NonlocalCompleter

__all__ = ["NonlocalCompleter"]
