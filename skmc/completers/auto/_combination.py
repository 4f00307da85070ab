"""Weighted means and variances of the values of fitted estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from skmc.base import BaseCompleter
from skmc.cells import Scaling


def combined(
    completers: Mapping[str, Any],
    weights: Iterable[np.ndarray],
    scaled: np.ndarray,
    scaling: Scaling,
    values: Callable[[Any, np.ndarray], np.ndarray],
) -> np.ndarray:
    """The weighted sum of ``values(completer, scaled)``, in the data's units."""
    total = np.zeros(scaled.shape)
    for completer, weight in zip(completers.values(), weights, strict=True):
        total += weight * values(completer, scaled)
    undone: np.ndarray = scaling.undo(torch.from_numpy(total)).numpy()
    return undone


def variance_of(
    completers: Mapping[str, Any],
    weights: Iterable[np.ndarray],
    scaled: np.ndarray,
    values: Callable[[Any, np.ndarray], np.ndarray],
) -> np.ndarray:
    """The weighted variance of ``values(completer, scaled)``, in scaled units."""
    mean, square = np.zeros(scaled.shape), np.zeros(scaled.shape)
    total = np.zeros(scaled.shape[1])
    for completer, weight in zip(completers.values(), weights, strict=True):
        value = values(completer, scaled)
        total += weight
        off = value - mean
        mean += weight / np.where(total > 0, total, 1) * off
        square += weight * off * (value - mean)
    return square


def reconstruction(completer: BaseCompleter, scaled: np.ndarray) -> np.ndarray:
    """The completer's values for the matrix to complete."""
    if isinstance(completer, BaseCompleter) and completer._shape == scaled.shape:
        return completer.reconstruction_
    return own_values(completer, scaled)


def own_values(completer: BaseCompleter, scaled: np.ndarray) -> np.ndarray:
    if isinstance(completer, BaseCompleter):
        return completer._fitted.predict(scaled, not completer.keep_observed)
    return np.asarray(completer.transform(scaled))
