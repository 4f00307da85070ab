"""Standardization of cells, for columns with different units."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from skmc.cells import Scaling


def standardized(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells, NaN where missing."""
    values = torch.from_numpy(np.array(cells, order="C"))
    scaled = scaling.standardise(values).to(values.dtype)
    return torch.where(values.isnan(), values, scaled).numpy()


def as_seen_by(estimator: Any, scaled: np.ndarray, scaling: Scaling) -> np.ndarray:
    """The cells in the units in which an estimator sees them.

    Methods that compare cells of different columns see the data as they are.
    """
    return undone(scaled, scaling) if compares_columns(estimator) else scaled


def as_scaled(estimator: Any, values: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardize values of an estimator; the inverse of `as_seen_by`."""
    return standardized(values, scaling) if compares_columns(estimator) else values


def compares_columns(estimator: Any) -> bool:
    tags = getattr(estimator, "completer_tags", None)
    return tags is not None and tags.pictures


def undone(values: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized values in the units of the data."""
    return scaling.undo(torch.from_numpy(values)).numpy()
