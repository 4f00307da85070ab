"""Conditional draws of the Gibbs sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Side, SparseValues
from skmc.linalg import OVER, Randomness, conjugate_gradients

CG_STEPS = 20  # enough from a warm start
FREEDOM = [2.0**k for k in range(1, 9)]  # degrees of freedom of the noise
TRIES = 8  # proposals of a Gamma variable, each accepted with probability > .95


def gamma(rng: Randomness, shape: Tensor, rate: Tensor) -> Tensor:
    """Draw Gamma variables by the method of Marsaglia and Tsang.

    Parameters
    ----------
    rng : Randomness
        Source of random numbers.
    shape : Tensor
        Shape parameter, at least 1.
    rate : Tensor of the same shape
        Rate parameter, the inverse of the scale.

    Returns
    -------
    Tensor of the same shape
        Double precision, on the device of ``rate``.
    """
    rate = rate.double()
    d = (shape.to(rate) - 1 / 3).reshape(-1, 1)
    z = rng.normal(len(d), TRIES, std=1.0).to(d)
    u = 0.5 + rng.uniform(len(d), TRIES, 0.5).to(d)
    v = (1 + z / (3 * d.sqrt())).clamp_min(0) ** 3
    fits = u.log() < z.square() / 2 + d - d * v + d * v.log()
    first = (fits * torch.arange(TRIES, 0, -1, device=d.device)).argmax(1, keepdim=True)
    return (d * v.gather(1, first)).view(rate.shape) / rate


def draw_relative(
    rng: Randomness, counts: Tensor, sums: Tensor
) -> tuple[Tensor, Tensor]:
    """Draw the relative precision of the noise in each row, and its degrees of freedom.

    The degrees of freedom are drawn first, from their marginal distribution.

    Parameters
    ----------
    rng : Randomness
        Source of random numbers.
    counts : Tensor of shape (m,)
        Number of cells of each row.
    sums : Tensor of shape (m,)
        Sum of the squared residuals of each row, times the precision that each cell
        would have if the rows did not differ.

    Returns
    -------
    relative : Tensor of shape (m,)
    freedom : Tensor of shape ()
    """
    half = counts.new_tensor(FREEDOM).double() / 2
    shape, rate = half[:, None] + counts / 2, half[:, None] + sums / 2
    chance = (shape.lgamma() - shape * rate.log()).sum(1)
    chance += len(counts) * (half * half.log() - half.lgamma())
    below = chance.softmax(0).cumsum(0) < 0.5 + rng.uniform(1, 1, 0.5)[0].to(half)
    drawn = half.take(below.sum().clamp_max(len(half) - 1))
    relative = gamma(rng, drawn + counts / 2, drawn + sums / 2)
    return relative.to(counts), 2 * drawn.to(counts)


def normal_wishart(
    rng: Randomness, W: Tensor, more: Tensor | float = 0.0, n_more: int = 0
) -> tuple[Tensor, Tensor]:
    """Draw mean and precision of Gaussian rows ``W`` from their posterior.

    Parameters
    ----------
    rng : Randomness
        Source of random numbers.
    W : Tensor of shape (m, rank + 1)
        Factors and bias of each row.
    more : Tensor of shape (rank + 1, rank + 1) or float, default=0.0
        Sum of ``w w'`` over other rows with this precision and mean zero.
    n_more : int, default=0
        Number of those rows.

    Returns
    -------
    tuple of Tensor
    """
    n, k = W.shape
    X = W.double()
    strength = 2.0  # weight of the prior mean, in rows
    mean = X.mean(0)
    centered = X - mean
    scatter = centered.mT @ centered + torch.eye(k).to(X) + more
    scatter += strength * n / (strength + n) * torch.outer(mean, mean)
    root = torch.linalg.cholesky(torch.linalg.inv(scatter))
    # Bartlett decomposition: a Wishart matrix is A A' in the frame of its scale.
    shape = (n + n_more + torch.arange(k, 0, -1).to(X)) / 2
    squares = gamma(rng, shape, torch.full_like(shape, 0.5))
    A = rng.normal(k, k, std=1.0).to(X).tril(-1) + squares.sqrt().diag()
    root = root @ A
    precision = root @ root.mT
    z = rng.normal(k, 1, std=1.0).to(X)
    spread = torch.linalg.cholesky((strength + n) * precision)
    drawn = torch.linalg.solve_triangular(spread.mT, z, upper=True)[:, 0]
    return (n * mean / (strength + n) + drawn).to(W), precision.to(W)


@dataclass(frozen=True, eq=False)
class Indicator(Side):
    """A linear prior whose ``S`` has ``1 / sqrt(k)`` at the ``k`` cells of a row.

    Parameters
    ----------
    matrix : SparseObserved or BlockObserved
        The observed cells.
    root : None
        ``P = I``.
    transposed : SparseObserved or BlockObserved
        The transpose of ``matrix``.
    """

    transposed: Any = None

    def mean(self, B: Tensor, rows: Tensor | None = None) -> Tensor:
        return self._scale * _sums(self.matrix, B)

    def pull(self, W: Tensor) -> Tensor:
        return _sums(self.transposed, self._scale * W)

    @cached_property
    def _scale(self) -> Tensor:
        data: Any = self.matrix
        one = torch.ones(data.shape[1], 1, dtype=data.dtype, device=data.device)
        return _sums(data, one).clamp_min(1).rsqrt()


def _sums(data: Any, Z: Tensor) -> Tensor:
    """Sums of the rows of ``Z`` that belong to the cells of each row."""
    return torch.cat(list(data.map(_sums_of_rows, (), Z)))


def _sums_of_rows(data: SparseValues, own: Sequence[Tensor], Z: Tensor) -> Tensor:
    return data.matrix(Z.new_ones(len(data.values))) @ Z


def draw_link(
    rng: Randomness,
    side: Side,
    W: Tensor,
    precision: Tensor,
    B: Tensor,
    p: Tensor | float,
) -> tuple[Tensor, Tensor]:
    """Draw ``B`` given ``W ~ N(S B, precision^-1)``, and the precision of its prior.

    The solution of ``(S' S + p P) B = S' (W + E_1) + sqrt(p) P^(1/2) E_2`` with ``E``
    from ``N(0, precision^-1)`` is a draw; a few steps of conjugate gradients
    approximate it. The draw is over-relaxed.

    Parameters
    ----------
    rng : Randomness
        Source of random numbers.
    side : Side
        Linear prior with ``S`` and ``P``.
    W : Tensor of shape (m, rank + 1)
        Factors of the rows minus the means that do not depend on ``B``.
    precision : Tensor of shape (rank + 1, rank + 1)
        Precision matrix of these rows.
    B : Tensor of shape (p, rank + 1)
        Previous draw, from which conjugate gradients start.
    p : Tensor of shape () or float
        Precision of ``B``, as a multiple of ``P`` times ``precision``.

    Returns
    -------
    B : Tensor of shape (p, rank + 1)
    p : Tensor of shape ()
    """
    root = torch.linalg.cholesky(precision)

    def noise(rows: int) -> Tensor:
        z = rng.normal(rows, W.shape[1], std=1.0).to(W)
        return torch.linalg.solve_triangular(root.mT, z.mT, upper=True).mT

    drawn = side.pull(noise(len(W))) + p**0.5 * side.noise(noise)
    right = (1 + OVER) * side.pull(W) + (1 - OVER**2) ** 0.5 * drawn
    found, _ = conjugate_gradients(
        lambda Z: side.pull(side.mean(Z)) + p * side.penalty(Z), right, B, CG_STEPS
    )
    B = found - OVER * B
    size = ((B @ precision) * side.penalty(B)).sum().double()
    return B, gamma(rng, size.new_tensor(B.numel() + 1) / 2, (size + 1) / 2)
