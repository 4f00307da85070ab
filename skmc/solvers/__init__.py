"""Solvers: what one step is, and how far from optimal an iterate is."""

from skmc.linalg import CosineSchedule
from skmc.solvers.alm import InexactALM, InexactALMState
from skmc.solvers.als import ALS
from skmc.solvers.alternating import HardRank
from skmc.solvers.descent import Descent
from skmc.solvers.effects import Sides
from skmc.solvers.em import EM, FactorEM
from skmc.solvers.gibbs import Gibbs
from skmc.solvers.gradient_flow import GradientFlow
from skmc.solvers.half_steps import solved
from skmc.solvers.momentum import Momentum
from skmc.solvers.narrowing import modules_in
from skmc.solvers.ncarl import NCARL, NCARLState
from skmc.solvers.nonlocal_groups import NonlocalLowRank
from skmc.solvers.nonsmooth import NonsmoothDescent
from skmc.solvers.parametric import Adam, ParametricSolver
from skmc.solvers.patches import BATCH, PatchTraining
from skmc.solvers.proximal import ProximalGradient
from skmc.solvers.row_descent import CodeDescent, RowDescent
from skmc.solvers.soft_impute import SoftImpute, largest_weight
from skmc.solvers.solver import Solver, State
from skmc.solvers.splitting import DouglasRachford
from skmc.solvers.svt import SingularValueThresholding
from skmc.solvers.truncated_admm import TruncatedADMM
from skmc.solvers.truncated_apgl import TruncatedAPGL
from skmc.solvers.truncated_weighted import WeightedTruncated

__all__ = [
    "CosineSchedule",
    "Descent",
    "ParametricSolver",
    "ProximalGradient",
    "Solver",
    "State",
]
