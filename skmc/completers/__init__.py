"""Estimators."""

from skmc.completers.air import AIRCompleter
from skmc.completers.dmf import DMFCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.svd import SVDCompleter

__all__ = [
    "AIRCompleter",
    "DMFCompleter",
    "KNNCompleter",
    "MeanCompleter",
    "SVDCompleter",
]
