"""`SeriesCompleter`: arrangements of series, weighted where they are used."""

from skmc.completers.series.completer import SeriesCompleter

__all__ = ["SeriesCompleter"]
