"""Terms of an objective: data fits and regularizers."""

from skmc.terms.dirichlet import (
    AdaptiveDirichletEnergy,
    DirichletEnergy,
    SparseDirichletEnergy,
    graph_laplacian,
)
from skmc.terms.neighbors import NeighborDirichletEnergy
from skmc.terms.norms import Box, L1Norm, NuclearNorm, SquaredNorm, TotalVariation
from skmc.terms.objective import MeasurementError, SquaredError, Sum
from skmc.terms.term import Term, inner, narrow
from skmc.terms.transforms import Blocks, Columns, Rows, Transform

__all__ = [
    "AdaptiveDirichletEnergy",
    "Box",
    "DirichletEnergy",
    "L1Norm",
    "NuclearNorm",
    "SquaredError",
    "SquaredNorm",
    "Sum",
    "Term",
    "TotalVariation",
    "graph_laplacian",
]
