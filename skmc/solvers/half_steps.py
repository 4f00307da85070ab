"""A half-step of alternating least squares: factors of rows, given the columns'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import SparseObserved, SparseValues
from skmc.linalg import LowRank, RowModel
from skmc.solvers.row_systems import Systems, gradient, improved

# Smallest and largest number of conjugate gradient steps of a half-step, and the share
# of the residual that may be left; without and with the zeros of implicit feedback,
# which are in the coordinates of `Systems.whitened`.
STEPS = {False: (3, 6, 0.03), True: (2, 10, 0.2)}
# Smallest number of multiplications for normal equations that `_refined` avoids, and
# the share of the slope that each of its rounds leaves.
LARGE = 2**26
ROUND = 1e-4


class HalfStep(NamedTuple):
    """Result of a half-step; all fields but ``factors`` are sums over the rows.

    Parameters
    ----------
    factors : Tensor of shape (m, rank)
        New factors and biases; empty if only the gradient is computed.
    before, after : Tensor of shape ()
        Squared norms of the gradient before and after the half-step.
    misfit : Tensor of shape ()
        Squared distance from the observed cells before the half-step.
    penalty : Tensor of shape ()
        Penalty without its weight, before or after the half-step.
    """

    factors: Tensor
    before: Tensor
    after: Tensor
    misfit: Tensor
    penalty: Tensor


def half_step(data: SparseValues, own: Sequence[Tensor], systems: Systems) -> HalfStep:
    """Compute factors of some rows from the current ones, given those of the columns.

    The result depends only on the arguments. So the function can be called for one
    chunk of rows after another, in memory or in blocks, or as tasks of a cluster.

    Parameters
    ----------
    data : SparseValues
        The observed cells of the rows.
    own : one or two Tensor of shape (m, rank)
        Current factors and biases of the rows. Then, optionally, offsets of the mean of
        each row.
    systems : Systems
        The systems of the rows.

    Returns
    -------
    HalfStep
    """
    W, model, steps = own[0], systems.model, systems.steps
    known = own[1] if len(own) > 1 else 0.0
    new, before = W, W.new_full((), torch.inf)
    after = misfit = before
    if systems.judge or steps != 0:
        slope, misfit = gradient(data, W, systems, known)
        before = slope.square().sum()
        if steps:
            new, after = improved(data, W, slope, systems)
            after = after.sum()
    if steps is None:
        after, new = before, W.new_empty(0)
    elif not torch.isfinite(after):
        new = _solved(data, own[1:], model)
        after = after if steps else torch.zeros_like(after)
    count = (data.counts + data.shape[1] * model.zeros) ** model.per_cell
    off = (W if systems.judge or steps is None else new) - known
    return HalfStep(new, before, after, misfit, (off.square().sum(1) * count).sum())


def solved(
    data: SparseObserved, model: RowModel, noise: Tensor | None = None
) -> Tensor:
    """Solve a row model for all rows, given their linear priors.

    Parameters
    ----------
    data : SparseObserved or BlockObserved
        The observed cells.
    model : RowModel
        Model of the rows. Rows are treated as average for linear priors of the model
        that they do not have.
    noise : Tensor of shape (n_rows, rank), optional
        Random numbers of posterior draws, as for `RowModel.solve`.

    Returns
    -------
    Tensor of shape (n_rows, rank)
    """
    priors = zip(data.sides[0], model.sides, strict=False)
    known = [side.mean(B) for side, B in priors]
    own = [sum(known[1:], known[0])] if known else []
    if noise is not None:
        own = [*(own or [torch.zeros_like(noise)]), noise]
    return torch.cat(list(data.map(_solved, own, model)))


def _solved(data: SparseValues, own: Sequence[Tensor], model: RowModel) -> Tensor:
    known, noise = own[0] if own else 0.0, own[1] if len(own) > 1 else None
    if noise is None and (found := _refined(data, model, known)) is not None:
        return found
    return model.solve(
        data.starts, data.cols, data.values, noise, known, weights=data.weights
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


def next_steps(steps: int, half: HalfStep, implicit: bool) -> int:
    """Number of conjugate gradient steps of the next half-step of a side.

    Parameters
    ----------
    steps : int
        Number of steps of the last half-step.
    half : HalfStep
        The last half-step.
    implicit : bool
        Whether all unobserved cells are zeros.

    Returns
    -------
    int
        0 means that systems are solved exactly.
    """
    _, most, left = STEPS[implicit]
    if steps and torch.isfinite(half.after):
        enough = bool(half.after <= left**2 * half.before)
        if enough or steps < most:
            return steps + (not enough)
    return 0


def product(rows: Tensor, cols: Tensor) -> LowRank:
    """``U V' + b 1' + 1 c'`` of factors whose last column is a bias.

    Parameters
    ----------
    rows : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    cols : Tensor of shape (n, rank + 1)
        Factors and bias of each column.

    Returns
    -------
    LowRank
    """
    return LowRank(
        torch.cat([rows, torch.ones_like(rows[:, :1])], 1),
        torch.cat([pad(cols[:, :-1], (0, 1), value=1.0), cols[:, -1:]], 1),
    )
