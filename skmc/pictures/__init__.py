"""Pictures, gray or with channels: shapes, completion in blocks, estimates."""

from skmc.pictures.complete import Estimate, complete, estimate
from skmc.pictures.shapes import as_matrix, as_picture

__all__ = ["Estimate", "complete", "estimate"]
