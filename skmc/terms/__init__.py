"""Terms of an objective: data fits and regularizers."""

from skmc.terms.laplacian import (
    AdaptiveDirichletEnergy,
    DirichletEnergy,
    graph_laplacian,
)
from skmc.terms.measurements import MeasurementError
from skmc.terms.neighbors import NeighborDirichletEnergy
from skmc.terms.norms import Box, L1Norm, NuclearNorm, SquaredNorm, TotalVariation
from skmc.terms.objective import SquaredError, Sum
from skmc.terms.sparse_laplacian import SparseDirichletEnergy
from skmc.terms.term import Term, inner, narrow
from skmc.terms.transforms import Blocks, Columns, Rows, Transform

__all__ = [
    "AdaptiveDirichletEnergy",
    "Blocks",
    "Box",
    "Columns",
    "DirichletEnergy",
    "L1Norm",
    "MeasurementError",
    "NeighborDirichletEnergy",
    "NuclearNorm",
    "Rows",
    "SparseDirichletEnergy",
    "SquaredError",
    "SquaredNorm",
    "Sum",
    "Term",
    "TotalVariation",
    "Transform",
    "graph_laplacian",
    "inner",
    "narrow",
]
