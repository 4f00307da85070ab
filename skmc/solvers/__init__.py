"""Solvers: what one step is, and how far from optimal an iterate is."""

from skmc.solvers.alm import InexactALM, InexactALMState
from skmc.solvers.als import ALS
from skmc.solvers.alternating import HardRank
from skmc.solvers.descent import Descent
from skmc.solvers.gibbs import Gibbs
from skmc.solvers.gradient_flow import GradientFlow
from skmc.solvers.learning import Learning
from skmc.solvers.ncarl import NCARL, NCARLState
from skmc.solvers.nonlocal_groups import NonlocalLowRank
from skmc.solvers.nonsmooth import CosineSchedule, NonsmoothDescent
from skmc.solvers.patches import BATCH, PatchTraining
from skmc.solvers.proximal import ProximalGradient
from skmc.solvers.row_descent import RowDescent
from skmc.solvers.soft_impute import SoftImpute, largest_weight
from skmc.solvers.solver import Solver, State
from skmc.solvers.splitting import DouglasRachford
from skmc.solvers.svt import SingularValueThresholding
from skmc.solvers.truncated import TruncatedADMM, TruncatedAPGL, WeightedTruncated

__all__ = [
    "ALS",
    "BATCH",
    "NCARL",
    "CosineSchedule",
    "Descent",
    "DouglasRachford",
    "Gibbs",
    "GradientFlow",
    "HardRank",
    "InexactALM",
    "InexactALMState",
    "Learning",
    "NCARLState",
    "NonlocalLowRank",
    "NonsmoothDescent",
    "PatchTraining",
    "ProximalGradient",
    "RowDescent",
    "SingularValueThresholding",
    "SoftImpute",
    "Solver",
    "State",
    "TruncatedADMM",
    "TruncatedAPGL",
    "WeightedTruncated",
    "largest_weight",
]
