"""Conjugate sweeps of alternating least squares, with an exact line search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import SparseValues
from skmc.linalg import LowRank
from skmc.solvers.row_systems import panels_of

FARTHEST = 100.0  # longest step
ROWS = 2**17  # of temporary arrays


Sides = tuple[Tensor, Tensor]  # one value for the rows and one for the columns


@dataclass(frozen=True)
class Sweep:
    """The last sweep of rows and columns, for conjugate directions.

    Parameters
    ----------
    change : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
        Change of factors and biases in the plain sweep.
    direction : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
        Direction of the step that was taken instead.
    """

    change: Sides
    direction: Sides


def conjugate(change: Sides, last: Sweep | None, counts: Sides) -> Sides:
    """Make the change of a sweep conjugate to the last direction.

    The sweep is the preconditioner: the result is ``change + beta direction``, with the
    non-negative ``beta`` of Polak and Ribiere for changes instead of gradients. Rows
    are weighted by their numbers of cells, as in the systems.

    Parameters
    ----------
    change : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
        Change of factors and biases in a plain sweep.
    last : Sweep or None
        Previous sweep.
    counts : pair of Tensor of shape (m, 1), (n, 1)
        Weights of the rows of ``change``.

    Returns
    -------
    pair of Tensor of shape (m, rank + 1), (n, rank + 1)
    """
    if last is None:
        return change
    size = moved = change[0].new_zeros(())
    for side in zip(change, last.change, counts, strict=True):
        for new, old, count in _in_blocks(*side):
            size = size + (count * old).mul_(old).sum()
            moved = moved + (count * new).mul_(new - old).sum()
    beta = (moved / size).nan_to_num(0.0, 0.0, 0.0).clamp_min(0.0)
    rows, cols = (
        (beta * old).add_(new) for new, old in zip(change, last.direction, strict=True)
    )
    return rows, cols


def misfit_along(
    data: SparseValues, own: Sequence[Tensor], cols: Tensor, change: Tensor
) -> Tensor:
    """Squared distance of some rows from their cells, as a polynomial of the step.

    Parameters
    ----------
    data : SparseValues
        The observed cells of the rows.
    own : pair of Tensor of shape (m, rank)
        Factors and bias of each row, and their direction.
    cols : Tensor of shape (n, k)
        Factors and offset of each column, as `Systems.columns`.
    change : Tensor of shape (n, k)
        Direction of the columns.

    Returns
    -------
    float64 Tensor of shape (5,)
        Coefficients, from the constant term to ``t**4``.
    """
    W, D = (pad(x.to(cols), (0, cols.shape[1] - x.shape[1])) for x in own)
    curve = W.new_zeros(5, dtype=torch.float64)
    W[:, own[0].shape[1]] = 1.0
    for panel, part in panels_of(data, cols):
        V, Q = cols[part], change[part]
        first = panel.at(LowRank(W, V)).sub_(panel.values.to(W.dtype))
        second = panel.at(LowRank(D, V)).add_(panel.at(LowRank(W, Q)))
        third = panel.at(LowRank(D, Q))
        curve = curve + torch.stack(
            [
                panel.inner(first, first),
                2 * panel.inner(first, second),
                panel.inner(second, second) + 2 * panel.inner(first, third),
                2 * panel.inner(second, third),
                panel.inner(third, third),
            ]
        )
    return curve


def penalty_along(W: Tensor, D: Tensor, counts: Tensor) -> Tensor:
    """Coefficients of ``sum_i counts_i |w_i + t d_i|^2``.

    Parameters
    ----------
    W : Tensor of shape (m, rank + 1)
        Factors and biases.
    D : Tensor of shape (m, rank + 1)
        Direction of ``W``.
    counts : Tensor of shape (m, 1)
        Weights of the rows.

    Returns
    -------
    float64 Tensor of shape (5,)
    """
    curve = W.new_zeros(5, dtype=torch.float64)
    for w, d, count in _in_blocks(W, D, counts):
        # A sum with another output type would convert all numbers first.
        for k, (a, b) in enumerate(((w, w), (2 * w, d), (d, d))):
            curve[k] += (count * a).mul_(b).sum(1).sum(dtype=torch.float64)
    return curve


def _in_blocks(*parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Blocks of rows, so that temporary arrays are small."""
    return zip(*(part.split(ROWS) for part in parts), strict=True)


def squares_along(rows: Sides, cols: Sides, dtype: torch.dtype) -> Tensor:
    """Coefficients of ``|(U + t P) (V + t Q)'|_F^2``.

    Parameters
    ----------
    rows : pair of Tensor of shape (m, rank)
        Matrices ``U`` and ``P``.
    cols : pair of Tensor of shape (n, rank)
        Matrices ``V`` and ``Q``.
    dtype : torch.dtype
        Precision of ``U' U`` and the like.

    Returns
    -------
    float64 Tensor of shape (5,)
    """
    grams = [
        (W.mT @ W, W.mT @ D + D.mT @ W, D.mT @ D)
        for W, D in ((W.to(dtype), D.to(dtype)) for W, D in (rows, cols))
    ]
    found = grams[0][0].new_zeros(5, dtype=torch.float64)
    for i, A in enumerate(grams[0]):
        for j, B in enumerate(grams[1]):
            found[i + j] += (A * B).sum(dtype=torch.float64)
    return found


def best_step(coefficients: Tensor) -> float | None:
    """Positive minimizer of a polynomial of degree four.

    Parameters
    ----------
    coefficients : Tensor of shape (5,)
        Coefficients, from the constant term to ``t**4``.

    Returns
    -------
    float or None
        None if the minimizer is zero, very large or not finite.
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
