r"""Linear measurements of a matrix: ``y_i = <A_i, X> = tr(A_i' X)``.

Each kind stores what its ``A_i`` need and no more: a copy, without its derivatives, in
single precision where it is given so and else in double. Operators know tensors only,
do not change, and may be sliced: ``A[:10]`` are the first ten measurements, so that
`sklearn.model_selection` splits measurements.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor


class Measurements(ABC):
    """What every kind of measurements can do.

    Attributes
    ----------
    matrix_shape : tuple
        ``(n_rows, n_cols)``. ``len()`` is the number of measurements ``n`` and
        ``shape`` is ``(n,)``.
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
            Weights.

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
        """``argmin |X|_F`` over the minimisers of ``sum_i (y_i - <A_i, X>)^2``.

        Singular values of ``A`` up to ``eps max(n, n_rows n_cols)`` times the largest
        one count as zero. Shapes (n,) -> (n_rows, n_cols).

        Parameters
        ----------
        y : Tensor of shape (n,)
            Results.

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
    def device(self) -> torch.device:
        """Where the numbers are."""
        return getattr(self, self._each[0]).device

    @property
    def shape(self) -> tuple[int]:
        """``(n, n_rows, n_cols)``."""
        return (len(self),)

    def __len__(self) -> int:
        return len(getattr(self, self._each[0]))

    def __getitem__(self, index: Any) -> Measurements:
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
        """On another device, in another floating-point type.

        Parameters
        ----------
        device : device or str
            Where to compute.
        dtype : dtype
            Floating-point type.

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
        own = {name: getattr(self, name) for name in (*self._each, *self._shared)}
        vars(new).update(matrix_shape=self.matrix_shape, **own | tensors)
        return new

    def __deepcopy__(self, memo) -> Measurements:
        return self  # nothing ever changes it

    def __repr__(self) -> str:
        n_rows, n_cols = self.matrix_shape
        return f"{type(self).__name__}({len(self)} of a {n_rows} x {n_cols} matrix)"


class DenseMeasurements(Measurements):
    """Any ``A_i``, one matrix each.

    Parameters
    ----------
    A : Tensor or array of shape (n, n_rows, n_cols)
        The matrices.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import DenseMeasurements
    >>> A = DenseMeasurements(torch.eye(4).view(4, 2, 2))
    >>> A.forward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 2., 3., 4.])
    """

    _each = ("A",)
    A: Tensor

    def __init__(self, A: Any):
        self.A = _real("A", A, 3)
        self.matrix_shape = self.A.shape[1], self.A.shape[2]

    def forward(self, X: Tensor) -> Tensor:
        return X.flatten(-2) @ self.A.flatten(1).mT

    def adjoint(self, r: Tensor) -> Tensor:
        return (r @ self.A.flatten(1)).unflatten(-1, self.matrix_shape)

    @property
    def energy(self) -> Tensor:
        return self.A.square().sum()

    def dense(self) -> Tensor:
        return self.A


class DiagonalMeasurements(Measurements):
    """``A_i = Phi diag(values_i) Psi'``: all share their singular vectors.

    Parameters
    ----------
    Phi : Tensor or array of shape (n_rows, k)
        Orthonormal columns.
    values : Tensor or array of shape (n, k)
        The diagonals.
    Psi : Tensor or array of shape (n_cols, k)
        Orthonormal columns.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import DiagonalMeasurements
    >>> A = DiagonalMeasurements(torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.eye(2))
    >>> A.forward(torch.tensor([[3.0, 9.0], [9.0, 5.0]]))
    tensor([13.])
    """

    _each = ("values",)
    _shared = ("Phi", "Psi")
    values: Tensor
    Phi: Tensor
    Psi: Tensor

    def __init__(self, Phi: Any, values: Any, Psi: Any):
        self.Phi, self.Psi = _real("Phi", Phi, 2), _real("Psi", Psi, 2)
        self.values = _real("values", values, 2)
        k = self.values.shape[1]
        for name, basis in (("Phi", self.Phi), ("Psi", self.Psi)):
            if basis.shape[1] != k:
                raise ValueError(
                    f"{name} has {basis.shape[1]} columns and values {k}; each column "
                    "needs its values."
                )
            products = basis.mT @ basis - torch.eye(k).to(basis)
            if not (products.abs() < torch.finfo(basis.dtype).eps ** 0.5).all():
                raise ValueError(
                    f"{name} must have orthonormal columns; torch.linalg.qr makes such."
                )
        self.matrix_shape = len(self.Phi), len(self.Psi)

    def forward(self, X: Tensor) -> Tensor:
        return ((self.Phi.mT @ X).mT * self.Psi).sum(-2) @ self.values.mT

    def adjoint(self, r: Tensor) -> Tensor:
        return (self.Phi * (r @ self.values)[..., None, :]) @ self.Psi.mT

    @property
    def energy(self) -> Tensor:
        return self.values.square().sum()

    def gram(self) -> Tensor:
        return self.values @ self.values.mT

    @cached_property
    def norm(self) -> Tensor:
        return torch.linalg.matrix_norm(self.values, 2)

    def least_norm(self, y: Tensor) -> Tensor:
        diagonal = DenseMeasurements(self.values[:, None]).least_norm(y)
        return (self.Phi * diagonal) @ self.Psi.mT


class RankOneMeasurements(Measurements):
    """``A_i = a_i b_i'``, that is ``y_i = a_i' X b_i``.

    Parameters
    ----------
    a : Tensor or array of shape (n, n_rows)
        Left vectors.
    b : Tensor or array of shape (n, n_cols)
        Right vectors.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import RankOneMeasurements
    >>> A = RankOneMeasurements(torch.ones(1, 2), torch.tensor([[1.0, -1.0]]))
    >>> A.forward(torch.tensor([[5.0, 2.0], [1.0, 1.0]]))
    tensor([3.])
    """

    _each = ("a", "b")
    a: Tensor
    b: Tensor

    def __init__(self, a: Any, b: Any):
        self.a, self.b = _real("a", a, 2), _real("b", b, 2)
        if len(self.a) != len(self.b):
            raise ValueError(
                f"a has {len(self.a)} rows and b {len(self.b)}; each measurement needs "
                "one of both."
            )
        self.matrix_shape = self.a.shape[1], self.b.shape[1]

    def forward(self, X: Tensor) -> Tensor:
        return ((self.a @ X) * self.b).sum(-1)

    def adjoint(self, r: Tensor) -> Tensor:
        return self.a.mT @ (r[..., None] * self.b)

    @property
    def energy(self) -> Tensor:
        return (self.a.square().sum(-1) * self.b.square().sum(-1)).sum()

    def gram(self) -> Tensor:
        return (self.a @ self.a.mT) * (self.b @ self.b.mT)

    @cached_property
    def _spectrum(self) -> tuple[Tensor, Tensor]:
        return torch.linalg.eigh(self.gram().double())

    def least_norm(self, y: Tensor) -> Tensor:
        """With fewer measurements than cells from `gram`, and without the dense form.

        Singular values then count as zero up to ``sqrt(eps n)`` of the largest one.

        Parameters
        ----------
        y : Tensor of shape (n,)
            Results.

        Returns
        -------
        Tensor of shape (n_rows, n_cols)
        """
        if len(self) > math.prod(self.matrix_shape):
            return super().least_norm(y)
        energy, U = self._spectrum
        kept = energy > torch.finfo(energy.dtype).eps * len(U) * energy[-1]
        X = torch.zeros(self.matrix_shape, dtype=y.dtype, device=y.device)
        for _ in range(2):  # squares lose digits, which the second round finds again
            missed = (U.mT @ (y - self.forward(X)).double()) / energy
            X = X + self.adjoint((U @ torch.where(kept, missed, 0.0)).to(y))
        return X


class CellMeasurements(Measurements):
    """Single cells, ``y_i = X[rows[i], cols[i]]``: matrix completion.

    Parameters
    ----------
    rows, cols : Tensor or array of int, shape (n,)
        Zero-based positions; a cell may come more than once.
    matrix_shape : tuple of int
        ``(n_rows, n_cols)``.

    Examples
    --------
    >>> import torch
    >>> from skmc.sensing import CellMeasurements
    >>> A = CellMeasurements([0, 1], [1, 0], (2, 2))
    >>> A.forward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([2., 3.])
    """

    _each = ("rows", "cols")
    rows: Tensor
    cols: Tensor

    def __init__(self, rows: Any, cols: Any, matrix_shape: tuple[int, int]):
        if not is_shape(matrix_shape):
            raise ValueError(
                f"matrix_shape must be (n_rows, n_cols), got {matrix_shape!r}."
            )
        self.matrix_shape = (int(matrix_shape[0]), int(matrix_shape[1]))
        for name, index, size in zip(
            ("rows", "cols"), (rows, cols), self.matrix_shape, strict=True
        ):
            index = _copy(name, index, 1)
            if (
                index.is_floating_point()
                or index.is_complex()
                or index.dtype is torch.bool
            ):
                raise TypeError(
                    f"{name} has dtype {index.dtype}; it must be integers, the "
                    "positions of cells."
                )
            index = index.long()  # other integers may be too short for size
            outside = (index < 0) | (index >= size)
            if outside.any():
                place = int(outside.nonzero()[0])
                raise ValueError(
                    f"{name} contains {int(index[place])} at position {place}, outside "
                    f"0..{size - 1}; correct it or give a larger matrix_shape."
                )
            setattr(self, name, index)
        if len(self.rows) != len(self.cols):
            raise ValueError(
                f"rows has length {len(self.rows)} and cols {len(self.cols)}; each "
                "cell needs one of both."
            )

    @property
    def _dtype(self) -> torch.dtype:
        return torch.float64

    @property
    def _place(self) -> Tensor:
        return self.rows * self.matrix_shape[1] + self.cols

    def forward(self, X: Tensor) -> Tensor:
        return X[..., self.rows, self.cols]

    def adjoint(self, r: Tensor) -> Tensor:
        cells = r.new_zeros(*r.shape[:-1], math.prod(self.matrix_shape))
        return cells.index_add(-1, self._place, r).unflatten(-1, self.matrix_shape)

    @property
    def energy(self) -> Tensor:
        return torch.tensor(float(len(self)), dtype=self._dtype, device=self.device)

    @cached_property
    def _count(self) -> Tensor:  # how often each cell comes, (n_rows, n_cols)
        return self.adjoint(torch.ones_like(self.rows, dtype=self._dtype))

    def gram(self) -> Tensor:
        return (self._place[:, None] == self._place).to(self._dtype)

    @cached_property
    def norm(self) -> Tensor:
        return self._count.max().sqrt()

    def least_norm(self, y: Tensor) -> Tensor:
        return self.adjoint(y) / self._count.clamp_min(1).to(y)


class ScaledMeasurements(Measurements):
    """``factor A_i``, without a copy of the ``A_i``.

    Parameters
    ----------
    operator : Measurements
        The ``A_i``.
    factor : float, not zero
        Multiplies them.
    """

    def __init__(self, operator: Measurements, factor: float):
        self.operator, self.factor = operator, factor
        self.matrix_shape = operator.matrix_shape

    def __len__(self) -> int:
        return len(self.operator)

    def __getitem__(self, index: Any) -> Measurements:
        return ScaledMeasurements(self.operator[index], self.factor)

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self.operator.device

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Measurements:
        return ScaledMeasurements(self.operator.to(device, dtype), self.factor)

    def forward(self, X: Tensor) -> Tensor:
        return self.operator.forward(X) * self.factor

    def adjoint(self, r: Tensor) -> Tensor:
        return self.operator.adjoint(r) * self.factor

    @property
    def energy(self) -> Tensor:
        return self.operator.energy * self.factor**2

    def dense(self) -> Tensor:
        return self.operator.dense() * self.factor

    def gram(self) -> Tensor:
        return self.operator.gram() * self.factor**2

    @cached_property
    def norm(self) -> Tensor:
        return self.operator.norm * abs(self.factor)

    def least_norm(self, y: Tensor) -> Tensor:
        return self.operator.least_norm(y) / self.factor


def is_shape(values: Any) -> bool:
    """Whether these are two positive integers.

    Parameters
    ----------
    values : object
        What a user gave.

    Returns
    -------
    bool
    """
    return np.shape(values) == (2,) and all(
        isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0
        for n in values
    )


def check_plain(name: str, values: Any) -> Any:
    """The same, if nothing of it would be lost in an array; or an error.

    Parameters
    ----------
    name : str
        What the error calls them.
    values : object
        What a user gave.

    Returns
    -------
    object
    """
    parts = values if isinstance(values, list | tuple) else [values]
    if any(sparse.issparse(part) for part in parts):
        raise TypeError(
            f"{name} is sparse; give the dense array, .toarray(), or, of single cells, "
            "CellMeasurements."
        )
    if np.ma.is_masked(values):
        place = tuple(np.argwhere(np.ma.getmaskarray(values))[0].tolist())
        raise ValueError(f"{name} is masked at {place}; leave that measurement out.")
    return values


def _copy(name: str, values: Any, ndim: int) -> Tensor:
    """A tensor with ``ndim`` axes, none of them empty; or an error."""
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


def _real(name: str, values: Any, ndim: int) -> Tensor:
    """The same, finite, real and in single or double precision; or an error."""
    tensor = _copy(name, values, ndim)
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
