"""Solvers: what one step is, and how far from optimal an iterate is."""

from skmc.linalg import CosineSchedule
from skmc.solvers.alternating import HardRank
from skmc.solvers.descent import Descent, DescentResult
from skmc.solvers.gradient_flow import GradientFlow
from skmc.solvers.momentum import Momentum
from skmc.solvers.narrowing import modules_in
from skmc.solvers.parametric import (
    LARGEST_STEP,
    Adam,
    ParametricResult,
    ParametricSolver,
    RelativeAdam,
)
from skmc.solvers.relative import norm, parameter_norm, ratio, relative_norm
from skmc.solvers.row_descent import CodeDescent, CodeResult, NetworkResult, RowDescent
from skmc.solvers.row_systems import solved, with_uncertain_prior
from skmc.solvers.solver import (
    DecomposingSolver,
    Result,
    RowModelResult,
    Solver,
    State,
)

__all__ = [
    "CosineSchedule",
    "Descent",
    "ParametricSolver",
    "Result",
    "Solver",
    "State",
]
