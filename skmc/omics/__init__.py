"""Completion of the matrices of AnnData: expression, proteins, counts, spots."""

from skmc.omics.layers import complete

__all__ = ["complete"]
