"""Conjugate sweeps of alternating least squares, with an exact line search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skmc.cells import SparseObserved
from skmc.linalg import LowRank

FARTHEST = 100.0  # step


@dataclass(frozen=True)
class Sweep:
    """What conjugate directions need of the last sweep, rows above columns.

    Parameters
    ----------
    change : Tensor of shape (m + n, rank + 1)
        How the sweep changed factors and biases.
    direction : Tensor of shape (m + n, rank + 1)
        In which direction the iterate went instead.
    """

    change: Tensor
    direction: Tensor


def conjugate(change: Tensor, last: Sweep | None, counts: Tensor) -> Tensor:
    """The change of a sweep, made conjugate to the last direction.

    The sweep is the preconditioner: ``change + beta direction``, with ``beta`` of Polak
    and Ribiere for the changes instead of gradients, and at least zero. Rows count as
    often as they have cells, as the systems do.

    Parameters
    ----------
    change : Tensor of shape (m + n, rank + 1)
        How a sweep would change factors and biases.
    last : Sweep or None
        The last sweep.
    counts : Tensor of shape (m + n, 1)
        Weights of the rows of these.

    Returns
    -------
    Tensor of shape (m + n, rank + 1)
    """
    if last is None:
        return change
    size = (counts * last.change).mul_(last.change).sum()
    beta = (counts * change).mul_(change - last.change).sum() / size
    return change + beta.nan_to_num(0.0, 0.0, 0.0).clamp_min(0.0) * last.direction


def misfit_along(
    data: SparseObserved, rows: Tensor, cols: Tensor, dtype: torch.dtype
) -> tuple[Tensor, list[Tensor]]:
    """The squared distance from the cells, a polynomial of the step.

    Parameters
    ----------
    data : SparseObserved
        The observed cells.
    rows : Tensor of shape (m, 2 (rank + 1))
        Factors and bias of each row, and the direction in which they go.
    cols : Tensor of shape (n, 2 (rank + 1))
        The same for the columns.
    dtype : torch.dtype
        Precision at the cells.

    Returns
    -------
    coefficients : float64 Tensor of shape (5,)
        From the constant to that of ``t**4``.
    residuals : list of three Tensor of shape (n_cells,)
        Coefficients of the residual of each cell, to that of ``t**2``.
    """
    (U, P), (V, Q) = (side.to(dtype).chunk(2, 1) for side in (rows, cols))
    one, other = torch.ones_like(U[:, :1]), torch.ones_like(V[:, :1])
    left = torch.cat([U, one], 1), torch.cat([V[:, :-1], other, V[:, -1:]], 1)
    first = data.at(LowRank(*left)) - data.values.to(dtype)
    turned = [P, one, U[:, :-1]], [V[:, :-1], other, Q[:, -1:], Q[:, :-1]]
    second = data.at(LowRank(*(torch.cat(side, 1) for side in turned)))
    third = data.at(LowRank(P[:, :-1], Q[:, :-1]))

    coefficients = torch.stack(
        [
            data.inner(first, first),
            2 * data.inner(first, second),
            data.inner(second, second) + 2 * data.inner(first, third),
            2 * data.inner(second, third),
            data.inner(third, third),
        ]
    )
    return coefficients, [first, second, third]


def penalty_along(W: Tensor, D: Tensor, counts: Tensor) -> Tensor:
    """Coefficients of ``sum_i counts_i |w_i + t d_i|^2``.

    Parameters
    ----------
    W : Tensor of shape (m, rank + 1)
        Factors and biases.
    D : Tensor of shape (m, rank + 1)
        The direction in which they go.
    counts : Tensor of shape (m, 1)
        Weights of the rows.

    Returns
    -------
    float64 Tensor of shape (5,)
    """
    pairs = ((W, W), (2 * W, D), (D, D))
    found = [(counts * a).mul_(b).sum(dtype=torch.float64) for a, b in pairs]
    zero = torch.zeros_like(found[0])
    return torch.stack([*found, zero, zero])


def squares_along(rows: Any, cols: Any) -> Tensor:
    """Coefficients of ``|(U + t P) (V + t Q)'|_F^2``.

    Parameters
    ----------
    rows : pair of Tensor of shape (m, rank)
        ``U`` and ``P``.
    cols : pair of Tensor of shape (n, rank)
        ``V`` and ``Q``.

    Returns
    -------
    float64 Tensor of shape (5,)
    """
    grams = [
        (W.mT @ W, W.mT @ D + D.mT @ W, D.mT @ D)
        for W, D in ((W.double(), D.double()) for W, D in (rows, cols))
    ]
    found = grams[0][0].new_zeros(5)
    for i, A in enumerate(grams[0]):
        for j, B in enumerate(grams[1]):
            found[i + j] += (A * B).sum()
    return found


def best_step(coefficients: Tensor) -> float | None:
    """Where a polynomial of degree four is least, among positive numbers.

    Parameters
    ----------
    coefficients : Tensor of shape (5,)
        From the constant to that of ``t**4``.

    Returns
    -------
    float or None
        None if it is least at zero or very far, or not finite.
    """
    numbers = coefficients.tolist()
    if not all(map(math.isfinite, numbers)):
        return None
    curve = np.polynomial.Polynomial(numbers)
    roots = curve.deriv().roots()
    steps = roots.real[abs(roots.imag) <= 1e-6 * abs(roots)]
    steps = steps[(steps > 0) & (steps < FARTHEST)]
    if not len(steps) or curve(steps).min() >= numbers[0]:
        return None
    return float(steps[curve(steps).argmin()])
