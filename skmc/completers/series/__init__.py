"""`SeriesCompleter`: arrangements of series, weighted where they are used."""

from skmc.completers.series.series import SeriesCompleter

__all__ = ["SeriesCompleter"]
