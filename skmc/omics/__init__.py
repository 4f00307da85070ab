"""Completion of the matrices of AnnData: expression, proteins, counts, spots."""

from skmc.omics.complete import complete

__all__ = ["complete"]
