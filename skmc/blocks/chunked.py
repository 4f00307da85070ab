"""Solvers whose steps are sums over chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.blocks.chunked_rows import ChunkedRows
from skmc.cells import SparseObserved
from skmc.linalg import LowRank, RowModel, normal_equations
from skmc.solvers import Solver, State

RIDGE = 1e-4  # for rows and columns with fewer cells than the rank


@dataclass(frozen=True, kw_only=True)
class ChunkedSVDState(State):
    """An iterate of `ChunkedSVD`.

    Parameters
    ----------
    objective : Tensor of shape ()
        The objective at this iterate.
    X : LowRank
        Zero, because the completion is not formed.
    V : Tensor of shape (n, rank)
        Factors of the columns, orthogonal.
    means : Tensor of shape (n, 1) or (n, 0)
        Free means of the columns.
    gram : Tensor of shape (n, k, k)
        Sum of ``u u'`` over the cells of each column, where ``u`` ends with a one if
        there are means.
    right : Tensor of shape (n, k)
        Sum of ``u x`` over the cells of each column.
    scores : tuple of Tensor
        Number of rows with cells, and the sums of ``u`` and of ``u u'`` over them.
    """

    X: LowRank
    V: Tensor
    means: Tensor
    gram: Tensor
    right: Tensor
    scores: tuple[Tensor, Tensor, Tensor]


class ChunkedSVD(Solver):
    r"""Least squares over the matrices of bounded rank, by sums over chunks of rows.

    The objective is that of `HardRank`, as a function of the row space:

    .. math::

        \min_{V, m} \tfrac12 \sum_i \min_{u_i} \|P(x_i - m - V u_i)\|^2

    A step solves for the factors of each column from the sums of ``u u'`` and ``u x``
    over its cells, and then passes over the rows once to find new ones. Systems have a
    ridge of 1e-4, as rows may have fewer cells than the rank. The means ``m`` are zero
    unless they are free, see `skmc.Observed`.

    Parameters
    ----------
    start : Tensor of shape (n, rank)
        Initial factors of the columns.
    """

    def __init__(self, start: Tensor):
        self.start = start

    def init(self, data: ChunkedRows) -> ChunkedSVDState:
        scaling = data.scaling
        free = scaling is not None and scaling.shift.shape[-1] > 1
        return self._pass(data, self.start, self.start.new_zeros(len(self.start), free))

    def step(self, data: ChunkedRows, state: ChunkedSVDState) -> ChunkedSVDState:
        gram = state.gram + RIDGE * torch.eye(state.gram.shape[-1]).to(state.V)
        W = torch.cholesky_solve(state.right[..., None], torch.linalg.cholesky(gram))
        rank = state.V.shape[1]
        return self._pass(data, W[:, :rank, 0], W[:, rank:, 0])

    def _pass(self, data: ChunkedRows, V: Tensor, means: Tensor) -> ChunkedSVDState:
        V = torch.linalg.qr(V)[0] * len(V) ** 0.5
        misfit, gram, right, *scores = data.total(_row_space, V, means)
        return ChunkedSVDState(
            objective=misfit / 2,
            X=data.zero(),
            V=V,
            means=means,
            gram=gram,
            right=right,
            scores=(scores[0], scores[1], scores[2]),
        )

    def residual(
        self, data: ChunkedRows, previous: State, current: ChunkedSVDState
    ) -> Tensor:
        """``|dF/dV| |V| / |P(M)|^2``.

        Parameters
        ----------
        data : ChunkedRows
            The observed cells.
        previous : State
            The state before the last step.
        current : ChunkedSVDState
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        W = torch.cat([current.V, current.means], 1)
        grad = (current.gram @ W[..., None])[..., 0] - current.right
        return grad.norm() * W.norm() / data.energy.clamp_min(1e-300)

    def outputs(self, state: ChunkedSVDState) -> dict[str, Any]:
        found = {"V": state.V, "means": state.means, "scores": state.scores}
        return {"X": state.X, **found}


def _row_space(
    values: Tensor, seen: Tensor, V: Tensor, means: Tensor
) -> tuple[Tensor, ...]:
    place, cols = seen.nonzero(as_tuple=True)
    cells = SparseObserved(place, cols, values[seen], (seen.shape[0], seen.shape[1]))
    ridge = RIDGE * torch.eye(V.shape[1]).to(V)
    model = RowModel(V, means.sum(1), ridge, V.new_zeros(len(ridge)))
    U = model.solve(cells.starts, cells.cols, cells.values)
    rows = torch.cat([U, U.new_ones(len(U), means.shape[1])], 1)
    W = torch.cat([V, means], 1)
    T = cells.T
    gram, right = V.new_zeros(*W.shape, W.shape[1]), torch.zeros_like(W)
    for block in normal_equations(T.starts, T.cols, T.values, rows):
        gram[block.rows], right[block.rows] = block.gram, block.right
    some = seen.any(1)
    return (
        cells.misfit(LowRank(rows, W)),
        gram,
        right,
        some.sum().to(V),
        U[some].sum(0),
        U[some].mT @ U[some],
    )
