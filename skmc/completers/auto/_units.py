"""Columns with different units, and their standardization."""

from __future__ import annotations

import numpy as np
import torch

from skmc.cells import Observed, Scaling


def units_of(cells: np.ndarray) -> Scaling:
    """The scaling of columns with different units; otherwise no scaling.

    Columns with different deviations have one unit if neighboring cells of a row differ
    less than random cells, both as they are and standardized: columns of pictures may
    be flat or rough.
    """
    values = torch.from_numpy(np.array(cells, order="C"))
    data = Observed(values, ~torch.isnan(values))
    scaling = Scaling.of(data, "auto")
    alike = _smooth(cells) and _smooth(standardized(cells, scaling))
    if alike or (scaling.scale == scaling.scale[:, :1]).all():
        return Scaling.of(data, None)
    return scaling


def standardized(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    values = torch.from_numpy(np.array(cells, order="C"))
    scaled = scaling.standardise(values).to(values.dtype)
    return torch.where(values.isnan(), values, scaled).numpy()


def _smooth(cells: np.ndarray) -> bool:
    """Whether neighbors in a row differ by less than a standard deviation."""
    steps = np.diff(cells.astype(float), axis=1)
    steps = steps[~np.isnan(steps)]
    spread: float = np.nanvar(cells, dtype=float)
    return bool(len(steps) and np.square(steps).mean() < spread)
