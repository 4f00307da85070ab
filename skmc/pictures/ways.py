"""Completion of several channels by a completer of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from sklearn.base import clone

from skmc import patterns
from skmc.base import BaseCompleter
from skmc.cells import Entries
from skmc.linalg import diffuse, seed_of
from skmc.pictures.blocks import crop
from skmc.pictures.channels import as_matrix, as_picture

HELD_OUT_SHARE = 0.1
ROUNDING = 1e-12  # share of the variance of the first principal component
Way = Callable[[np.ndarray], np.ndarray]


def choose_way(
    completer: BaseCompleter,
    cells: np.ndarray,  # (height, width, channels)
) -> Way:
    """Choose how to complete the channels of a picture."""
    if "channels" in completer.get_params():
        return partial(_together, completer)
    ways = [partial(_separately, completer), partial(_decorrelated, completer)]
    missing = np.isnan(cells)
    if cells.shape[2] == 1 or (missing != missing[:, :, :1]).any():
        return ways[0]
    sample = cells[crop(missing)]
    seed = seed_of(getattr(completer, "random_state", None))
    hidden = patterns.random(
        sample[:, :, 0], HELD_OUT_SHARE, spare=True, random_state=seed
    )
    if not hidden.any():
        return ways[0]
    train = np.where(hidden[:, :, None], np.nan, sample)
    return min(ways, key=lambda way: np.square(way(train) - sample)[hidden].sum())


def _together(completer: BaseCompleter, cells: np.ndarray) -> np.ndarray:
    channels = cells.shape[2]
    joint = clone(completer).set_params(channels=channels)
    matrix = as_matrix(cells).filled(np.nan)
    return as_picture(joint.fit_transform(_one_unit(matrix)), channels)


def _separately(completer: BaseCompleter, cells: np.ndarray) -> np.ndarray:
    channels = np.moveaxis(cells, 2, 0)
    return np.stack([_completed(completer, channel) for channel in channels], axis=2)


def _decorrelated(completer: BaseCompleter, cells: np.ndarray) -> np.ndarray:
    """Complete the principal components of the observed colors.

    Gray pictures have one component; the others are rounding errors.
    """
    colors = cells[~np.isnan(cells).any(2)]
    mean = colors.mean(0)
    energy, axes = np.linalg.eigh((colors - mean).T @ (colors - mean))
    axes = axes[:, energy >= ROUNDING * energy[-1]]
    return _separately(completer, (cells - mean) @ axes) @ axes.T + mean


def _completed(completer: BaseCompleter, channel: np.ndarray) -> np.ndarray:
    """Complete a channel; fill empty rows and columns from neighboring ones."""
    if completer.get_params(deep=False).get("scaling") == "auto":
        completer = clone(completer).set_params(scaling="global")
    seen = ~np.isnan(channel)
    lines = np.ix_(seen.any(1), seen.any(0))
    tags = getattr(completer, "completer_tags", None)
    if channel[lines].shape == channel.shape or (tags and tags.pictures):
        return clone(completer).fit_transform(_one_unit(channel))
    filled = np.full(channel.shape, np.nan, channel.dtype)
    filled[lines] = clone(completer).fit_transform(_one_unit(channel[lines]))
    missing = np.isnan(filled)
    zero_filled = (np.where(missing, 0, filled), ~missing)
    return diffuse(*map(torch.from_numpy, zero_filled)).numpy()


def _one_unit(matrix: np.ndarray) -> Entries:
    """The observed cells, which say that all of them have the same unit."""
    return Entries.of_matrix(matrix, one_unit=True)
