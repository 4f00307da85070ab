"""Data for another process, whose tensors are not copied into a stream of bytes."""

from __future__ import annotations

import io
import pickle
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        if isinstance(value, Tensor):
            return torch.tensor, (value.numpy(),)
        return NotImplemented


class Packed:
    """Any data for another process, where ``data`` is unpacked once.

    Arrays stay outside of the stream of bytes, and Dask sends their memory as it is.

    Parameters
    ----------
    data : object
        Data, with tensors on the CPU.
    """

    def __init__(self, data: object):
        stream, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(stream, 5, buffer_callback=buffers.append).dump(data)
        self._stream = stream.getvalue()
        self._arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]

    def __getstate__(self) -> dict[str, Any]:
        return {"_stream": self._stream, "_arrays": self._arrays}

    def __sizeof__(self) -> int:  # Dask runs tasks near large data
        return sum(array.nbytes for array in self._arrays)

    @cached_property
    def data(self) -> Any:
        """The data."""
        return pickle.loads(self._stream, buffers=self._arrays)
