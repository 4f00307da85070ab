"""`KNNCompleter`: averages of the most similar rows."""

from skmc.completers.knn.completer import KNNCompleter

__all__ = ["KNNCompleter"]
