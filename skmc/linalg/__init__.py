"""Linear algebra that several solvers share."""

from skmc.linalg.low_rank import LowRank, SparsePlusLowRank
from skmc.linalg.svd import SVD, partial_svd, shrink, svd

__all__ = ["SVD", "LowRank", "SparsePlusLowRank", "partial_svd", "shrink", "svd"]
