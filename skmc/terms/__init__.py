"""Terms of an objective: data fits and regularizers."""

from skmc.terms.fidelity import SquaredError
from skmc.terms.laplacian import (
    AdaptiveDirichletEnergy,
    DirichletEnergy,
    graph_laplacian,
)
from skmc.terms.smoothness import TotalVariation
from skmc.terms.term import Term
from skmc.terms.transforms import Blocks, Columns, Rows

__all__ = [
    "AdaptiveDirichletEnergy",
    "Blocks",
    "Columns",
    "DirichletEnergy",
    "Rows",
    "SquaredError",
    "Term",
    "TotalVariation",
    "graph_laplacian",
]
