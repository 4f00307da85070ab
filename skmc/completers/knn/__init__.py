"""`KNNCompleter`: averages of the most similar rows."""

from skmc.completers.knn.knn import KNNCompleter

__all__ = ["KNNCompleter"]
