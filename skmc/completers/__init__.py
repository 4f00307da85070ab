"""Estimators."""

from skmc.completers.air import AIRCompleter
from skmc.completers.dmf import DMFCompleter
from skmc.completers.ialm import IALMCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.svd import SVDCompleter
from skmc.completers.svt import SVTCompleter

__all__ = [
    "AIRCompleter",
    "DMFCompleter",
    "IALMCompleter",
    "KNNCompleter",
    "MeanCompleter",
    "SVDCompleter",
    "SVTCompleter",
]
