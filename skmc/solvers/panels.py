"""Panels of columns, whose factors remain in a cache while cells are read."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from skmc.cells import SparseValues

CACHED = 2**20  # bytes
CELLS = 4  # of a row in a panel on average, at least

Panel = tuple[SparseValues, slice]
_known: WeakKeyDictionary[SparseValues, tuple[int, list[Panel]]] = WeakKeyDictionary()


def panels_of(data: SparseValues, columns: Tensor) -> list[Panel]:
    """Divide a matrix into panels of columns.

    Cells of a row are spread over all columns, so that the factors of many columns
    would be read from memory once for each cell. Panels are kept until others of the
    same data are asked for.

    Parameters
    ----------
    data : SparseValues
        The cells of some rows.
    columns : Tensor of shape (n, k)
        Factors of the columns. Sizes are those of single precision, so that both
        precisions have the same panels.

    Returns
    -------
    list of pairs of SparseValues and slice
        Cells, and columns, of each panel.
    """
    n_panels = math.ceil(columns.numel() * 4 / CACHED)
    n_panels = min(n_panels, len(data.values) // (CELLS * max(1, data.shape[0])))
    if n_panels <= 1 or columns.device.type != "cpu":
        return [(data, slice(None))]
    width = math.ceil(len(columns) / n_panels)
    known, panels = _known.get(data, (0, []))
    if known != width:
        panels = _divide(data, width)
        _known[data] = width, panels
    return panels


def _divide(data: SparseValues, width: int) -> list[Panel]:
    place = data.cols // width
    # Sorting small integers is a radix sort.
    order = np.argsort(place.numpy().astype(np.uint16), kind="stable")
    parts = torch.from_numpy(order).split(place.bincount().tolist())
    panels = []
    for k, cells in enumerate(parts):
        panel = SparseValues(
            data.rows[cells],
            data.cols[cells] - k * width,
            data.values[cells],
            (data.shape[0], min(width, data.shape[1] - k * width)),
            None if data.weights is None else data.weights[cells],
        )
        panels.append((panel, slice(k * width, (k + 1) * width)))
    return panels
