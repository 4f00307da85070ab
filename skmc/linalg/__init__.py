"""Linear algebra that several solvers share."""

from skmc.linalg.dsvd import DSVD
from skmc.linalg.inverse import LDMinv, d_minv
from skmc.linalg.low_rank import LowRank, SparsePlusLowRank
from skmc.linalg.products import shrink_by_products
from skmc.linalg.ridge import RowModel
from skmc.linalg.spectral import apply_to_singular_values
from skmc.linalg.stiefel import StiefelResult, cayley_step, minimize_on_stiefel
from skmc.linalg.svd import SVD, full_svd, partial_svd, shrink, shrink_dense, svd_of

__all__ = [
    "DSVD",
    "SVD",
    "LDMinv",
    "LowRank",
    "RowModel",
    "SparsePlusLowRank",
    "StiefelResult",
    "apply_to_singular_values",
    "cayley_step",
    "d_minv",
    "full_svd",
    "minimize_on_stiefel",
    "partial_svd",
    "shrink",
    "shrink_by_products",
    "shrink_dense",
    "svd_of",
]
