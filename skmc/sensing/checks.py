"""Validation of measurements."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor


def is_shape(values: Any) -> bool:
    """Whether these are two positive integers."""
    return np.shape(values) == (2,) and all(
        isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0
        for n in values
    )


def check_plain(name: str, values: Any) -> Any:
    """Return the values, or raise an error if an array would drop a part of them."""
    arrays = values if isinstance(values, list | tuple) else [values]
    if any(sparse.issparse(part) for part in arrays):
        raise TypeError(
            f"{name} is sparse; pass the dense array, .toarray(), or CellMeasurements "
            "for single cells."
        )
    if np.ma.is_masked(values):
        place = tuple(np.argwhere(np.ma.getmaskarray(values))[0].tolist())
        raise ValueError(f"{name} is masked at {place}; leave that measurement out.")
    return values


def copied(name: str, values: ArrayLike, ndim: int) -> Tensor:
    """Return a tensor with ``ndim`` axes, none of them empty, or raise an error."""
    if isinstance(values, Tensor):
        tensor = values.detach().clone()
    else:
        array = np.asarray(check_plain(name, values))
        kept = array.dtype.kind in "biuc" or array.dtype == np.float32
        dtype = array.dtype.newbyteorder("=") if kept else np.float64
        tensor = torch.from_numpy(np.array(array, dtype, order="C"))
    if tensor.ndim != ndim or 0 in tensor.shape:
        raise ValueError(
            f"{name} must be {ndim}-dimensional and not empty, got shape "
            f"{tuple(tensor.shape)}."
        )
    return tensor


def real(name: str, values: ArrayLike, ndim: int) -> Tensor:
    """Return a finite, real tensor in single or double precision, or raise an error."""
    tensor = copied(name, values, ndim)
    if tensor.is_complex():
        raise TypeError(f"{name} is complex; measurements are real.")
    if tensor.dtype != torch.float32:
        tensor = tensor.double()
    wrong = ~torch.isfinite(tensor)
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(
            f"{name} contains NaN or infinity at {place}; leave that measurement out."
        )
    return tensor
