"""Half a step of alternating least squares: factors of all rows, given the columns'."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import LowRank, RowModel

# Conjugate gradients of a half-step: their least and largest number, and the share of
# the residual that may be left.
STEPS = (3, 6)
LEFT = 0.03


class Effort(NamedTuple):
    """How a half-step computes.

    Parameters
    ----------
    steps : int or None
        Conjugate gradients to take; 0 means that systems are solved exactly, None that
        only the gradient is computed.
    dtype : torch.dtype
        Precision of the gradient.
    """

    steps: int | None
    dtype: torch.dtype


class HalfStep(NamedTuple):
    """What a half-step finds; all but ``factors`` are sums over the rows.

    Parameters
    ----------
    factors : Tensor of shape (m, rank)
        New factors and biases.
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


def half_step(
    data: SparseObserved,
    own: Tensor,
    model: RowModel,
    effort: Effort,
    judge: bool,
    known: Tensor | float = 0.0,
    off: Tensor | None = None,
) -> HalfStep:
    """Factors of the rows, given those of the columns, from the present ones.

    Parameters
    ----------
    data : SparseObserved
        The observed cells.
    own : Tensor of shape (m, rank)
        The present factors and biases of the rows.
    model : RowModel
        Made of the factors of the columns.
    effort : Effort
        Number of conjugate gradients, and precision of the gradient.
    judge : bool
        Whether ``before`` and ``misfit`` are needed, and the penalty of ``own``.
        Otherwise the penalty is that of the new factors.
    known : Tensor of shape (m, rank) or float, default=0.0
        What is added to the mean of each row.
    off : Tensor of shape (n_cells,), optional
        Residuals at the cells, in the precision of the gradient, if they are known.

    Returns
    -------
    HalfStep
    """
    before = after = misfit = own.new_full((), torch.inf)
    W, steps = own, effort.steps
    if judge or steps != 0:
        slope, misfit = data.slope(model, own, known, effort.dtype, off)
        before = slope.square().sum()
        if steps:
            W, after = data.improved(model, own, slope, steps)
    if steps is None:
        after = before
    elif not torch.isfinite(after):
        W = model.solve(
            data.starts, data.cols, data.values, known=known, weights=data.weights
        )
        after = after if steps else torch.zeros_like(after)
    count = data.counts if model.per_cell else torch.ones_like(data.counts)
    off = (own if judge else W) - known
    penalty = (off.square().sum(1) * count).sum()
    return HalfStep(W, before, after, misfit, penalty)


def next_steps(steps: int, half: HalfStep) -> int:
    """How many conjugate gradients the next half-step of a side takes.

    Parameters
    ----------
    steps : int
        Number of the last half-step.
    half : HalfStep
        The last half-step.

    Returns
    -------
    int
        0 means that systems are solved exactly.
    """
    if steps and torch.isfinite(half.after):
        enough = bool(half.after <= LEFT**2 * half.before)
        if enough or steps < STEPS[1]:
            return steps + (not enough)
    return 0


def with_bias(factors: Tensor, value: float) -> Tensor:
    """Append a column of one value.

    Parameters
    ----------
    factors : Tensor of shape (m, rank)
        The factors.
    value : float
        The bias.

    Returns
    -------
    Tensor of shape (m, rank + 1)
    """
    return torch.cat([factors, factors.new_full((len(factors), 1), value)], 1)


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
        torch.cat([with_bias(cols[:, :-1], 1.0), cols[:, -1:]], 1),
    )
