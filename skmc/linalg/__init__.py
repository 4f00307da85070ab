"""Linear algebra that several solvers share."""

from skmc.linalg.inverse import LDMinv, d_minv
from skmc.linalg.low_rank import LowRank, SparsePlusLowRank
from skmc.linalg.products import shrink_by_products
from skmc.linalg.ridge import RowModel
from skmc.linalg.svd import SVD, full_svd, partial_svd, shrink, shrink_dense

__all__ = [
    "SVD",
    "LDMinv",
    "LowRank",
    "RowModel",
    "SparsePlusLowRank",
    "d_minv",
    "full_svd",
    "partial_svd",
    "shrink",
    "shrink_by_products",
    "shrink_dense",
]
