"""Solvers: what one step is, and how far from optimal an iterate is."""

from skmc.solvers.alternating import HardRank
from skmc.solvers.descent import Descent
from skmc.solvers.row_descent import RowDescent
from skmc.solvers.solver import Solver, State

__all__ = ["Descent", "HardRank", "RowDescent", "Solver", "State"]
