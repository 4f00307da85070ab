"""Completers: estimators that fill the missing cells of a matrix."""

from skmc.completers.air import AIRCompleter
from skmc.completers.auto import AutoCompleter
from skmc.completers.autoencoder import AutoencoderCompleter
from skmc.completers.bayesian import BayesianFactorizationCompleter
from skmc.completers.bibranch import BiBNNCompleter
from skmc.completers.biharmonic import BiharmonicCompleter
from skmc.completers.costs import COSTS, Cost, Size
from skmc.completers.dmf import DMFCompleter
from skmc.completers.factorization import FactorizationCompleter
from skmc.completers.gaussian import GaussianCompleter
from skmc.completers.ialm import IALMCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.linked import LinkedFactorizationCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.mixed import MixedCompleter
from skmc.completers.ncarl import NCARLCompleter
from skmc.completers.nonlocal_groups import NonlocalCompleter
from skmc.completers.nsr import NSRCompleter
from skmc.completers.patch_cnn import PatchCNNCompleter
from skmc.completers.snn import SNNCompleter
from skmc.completers.soft_impute import SoftImputeCompleter
from skmc.completers.svd import SVDCompleter
from skmc.completers.svt import SVTCompleter
from skmc.completers.trees import TreesCompleter
from skmc.completers.truncated import TNNRCompleter

__all__ = [
    "COSTS",
    "AIRCompleter",
    "AutoCompleter",
    "AutoencoderCompleter",
    "BayesianFactorizationCompleter",
    "BiBNNCompleter",
    "BiharmonicCompleter",
    "Cost",
    "DMFCompleter",
    "FactorizationCompleter",
    "GaussianCompleter",
    "IALMCompleter",
    "KNNCompleter",
    "LinkedFactorizationCompleter",
    "MeanCompleter",
    "MixedCompleter",
    "NCARLCompleter",
    "NSRCompleter",
    "NonlocalCompleter",
    "PatchCNNCompleter",
    "SNNCompleter",
    "SVDCompleter",
    "SVTCompleter",
    "Size",
    "SoftImputeCompleter",
    "TNNRCompleter",
    "TreesCompleter",
]
