"""Linear algebra that several solvers share."""

from skmc.linalg.low_rank import LowRank, SparsePlusLowRank
from skmc.linalg.ridge import RowModel
from skmc.linalg.svd import SVD, partial_svd, shrink, svd

__all__ = [
    "SVD",
    "LowRank",
    "RowModel",
    "SparsePlusLowRank",
    "partial_svd",
    "shrink",
    "svd",
]
