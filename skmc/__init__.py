"""Matrix completion as scikit-learn estimators, solved in PyTorch."""

from skmc.completers import (
    AIRCompleter,
    DMFCompleter,
    IALMCompleter,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
    SVTCompleter,
)
from skmc.entries import Entries
from skmc.observed import Observed
from skmc.pipeline import MaskedToNaN
from skmc.solve import Status, solve

__version__ = "0.1.0"

__all__ = [
    "AIRCompleter",
    "DMFCompleter",
    "Entries",
    "IALMCompleter",
    "KNNCompleter",
    "MaskedToNaN",
    "MeanCompleter",
    "Observed",
    "SVDCompleter",
    "SVTCompleter",
    "Status",
    "solve",
]
