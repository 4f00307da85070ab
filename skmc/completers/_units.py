"""Standardization of cells, for columns with different units."""

from __future__ import annotations

import numpy as np
import torch

from skmc.cells import Scaling


def standardized(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells, NaN where missing."""
    values = torch.from_numpy(np.array(cells, order="C"))
    scaled = scaling.standardise(values).to(values.dtype)
    return torch.where(values.isnan(), values, scaled).numpy()


def undone(values: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized values in the units of the data."""
    return scaling.undo(torch.from_numpy(values)).numpy()
