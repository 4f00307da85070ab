r"""Linear measurements of a matrix: ``y_i = <A_i, X> = tr(A_i' X)``.

Each kind stores only the data that define its ``A_i``: a detached copy, in single
precision if it is given so and otherwise in double. Measurements are immutable and
can be sliced: ``A[:10]`` are the first ten, so that `sklearn.model_selection` splits
measurements.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor


class Measurements(ABC):
    """The interface of all kinds of measurements.

    Attributes
    ----------
    matrix_shape : tuple
        Shape of the matrix, ``(n_rows, n_cols)``. ``len()`` is the number of
        measurements ``n`` and ``shape`` is ``(n,)``.
    """

    matrix_shape: tuple[int, int]
    _each: ClassVar[tuple[str, ...]]  # tensors with one item per measurement
    _shared: ClassVar[tuple[str, ...]] = ()  # other tensors

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """``<A_i, X>``: (\\*batch, n_rows, n_cols) -> (\\*batch, n).

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor
        """

    @abstractmethod
    def adjoint(self, r: Tensor) -> Tensor:
        """``sum_i r_i A_i``: (\\*batch, n) -> (\\*batch, n_rows, n_cols).

        Parameters
        ----------
        r : Tensor of shape (\\*batch, n)
            Weights of the measurements.

        Returns
        -------
        Tensor
        """

    @property
    @abstractmethod
    def energy(self) -> Tensor:
        """``sum_i |A_i|_F^2``, shape ()."""

    def dense(self) -> Tensor:
        """All ``A_i``, shape (n, n_rows, n_cols).

        Returns
        -------
        Tensor of shape (n, n_rows, n_cols)
        """
        return self.adjoint(torch.eye(len(self), dtype=self._dtype, device=self.device))

    def gram(self) -> Tensor:
        """``<A_i, A_j>``, shape (n, n).

        Returns
        -------
        Tensor of shape (n, n)
        """
        flat = self.dense().flatten(1)
        return flat @ flat.mT

    @cached_property
    def norm(self) -> Tensor:
        """The largest ``|A(X)|`` over ``|X|_F = 1``, shape ()."""
        if len(self) <= math.prod(self.matrix_shape):
            products = self.gram()
        else:
            flat = self.dense().flatten(1)
            products = flat.mT @ flat
        return torch.linalg.eigvalsh(products)[-1].clamp_min(0).sqrt()

    def least_norm(self, y: Tensor) -> Tensor:
        """``argmin |X|_F`` over the minimizers of ``sum_i (y_i - <A_i, X>)^2``.

        Singular values of ``A`` up to ``eps max(n, n_rows n_cols)`` times the largest
        one count as zero. Shapes (n,) -> (n_rows, n_cols).

        Parameters
        ----------
        y : Tensor of shape (n,)
            Results of the measurements.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        U, s, Vh = self._svd
        kept = s > torch.finfo(s.dtype).eps * max(len(U), Vh.shape[1]) * s[0]
        coefficients = torch.where(kept, (U.mT @ y) / s, 0.0)
        return (coefficients @ Vh).view(self.matrix_shape)

    @cached_property
    def _svd(self) -> tuple[Tensor, Tensor, Tensor]:
        return torch.linalg.svd(self.dense().flatten(1), full_matrices=False)

    @property
    def _dtype(self) -> torch.dtype:
        return getattr(self, self._each[0]).dtype

    @property
    def size(self) -> int:
        """Number of elements stored for all measurements."""
        return sum(getattr(self, name).numel() for name in self._each)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return getattr(self, self._each[0]).device

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``, the shape of a list of measurements; see `matrix_shape`."""
        return (len(self),)

    def __len__(self) -> int:
        return len(getattr(self, self._each[0]))

    def __getitem__(self, index: object) -> Measurements:
        if isinstance(index, tuple):  # scikit-learn's (indices, Ellipsis)
            index = index[0]
        if not isinstance(index, slice):
            index = torch.as_tensor(index)
            if index.ndim != 1:
                raise TypeError(
                    "measurements are sliced or taken by an array of indices, got "
                    f"{index.ndim} axes; A[i : i + 1] is the i-th one."
                )
            index = index.to(self.device)
        return self._with({name: getattr(self, name)[index] for name in self._each})

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Measurements:
        """Move to a device and cast to a floating-point type.

        Parameters
        ----------
        device : device or str
            Target device.
        dtype : dtype
            Target floating-point type.

        Returns
        -------
        Measurements
        """
        moved = {}
        for name in (*self._each, *self._shared):
            tensor = getattr(self, name)
            kind = dtype if tensor.is_floating_point() else tensor.dtype
            moved[name] = tensor.to(device, kind)
        return self._with(moved)

    def _with(self, tensors: dict[str, Tensor]) -> Measurements:
        new = object.__new__(type(self))
        tensors_here = {
            name: getattr(self, name) for name in (*self._each, *self._shared)
        }
        vars(new).update(matrix_shape=self.matrix_shape, **tensors_here | tensors)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Measurements:
        return self  # it is immutable

    def __repr__(self) -> str:
        n_rows, n_cols = self.matrix_shape
        return f"{type(self).__name__}({len(self)} of a {n_rows} x {n_cols} matrix)"
