"""The objective of alternating least squares and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from skmc.cells import Side, SparseObserved, prior_mean
from skmc.linalg import RowModel, conjugate_gradients, padded
from skmc.solvers.als_line import Sides, misfit_along, penalty_along, squares_along

CG_STEPS = 20  # enough from a warm start


@dataclass(frozen=True)
class Objective:
    """The objective of `ALS`; ``data`` are the observed cells in memory or in blocks.

    Parameters
    ----------
    weight : float > 0
        Weight ``lambda`` of the squared factors and biases.
    biases : pair of bool
        Whether rows, and columns, have biases.
    per_cell : float
        Exponent of the sum of the weights of the cells of a row or column, which
        multiplies its penalty.
    link_weight : float > 0
        Weight of ``tr(B' P B) / 2`` for each linear prior.
    implicit : bool
        Whether all unobserved cells are zeros of weight 1.
    """

    weight: float
    biases: tuple[bool, bool]
    per_cell: float
    link_weight: float
    implicit: bool

    def counts(self, data: SparseObserved, axis: int) -> Tensor:
        """Weight of the penalty of each row (``axis=0``) or column.

        Parameters
        ----------
        data : SparseObserved or BlockObserved
            The observed cells.
        axis : int
            0 for the rows, 1 for the columns.

        Returns
        -------
        Tensor of shape (m, 1)
        """
        counts = (data.T if axis else data).counts[:, None]
        return (counts + data.shape[1 - axis] * self.implicit) ** self.per_cell

    def model(self, others: Tensor, axis: int) -> RowModel:
        """The model that gives factors and biases of one side from those of the other.

        Parameters
        ----------
        others : Tensor of shape (n, rank + 1)
            Factors and biases of the other side.
        axis : int
            0 for a model of the rows, 1 for one of the columns.

        Returns
        -------
        RowModel
        """
        factors, offset = others[:, :-1], others[:, -1].clone()
        F = pad(factors, (0, 1), value=1.0) if self.biases[axis] else factors
        eye = torch.eye(F.shape[1], dtype=F.dtype, device=F.device)
        zero = F.new_zeros(F.shape[1])
        precision = self.weight * eye
        return RowModel(F, offset, precision, zero, self.per_cell, self.implicit)

    def link(
        self, data: SparseObserved, axis: int, W: Tensor, links: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        """Fit the map ``B`` of each linear prior of one side to its factors.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.
        axis : int
            0 for the rows, 1 for the columns.
        W : Tensor of shape (m, rank + 1)
            Factors and biases of the side.
        links : sequence of Tensor of shape (p, rank + 1)
            Initial guesses.

        Returns
        -------
        sequence of Tensor of shape (p, rank + 1)
        """
        if not links:
            return links
        found, sides = list(links), data.sides[axis]
        weight = self.weight * self.counts(data, axis)
        for k, side in enumerate(sides):
            others = prior_mean(sides[:k] + sides[k + 1 :], found[:k] + found[k + 1 :])

            def system(Z: Tensor, side: Side = side) -> Tensor:
                own = side.pull(weight * side.mean(Z))
                return own + self.link_weight * side.penalty(Z)

            right = side.pull(weight * (W - others))
            found[k], _ = conjugate_gradients(system, right, found[k], CG_STEPS)
        return found

    def of_links(
        self, data: SparseObserved, axis: int, W: Tensor, links: Sequence[Tensor]
    ) -> Tensor | float:
        """Sum of ``|dF/dB| |B|`` over the linear priors of one side.

        Parameters
        ----------
        data : SparseObserved
            The observed cells.
        axis : int
            0 for the rows, 1 for the columns.
        W : Tensor of shape (m, rank + 1)
            Factors and biases of the side.
        links : sequence of Tensor of shape (p, rank + 1)
            Map ``B`` of each linear prior.

        Returns
        -------
        Tensor of shape () or float
        """
        if not links:
            return 0.0
        size, sides = W.new_zeros(()), data.sides[axis]
        off = self.counts(data, axis) * (W - prior_mean(sides, links))
        for side, B in zip(sides, links, strict=True):
            grad = self.link_weight * side.penalty(B) - side.pull(self.weight * off)
            size = size + grad.norm() * B.norm()
        return size

    def along(
        self, data: SparseObserved, now: Sides, direction: Sides, dtype: torch.dtype
    ) -> Tensor:
        """Twice the objective without linear priors along a line, as a polynomial.

        Parameters
        ----------
        data : SparseObserved or BlockObserved
            The observed cells.
        now : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
            Factors and biases of the rows and of the columns.
        direction : pair of Tensor of shape (m, rank + 1), (n, rank + 1)
            Direction of the line.
        dtype : torch.dtype
            Precision of computations at the cells.

        Returns
        -------
        float64 Tensor of shape (5,)
            Coefficients, from the constant term to ``t**4``.
        """
        end = None if self.biases[0] else -1
        line = (
            padded(
                torch.cat([pad(x[:, :-1], (0, 1), value=one)[:, :end], x[:, -1:]], 1)
            ).to(dtype)
            for x, one in ((now[1], 1.0), (direction[1], 0.0))
        )
        own = now[0][:, :end], direction[0][:, :end]
        curve = torch.stack(list(data.map(misfit_along, own, *line))).sum(0)
        for axis, (W, D) in enumerate(zip(now, direction, strict=True)):
            penalty = penalty_along(W, D, self.counts(data, axis))
            curve = curve + self.weight * penalty.to(curve)
        if self.implicit:
            (U, V), (P, Q) = ([W[:, :-1] for W in pair] for pair in (now, direction))
            curve = curve + squares_along((U, P), (V, Q), dtype)
        return curve
