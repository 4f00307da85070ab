"""Matrix completion as scikit-learn estimators, solved in PyTorch."""

from skmc.cells import Entries, Observed, SparseObserved
from skmc.completers import (
    AIRCompleter,
    AutoCompleter,
    AutoencoderCompleter,
    BayesianFactorizationCompleter,
    BiBNNCompleter,
    DMFCompleter,
    FactorizationCompleter,
    IALMCompleter,
    KNNCompleter,
    LinkedFactorizationCompleter,
    MeanCompleter,
    NCARLCompleter,
    NonlocalCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
)
from skmc.loop import Status, solve
from skmc.pipeline import MaskedToNaN
from skmc.tables import MixedCompleter

__version__ = "0.1.0"

__all__ = [
    "AIRCompleter",
    "AutoCompleter",
    "AutoencoderCompleter",
    "BayesianFactorizationCompleter",
    "BiBNNCompleter",
    "DMFCompleter",
    "Entries",
    "FactorizationCompleter",
    "IALMCompleter",
    "KNNCompleter",
    "LinkedFactorizationCompleter",
    "MaskedToNaN",
    "MeanCompleter",
    "MixedCompleter",
    "NCARLCompleter",
    "NSRCompleter",
    "NonlocalCompleter",
    "Observed",
    "PatchCNNCompleter",
    "SNNCompleter",
    "SVDCompleter",
    "SVTCompleter",
    "SoftImputeCompleter",
    "SparseObserved",
    "Status",
    "TNNRCompleter",
    "solve",
]
