"""Pictures, gray or with channels: shapes, completion in blocks, estimates."""

from skmc.pictures.channels import as_matrix, as_picture
from skmc.pictures.in_blocks import Estimate, complete, estimate

__all__ = ["Estimate", "complete", "estimate"]
