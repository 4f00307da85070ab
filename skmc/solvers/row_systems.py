"""The systems of rows given the factors of the columns, and their solution.

Most are never formed: products with them read the cells in panels of columns, whose
factors fit in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import SparseObserved, SparseValues, prior_mean
from skmc.linalg import LowRank, RowModel, conjugate_gradients, padded

CACHED = 2**20  # bytes of the factors of a panel
CELLS = 4  # smallest average number of cells of a row in a panel
# Smallest number of multiplications for normal equations that `_refined` avoids, and
# the share of the slope that each of its rounds leaves.
LARGE = 2**26
ROUND = 1e-4

Panel = tuple[SparseValues, slice]


@dataclass(frozen=True, eq=False)
class Systems:
    """The systems of all rows, and the parameters of a half-step.

    Parameters
    ----------
    model : RowModel
        Row model with the factors of the columns, without links.
    steps : int or None
        Number of conjugate gradient steps; 0 means an exact solution, None only the
        gradient.
    dtype : torch.dtype
        Precision of the gradient at the cells.
    judge : bool
        Whether to compute ``before`` and ``misfit`` of `HalfStep`, and the penalty of
        the current factors. Otherwise the penalty is that of the new factors.
    """

    model: RowModel
    steps: int | None
    dtype: torch.dtype
    judge: bool
    _columns: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False)

    def to(self, device: torch.device | str) -> Systems:
        """Move the model to a device."""
        return replace(self, model=self.model.to(device))

    def columns(self, dtype: torch.dtype) -> Tensor:  # (n, k)
        """Factors and offset of each column, padded with zeros to fill registers.

        If all offsets are zero, they are left out. The result is shared by all chunks.
        """
        if dtype not in self._columns:
            F, offset = self.model.F, self.model.offset[:, None]
            factors = torch.cat([F, offset], 1) if offset.any() else F
            self._columns[dtype] = padded(factors).to(dtype)
        return self._columns[dtype]

    @cached_property
    def whitened(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Factors of the columns in coordinates in which the prior precision is 1.

        The sum over zeros is diagonal there. Divided by the roots of the diagonal of
        its own system, each row has a system that is closer to the identity, the more
        so the more of its cells are zeros.
        """
        root, failed = torch.linalg.cholesky_ex(self.model.precision.double())
        root = torch.where(failed > 0, torch.nan, root)  # systems are solved exactly
        eye = torch.eye(len(root), dtype=root.dtype, device=root.device)
        basis = torch.linalg.solve_triangular(root.mT, eye, upper=True)
        inverse, zeros = root.mT, root.new_zeros(1)
        if self.model.zeros:
            gram = basis.mT @ self.model.gram.double() @ basis
            zeros, turn = torch.linalg.eigh(gram.nan_to_num(0.0, 0.0, 0.0))
            basis, inverse, zeros = basis @ turn, turn.mT @ inverse, zeros.clamp_min(0)
        basis, inverse, zeros = (x.to(self.model.F) for x in (basis, inverse, zeros))
        # As wide as `columns`, for the same panels.
        missing = self.columns(torch.float32).shape[1] - len(root)
        return pad(self.model.F @ basis, (0, missing)).float(), basis, inverse, zeros


def gradient(
    data: SparseValues,
    W: Tensor,  # (m, rank)
    systems: Systems,
    known: Tensor | float = 0.0,  # (m, rank)
) -> tuple[Tensor, Tensor]:
    """Left minus right sides of the systems of some rows, and the misfit.

    The first is half the gradient of the objective of `RowModel.solve`.
    """
    model, columns = systems.model, systems.columns(systems.dtype)
    extra = columns.shape[1] - W.shape[1]
    left = pad(W.to(columns), (0, extra))
    left[:, W.shape[1] : W.shape[1] + 1] = 1.0  # for the offset, if there is one
    pull = torch.zeros_like(W, dtype=left.dtype)
    misfit = W.new_zeros((), dtype=torch.float64)
    for panel, cols in panels_of(data, columns):
        off = panel.at(LowRank(left, columns[cols]))
        off -= panel.values.to(off.dtype)
        at = panel.matrix(panel.weighted(off))
        pull = torch.addmm(pull, at, columns[cols, : W.shape[1]])
        misfit += panel.inner(off, off)
    slope = (W - model.mean - known) @ model.precision
    slope *= model.prior_weights(data.counts)[:, None]
    if model.zeros:
        slope += W @ model.gram
    return slope.add_(pull), misfit.to(W.dtype)


def improved(
    data: SparseValues,
    W: Tensor,  # (m, rank)
    slope: Tensor,  # (m, rank)
    systems: Systems,
    left: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Take a few steps of conjugate gradients on the systems of some rows at once.

    The change is computed in single precision; `slope` has the precision of the result.
    """
    columns, basis, inverse, zeros = systems.whitened
    size = (systems.model.prior_weights(data.counts)[:, None] + zeros).rsqrt()
    right = -slope @ basis * size
    # Single precision has a small range of exponents, so each row has its own unit. It
    # is a power of two, so that rounding does not depend on it.
    tiny = torch.finfo(slope.dtype).tiny
    largest = right.abs().amax(1, keepdim=True).clamp_min(tiny)
    unit = largest.log2().floor().exp2()
    right = (right / unit).to(columns).mT
    scale = size.to(columns)

    def system(Z: Tensor) -> Tensor:
        image = Z.mT / scale
        left = pad(Z.mT * scale, (0, columns.shape[1] - len(Z)))
        for panel, cols in panels_of(data, columns):
            at = panel.weighted(panel.at(LowRank(left, columns[cols])))
            image = torch.addmm(image, panel.matrix(at), columns[cols, : len(Z)])
        return (image * scale).mT

    accuracy = None if left is None else left**2 * right.square().sum(0)
    n_steps = systems.steps or 0
    change, rest = conjugate_gradients(system, right, None, n_steps, accuracy)
    after = ((unit * rest.mT / size) @ inverse).square().sum(1)
    if accuracy is not None:
        after = torch.where(rest.square().sum(0) <= accuracy, after, torch.inf)
    return W + (unit * size * change.mT) @ basis.mT, after


def solved(
    data: SparseObserved,
    model: RowModel,
    noise: Tensor | None = None,  # (n_rows, rank)
) -> Tensor:  # (n_rows, rank)
    """Solve a row model for all rows, given their linear priors."""
    priors = zip(data.sides[0], model.sides, strict=False)
    means = [side.mean(B) for side, B in priors]
    for_rows = [sum(means[1:], means[0])] if means else []
    if noise is not None:
        for_rows = [*(for_rows or [torch.zeros_like(noise)]), noise]
    return torch.cat(list(data.map(solved_rows, for_rows, model)))


def with_uncertain_prior(
    data: SparseObserved,
    model: RowModel,
    noise: float,
) -> RowModel:
    """A step of EM: the prior becomes the distribution of the rows under the last one.

    The covariance of each row given its cells is a part of that of the rows.
    """
    known = data.counts > 0
    W = solved(data, model) - prior_mean(data.sides[0], model.sides)
    spread = torch.stack(list(data.map(_spread, (), model))).sum(0)
    return model.with_prior_of(W[known], noise, spread / known.sum())


def _spread(data: SparseValues, own: Sequence[Tensor], model: RowModel) -> Tensor:
    return model.spread(data.starts, data.cols, data.weights)


def solved_rows(
    data: SparseValues,
    own: Sequence[Tensor],  # (m, rank)
    model: RowModel,
) -> Tensor:  # (m, rank)
    """Solve a row model for some rows."""
    mean, noise = own[0] if own else 0.0, own[1] if len(own) > 1 else None
    if noise is None and (refined := _refined(data, model, mean)) is not None:
        return refined
    return model.solve(
        data.starts, data.cols, data.values, noise, mean, weights=data.weights
    )


def _refined(
    data: SparseValues, model: RowModel, known: Tensor | float
) -> Tensor | None:
    """Solve large systems by conjugate gradients, up to rounding errors.

    Each round takes steps in single precision and then computes the slope anew. The
    result is None where Cholesky factorizations are likely to be faster.
    """
    rank, dtype = model.F.shape[1], data.values.dtype
    if not model.zeros or len(data.values) * rank**2 < LARGE:
        return None
    W = data.values.new_zeros(data.shape[0], rank)
    systems = Systems(model, rank // 3, dtype, judge=True)
    for _ in range(2 if dtype == torch.float32 else 4):
        slope, _ = gradient(data, W, systems, known)
        W, after = improved(data, W, slope, systems, ROUND)
        if not after.isfinite().all():
            return None
    return W


def panels_of(
    data: SparseValues,
    columns: Tensor,  # (n, k)
) -> list[Panel]:
    """Divide a matrix into panels of columns.

    The cells of a row are spread over all columns. Without panels, the factors of many
    columns would be read from memory once for each cell. Panels are kept until others
    of the same data are requested.
    """
    n_panels = math.ceil(columns.numel() * 4 / CACHED)
    n_panels = min(n_panels, len(data.values) // (CELLS * max(1, data.shape[0])))
    if n_panels <= 1 or columns.device.type != "cpu":
        return [(data, slice(None))]
    width = math.ceil(len(columns) / n_panels)
    return data.panels(width)
