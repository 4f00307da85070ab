"""The observed cells of a large, sparsely observed matrix, as tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells.scaling import Scaling
from skmc.linalg import (
    LowRank,
    RowModel,
    SparsePlusLowRank,
    compressed_rows,
    conjugate_gradients,
    work_of,
)

VECTOR = 8  # numbers in a register
CACHED = 2**21  # bytes of factors that remain in a cache while cells are read
SUMMED = 2**16  # numbers
SINGLE = 1e6  # largest number that single precision is good enough for
CELLS = 4  # of a row in a panel on average, at least


@dataclass(frozen=True, eq=False)
class SparseObserved:
    """The observed cells of a matrix of which few cells are observed.

    The counterpart of `skmc.Observed`. Completions are products of factors (`LowRank`)
    and are never formed: memory is that of the observed cells and of the factors. There
    are no batch axes.

    Parameters
    ----------
    rows, cols : int64 Tensor of shape (n_cells,)
        Positions, sorted by row and then by column, each cell once; see `of`.
    values : floating Tensor of shape (n_cells,)
        Values of the cells.
    shape : tuple of int
        ``(n_rows, n_cols)``.
    sides : pair of tuples of Side
        Linear priors of the rows' and of the columns' factors.
    weights : Tensor of shape (n_cells,) or None, default=None
        How often each cell counts in `misfit`, `energy`, `sums`, `row_sums`, `counts`
        and `solved`. None means once.
    """

    rows: Tensor
    cols: Tensor
    values: Tensor
    shape: tuple[int, int]
    sides: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    weights: Tensor | None = None

    @classmethod
    def of(
        cls, rows, cols, values, shape: tuple[int, int], weights=None
    ) -> SparseObserved:
        """From tensors or arrays in any order.

        Parameters
        ----------
        rows : int Tensor or array of shape (n_cells,)
            Positions, each at most once.
        cols : int Tensor or array of shape (n_cells,)
            Positions, each at most once.
        values : Tensor or array of shape (n_cells,)
            Values.
        shape : tuple of int
            ``(n_rows, n_cols)``.
        weights : Tensor or array of shape (n_cells,), optional
            How often each cell counts.

        Returns
        -------
        SparseObserved
        """
        rows, cols = torch.as_tensor(rows).long(), torch.as_tensor(cols).long()
        values = torch.as_tensor(values)
        weights = None if weights is None else torch.as_tensor(weights)
        place = rows * shape[1] + cols
        if (place.diff() < 0).any():  # sorting takes as long as several half-steps
            order = place.argsort()
            rows, cols, values = rows[order], cols[order], values[order]
            weights = None if weights is None else weights[order]
        else:
            rows, cols, values = rows.clone(), cols.clone(), values.clone()
            weights = None if weights is None else weights.clone()
        return cls(rows, cols, values, shape, weights=weights)

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def dtype(self) -> torch.dtype:
        """Type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the values."""
        return self.values.device

    remote = False  # the cells are in this process

    @property
    def identity(self) -> list[Any]:
        """What differs between two sets of cells."""
        return [self.shape, *vars(replace(self)).values()]

    @property
    def work(self) -> int:
        """The work of a pass over the observed cells; a step reads no others."""
        return work_of(len(self.values))

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: there are no batch axes."""
        return torch.Size(())

    @property
    def n_observed(self) -> Tensor:
        """Number of observed cells, of shape ``()``."""
        return torch.full_like(self.values[:1].sum(), len(self.values))

    @property
    def energy(self) -> Tensor:
        """``|P(M)|_F^2``."""
        return self.weighted(self.values.square()).sum()

    @cached_property
    def starts(self) -> Tensor:
        """Where each row begins among the cells, and the end, ``(n_rows + 1,)``."""
        return _starts(self.rows, self.shape[0])

    @cached_property
    def by_column(self) -> Tensor:
        """The order of the cells by column and then by row, ``(n_cells,)``."""
        return self.cols.argsort(stable=True)

    @cached_property
    def T(self) -> SparseObserved:
        """The transpose, made at the first access."""
        order = self.by_column
        return SparseObserved(
            self.cols[order],
            self.rows[order],
            self.values[order],
            self.shape[::-1],
            self.sides[::-1],
            None if self.weights is None else self.weights[order],
        )

    @cached_property
    def counts(self) -> Tensor:
        """Number of cells of each row, or the sum of their weights, ``(n_rows,)``."""
        if self.weights is None:
            return self.starts.diff().to(self.values.dtype)
        return self.row_sums(torch.ones_like(self.weights))

    @cached_property
    def largest_weight(self) -> float:
        """The largest weight of a cell, 1 without weights."""
        return 1.0 if self.weights is None else float(self.weights.max())

    def weighted(self, cells: Tensor) -> Tensor:
        """Multiply by the weights of the cells.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            Any numbers.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return cells if self.weights is None else cells * self.weights.to(cells.dtype)

    def inner(self, a: Tensor, b: Tensor) -> Tensor:
        """Weighted inner product of numbers at the cells, in double precision.

        Parameters
        ----------
        a, b : Tensor of shape (n_cells,)
            Any numbers.

        Returns
        -------
        float64 Tensor of shape ()
        """
        products = self.weighted(a * b)
        # A sum in another precision converts all numbers first.
        parts = products.split(SUMMED) if products.device.type == "cpu" else (products,)
        return torch.stack([part.sum(dtype=torch.float64) for part in parts]).sum()

    @cached_property
    def indicator(self) -> SparseObserved:
        """``1 / sqrt(k)`` at each of the ``k`` cells of a row."""
        count = self.starts.diff()
        weights = count.clamp_min(1).to(self.values.dtype).rsqrt()
        return SparseObserved(
            self.rows, self.cols, weights.repeat_interleave(count), self.shape
        )

    def matrix(self, values: Tensor) -> Tensor:
        """A sparse matrix, in compressed rows, with ``values`` at the cells.

        Parameters
        ----------
        values : Tensor of shape (n_cells,)
            In the order of the cells.

        Returns
        -------
        Tensor of shape (n_rows, n_cols), layout sparse_csr
        """
        return compressed_rows(*self._pattern, values, self.shape)

    @cached_property
    def _pattern(self) -> tuple[Tensor, Tensor]:
        return self.starts.to(self._kind), self.cols.to(self._kind)

    @property
    def _kind(self) -> torch.dtype:
        """The smallest type of positions."""
        small = len(self.values) < 2**31 and max(self.shape) < 2**31
        return torch.int32 if small else torch.int64

    def at(self, X: LowRank) -> Tensor:
        """``X`` at the cells, ``(n_cells,)``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        if X.left.shape[1] == 0:
            return torch.zeros_like(self.values)
        left, right = X.left, X.right
        if left.dtype is torch.float32:
            # Shorter rows take many times as long, and remainders a third longer.
            padding = (0, -left.shape[1] % VECTOR)
            left, right = pad(left, padding), pad(right, padding)
        found = self.matrix(left.new_zeros(len(self.values)))
        differentiable = left.requires_grad or right.requires_grad
        # Without ``out``, the pattern is copied, which takes longer than the products.
        out = None if differentiable and torch.is_grad_enabled() else found
        found = torch.sparse.sampled_addmm(found, left, right.mT, beta=0.0, out=out)
        return found.values()

    def residual(self, X: LowRank) -> Tensor:
        """``P(X - M)`` at the cells, ``(n_cells,)``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return self.at(X) - self.values

    def misfit(self, X: LowRank) -> Tensor:
        """``|P(X - M)|_F^2``.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        Tensor of shape ()
        """
        return self.weighted(self.residual(X).square()).sum()

    def solved(self, model: RowModel) -> Tensor:
        """Solve a row model for all rows, given their linear priors.

        Parameters
        ----------
        model : RowModel
            A model of rows. Rows count as average for linear priors of the model that
            the rows do not have.

        Returns
        -------
        Tensor of shape (n_rows, rank)
        """
        priors = zip(self.sides[0], model.sides, strict=False)
        known = sum(side.mean(B) for side, B in priors)
        return model.solve(
            self.starts, self.cols, self.values, known=known, weights=self.weights
        )

    def slope(
        self,
        model: RowModel,
        W: Tensor,
        known: Tensor | float = 0.0,
        dtype: torch.dtype | None = None,
        off: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Left minus right sides of the systems of all rows, and the misfit.

        The former is half the gradient of what `RowModel.solve` minimizes.

        Parameters
        ----------
        model : RowModel
            A model of rows, without links.
        W : Tensor of shape (n_rows, rank)
            Where to evaluate them.
        known : Tensor of shape (n_rows, rank) or float, default=0.0
            What is added to the mean of each row.
        dtype : torch.dtype, optional
            Precision of the part that belongs to the cells; that of the values by
            default.
        off : Tensor of shape (n_cells,), optional
            Residuals at the cells, in this precision, if they are known.

        Returns
        -------
        slope : Tensor of shape (n_rows, rank)
        misfit : Tensor of shape ()
            Squared distance from the observed cells.
        """
        low = model.to(dtype or W.dtype)
        left = pad(W.to(low.F.dtype), (0, 1), value=1.0)
        right = torch.cat([low.F, low.offset[:, None]], 1)
        pull, misfit = (
            torch.zeros_like(left[:, :-1]),
            W.new_zeros((), dtype=torch.float64),
        )
        for panel, cols, cells in self._panels(low.F):
            if off is None:
                found = panel.at(LowRank(left, right[cols]))
                found -= panel.values.to(found.dtype)
            else:
                found = off[cells]
            pull += panel.matrix(panel.weighted(found)) @ low.F[cols]
            misfit += panel.inner(found, found)
        prior = (W - model.mean - known) @ model.precision
        slope = pull.to(W.dtype) + self._prior_counts(model) * prior
        return slope, misfit.to(W.dtype)

    def improved(
        self, model: RowModel, W: Tensor, slope: Tensor, steps: int
    ) -> tuple[Tensor, Tensor]:
        """Take a few steps of conjugate gradients on the systems of all rows at once.

        The change is computed in single precision; that of `slope` is what counts.

        Parameters
        ----------
        model : RowModel
            A model of rows, without links.
        W : Tensor of shape (n_rows, rank)
            Present solutions.
        slope : Tensor of shape (n_rows, rank)
            Left minus right sides of the systems at ``W``.
        steps : int
            Number of steps.

        Returns
        -------
        solutions : Tensor of shape (n_rows, rank)
        after : Tensor of shape ()
            Squared norm of the slope at the solutions, not finite if numbers are too
            large for single precision.
        """
        # Single precision has few exponents, so each row has a unit of its own. It is a
        # power of two, so that rounding does not depend on it.
        tiny = torch.finfo(slope.dtype).tiny
        largest = slope.abs().amax(1, keepdim=True).clamp_min(tiny)
        unit = largest.log2().floor().exp2()
        small = model.to(torch.float32)
        right = (-slope / unit).to(torch.float32).mT
        change, left = conjugate_gradients(
            lambda Z: self._system(small, Z.mT).mT, right, None, steps
        )
        after = (unit[:, 0].square() * left).sum()
        return W + unit * change.mT, after

    def _system(self, model: RowModel, Z: Tensor) -> Tensor:
        image = self._prior_counts(model) * (Z @ model.precision)
        for panel, cols, _ in self._panels(model.F):
            at = panel.weighted(panel.at(LowRank(Z, model.F[cols])))
            image += panel.matrix(at) @ model.F[cols]
        return image

    def _panels(self, F: Tensor) -> list[tuple[SparseObserved, slice, Any]]:
        """Panels of columns whose factors remain in a cache, their columns and cells.

        Cells of a row are spread over all columns, so that the factors of many columns
        would be read from memory once for each cell. Sizes are those of single
        precision, so that both precisions have the same panels.
        """
        n_panels = math.ceil(F.shape[0] * (F.shape[1] + 1) * 4 / CACHED)
        n_panels = min(n_panels, len(self.values) // (CELLS * max(1, self.shape[0])))
        if n_panels <= 1 or F.device.type != "cpu":
            return [(self, slice(None), slice(None))]
        width = math.ceil(F.shape[0] / n_panels)
        panels = self._divided.get(width)
        if panels is None:
            panels = self._divide(width)
            self._divided.clear()
            self._divided[width] = panels
        return panels

    @cached_property
    def _divided(self) -> dict[int, list[tuple[SparseObserved, slice, Tensor]]]:
        return {}

    def _divide(self, width: int) -> list[tuple[SparseObserved, slice, Tensor]]:
        place = self.cols // width
        # Sorting small integers is a radix sort.
        order = np.argsort(place.numpy().astype(np.uint16), kind="stable")
        kind = self._kind
        parts = torch.from_numpy(order).to(kind).split(place.bincount().tolist())
        panels = []
        for k, cells in enumerate(parts):
            cols = slice(k * width, (k + 1) * width)
            panel = SparseObserved(
                self.rows[cells].to(kind),
                self.cols[cells].sub_(k * width).to(kind),
                self.values[cells],
                (self.shape[0], min(width, self.shape[1] - k * width)),
                weights=None if self.weights is None else self.weights[cells],
            )
            panels.append((panel, cols, cells))
        return panels

    def _prior_counts(self, model: RowModel) -> Tensor | float:
        if not model.per_cell:
            return 1.0
        counts = torch.where(self.counts > 0, self.counts, 1)
        return counts[:, None].to(model.F.dtype)

    def sums(self, cells: Tensor, *, by_column: bool) -> Tensor:
        """Sums over observed cells, ``(1, n_cols)`` or ``(1, 1)``.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            The summands.
        by_column : bool
            Whether each column has a sum of its own.

        Returns
        -------
        Tensor
        """
        cells = self.weighted(cells)
        if by_column:
            return cells.new_zeros(1, self.shape[1]).index_add_(
                1, self.cols, cells[None]
            )
        return cells.sum().view(1, 1)

    def row_sums(self, cells: Tensor) -> Tensor:
        """Sums over the observed cells of each row, ``(n_rows,)``.

        Parameters
        ----------
        cells : Tensor of shape (n_cells,)
            The summands.

        Returns
        -------
        Tensor
        """
        zero = cells.new_zeros(self.shape[0])
        return zero.index_add_(0, self.rows, self.weighted(cells))

    def spread(self, sums: Tensor) -> Tensor:
        """Statistics of columns, or of all cells, at the cells.

        Parameters
        ----------
        sums : Tensor of shape (1, n_cols) or (1, 1)
            As returned by `sums`.

        Returns
        -------
        Tensor of shape (n_cells,)
        """
        return sums[0, self.cols] if sums.shape[1] > 1 else sums[0]

    def zero(self) -> LowRank:
        """The zero matrix, of rank 0.

        Returns
        -------
        LowRank
        """
        return LowRank(*(self.values.new_zeros(size, 0) for size in self.shape))

    def plus(self, values: Tensor, X: LowRank) -> SparsePlusLowRank:
        """``X`` with ``values`` added at the cells.

        Parameters
        ----------
        values : Tensor of shape (n_cells,)
            In the order of the cells.
        X : LowRank
            A completion.

        Returns
        -------
        SparsePlusLowRank
        """
        transposed = self.T.matrix(values[self.by_column])
        return SparsePlusLowRank(self.matrix(values), transposed, X)

    def fill(self, X: LowRank) -> SparsePlusLowRank:
        """The observed values, with ``X`` elsewhere.

        Parameters
        ----------
        X : LowRank
            A completion.

        Returns
        -------
        SparsePlusLowRank
        """
        return self.plus(-self.residual(X), X)

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each row begins among the cells, and the columns of the cells.

        Returns
        -------
        starts : int64 ndarray of shape (n_rows + 1,)
        cols : int32 ndarray of shape (n_cells,)
        """
        return self.starts.cpu().numpy(), self.cols.cpu().numpy().astype(np.int32)

    def scaling_of(self, how: str | None, *, centre: bool = True) -> Scaling:
        """The scaling of `Scaling.of`.

        Parameters
        ----------
        how : {"auto", "columns", "global"} or None
            As for `Scaling.of`.
        centre : bool, default=True
            As for `Scaling.of`.

        Returns
        -------
        Scaling
        """
        return Scaling.of(self, how, centre=centre)

    def scaled(self, scaling: Scaling) -> SparseObserved:
        """The same cells with scaled values.

        Parameters
        ----------
        scaling : Scaling
            How to scale.

        Returns
        -------
        SparseObserved
        """
        return scaling.apply(self)

    def split(
        self, share: float, seed: int, draw: Any = None
    ) -> tuple[SparseObserved, SparseObserved | None]:
        """Cells to train on, and a share of the cells, which is held out.

        Parameters
        ----------
        share : float in (0, 1)
            Share of the cells to hold out.
        seed : int
            Determines the cells, which are drawn uniformly.
        draw : object
            Ignored.

        Returns
        -------
        train : SparseObserved
        held_out : SparseObserved or None
            None if there are too few cells to hold any out.
        """
        n_cells = len(self.values)
        order = np.random.RandomState(seed % 2**32).permutation(n_cells)
        hidden = torch.zeros(n_cells, dtype=torch.bool)
        hidden[torch.from_numpy(order[: int(share * n_cells)])] = True
        if not hidden.any():
            return self, None
        hidden = hidden.to(self.device)
        return self.only(~hidden), self.only(hidden)

    def in_single(self) -> SparseObserved:
        """The same cells in single precision, unless they are too large.

        Returns
        -------
        SparseObserved
        """
        large = float(self.values.abs().max()) > SINGLE
        return self if large else self.to(torch.float32)

    def only(self, chosen: Tensor) -> SparseObserved:
        """The same matrix with only the cells where ``chosen`` is True.

        Parameters
        ----------
        chosen : bool Tensor of shape (n_cells,)
            True for cells that stay.

        Returns
        -------
        SparseObserved
        """
        return replace(
            self,
            rows=self.rows[chosen],
            cols=self.cols[chosen],
            values=self.values[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def to(self, *args, **kwargs) -> SparseObserved:
        """Move or cast the values as `torch.Tensor.to` does; positions follow.

        Parameters
        ----------
        *args : device or dtype
            As `torch.Tensor.to` takes them.
        **kwargs : device or dtype
            As `torch.Tensor.to` takes them.

        Returns
        -------
        SparseObserved
        """
        values = self.values.to(*args, **kwargs)
        rows, cols = (
            tuple(side.to(*args, **kwargs) for side in sides) for sides in self.sides
        )
        return SparseObserved(
            self.rows.to(values.device),
            self.cols.to(values.device),
            values,
            self.shape,
            (rows, cols),
            None if self.weights is None else self.weights.to(*args, **kwargs),
        )


def _starts(index: Tensor, n: int) -> Tensor:
    starts = index.new_zeros(n + 1)
    starts[1:] = torch.bincount(index, minlength=n).cumsum(0)
    return starts
