"""Matrix completion as scikit-learn estimators, solved in PyTorch."""

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
    NSRCompleter,
    PatchCNNCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
)
from skmc.entries import Entries
from skmc.mixed import MixedCompleter
from skmc.observed import Observed
from skmc.pipeline import MaskedToNaN
from skmc.solve import Status, solve
from skmc.sparse_observed import SparseObserved

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
