"""Nuclear norm and an adaptive graph of the columns, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.solvers.ncarl_systems import Problem
from skmc.solvers.norms import relative_norm
from skmc.solvers.solver import Solver, State
from skmc.terms import graph_laplacian, inner

RIDGE = 1e-6  # makes the quadratic form definite and breaks ties of distances
NO_ENERGY = 1e-5  # share of the nuclear norm below which a direction is free


@dataclass(frozen=True, kw_only=True)
class NCARLState(State):
    """An iterate of `NCARL`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    D : Tensor of shape (\\*batch, n, n)
        Weight matrix of the nuclear norm at ``X``, where ``n = min(shape)``.
    laplacian : Tensor of shape (\\*batch, n, n)
        Laplacian of the graph along the shorter axis of ``X``.
    means : Tensor of shape (\\*batch, 1, n_cols), its transpose, or zeros
        Free means of the columns, in the unit of ``problem``.
    problem : Problem
        Linear systems, which do not change.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    D: Tensor  # (*batch, n, n), weight of the nuclear norm at X; n = min(shape)
    laplacian: Tensor  # (*batch, n, n), of the shorter axis of X
    means: Tensor  # free means of the columns, in the unit of the problem
    problem: Problem


@dataclass(eq=False)
class NCARL(Solver[Observed, NCARLState]):
    r"""Nuclear norm and Dirichlet energy, both reweighted at every step.

    .. math::

        \min_X \|X\|_*^2 + \alpha \operatorname{tr}(X L(X) X^\top)
        \quad\text{subject to } X = M \text{ on the observed cells}

    or, with noise,

    .. math::

        \min_X \|P(X - M)\|_F^2 + \lambda_{noise} \|X\|_*^2
        + \alpha \operatorname{tr}(X L(X) X^\top)

    all of which are *sums*. A step fixes ``D(X)``, for which ``tr(X D X') = |X|_*^2``,
    and the Laplacian ``L(X)`` of `adaptive_laplacian`, and minimizes the quadratic form
    ``Q = D + alpha L + 1e-6 I`` over each row ``x`` exactly::

        x_O = m_O,  x_H = -inv(Q_HH) Q_HO m_O      without noise,
        x = (m p) inv(diag p + Q)                  with, D times lambda_noise in Q,

    where ``O`` and ``H`` are the observed and the hidden cells of the row and ``p`` is
    its mask. A matrix with more columns than rows is solved transposed, so that the
    systems are small.

    Parameters
    ----------
    alpha : float >= 0
        Weight of the Dirichlet energy.
    n_neighbors : int >= 1
        Number of neighbors of a column (of a row, if transposed) in the graph, < n.
    lambda_noise : float > 0 or None
        Weight of the nuclear norm in the noisy form; None keeps the observed cells.

    Notes
    -----
    Everything is computed in double precision. The first X is the zero-filled matrix.
    The unit of the 1e-6 in the graph is the square of the largest observed cell. This
    is our interpretation: the paper's data lie in [0, 1], and our completion scales
    with the data. ``objective`` is that of X with ``D(X)`` and ``L(X)``. It may rise,
    since the graph of a step is not optimal for its X. Free means of the columns are
    those of the last X: they are subtracted from the cells before a step and from X
    before ``D`` and ``L`` are computed.

    A row needs one Cholesky factor, of whichever is smaller: the system of its hidden
    cells (as above) or that of its observed ones, ``x = v H`` with ``H = inv(Q)`` and
    ``v_O = inv(H_OO) m_O``, the form of the paper; they agree by block inversion. With
    noise these are ``x = y + z G``, ``z_H = inv((Q G)_HH) y_H`` with
    ``G = inv(I + Q)``, ``y = m G``, and ``x = v H`` with ``v_O = inv((I + H)_OO) m_O``.
    Rows with equal masks share a factor.

    References
    ----------
    Li, Zhang, Zhang. Matrix completion via non-convex relaxation and adaptive
    correlation learning. IEEE Trans. Pattern Anal. Mach. Intell. 45 (2023).
    """

    alpha: float
    n_neighbors: int
    lambda_noise: float | None = None

    def init(self, data: Observed) -> NCARLState:
        problem = Problem.of(data)
        return self._reweigh(data, problem, problem.values)

    def step(self, data: Observed, state: NCARLState) -> NCARLState:
        problem = state.problem
        rest = problem.less(state.means)
        Q = self.quadratic_form(state)
        Z = rest.interpolate(Q) if self.lambda_noise is None else rest.approximate(Q)
        return self._reweigh(data, problem, state.means + Z)

    def quadratic_form(self, state: NCARLState) -> Tensor:
        """``D + alpha L + 1e-6 I``, with ``D`` times ``lambda_noise`` where given.

        Parameters
        ----------
        state : State
            Current state.

        Returns
        -------
        Tensor of shape (\\*batch, n, n)
        """
        Q = self.alpha * state.laplacian
        Q += state.D if self.lambda_noise is None else self.lambda_noise * state.D
        diagonal = torch.diagonal(Q, dim1=-2, dim2=-1)
        # The ridge is larger only where a huge alpha would round it away.
        rounding = Q.shape[-1] * torch.finfo(Q.dtype).eps * diagonal.amax(-1)
        diagonal += rounding.clamp_min(RIDGE)[..., None]
        return Q

    def _reweigh(self, data: Observed, problem: Problem, Z: Tensor) -> NCARLState:
        means, rest = torch.zeros_like(problem.unit), Z
        if data.free_means:
            means = Z.mean(-1 if problem.transposed else -2, keepdim=True)
            rest = Z - means
        gram = rest.mT @ rest
        D, nuclear = nuclear_weight(gram)
        L = adaptive_laplacian(gram, self.n_neighbors)
        energy = self.alpha * inner(gram, L)
        if self.lambda_noise is None:
            objective = nuclear.square() + energy
        else:
            misfit = ((Z - problem.values) * problem.seen).square().sum((-2, -1))
            objective = misfit + self.lambda_noise * nuclear.square() + energy
        X = Z * problem.unit
        return NCARLState(
            X=(X.mT if problem.transposed else X).to(data.values.dtype),
            objective=objective * problem.unit[..., 0, 0].square(),
            D=D,
            laplacian=L,
            means=means,
            problem=problem,
        )

    def residual(
        self, data: Observed, previous: NCARLState, current: NCARLState
    ) -> Tensor:
        """``|X - previous X|_F / |X|_F``.

        A step goes to the minimum for its ``D`` and ``L``, so its length measures how
        far the previous iterate was from a fixed point. The paper's measure, ``|dX|_F /
        (mn)``, depends on units and size; its 1e-6 is 5e-4 of this one on a picture of
        240 x 240 with values in [0, 1].

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : NCARLState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        moved = current.X - previous.X
        return relative_norm(moved.double(), current.X.double())

    def outputs(self, state: NCARLState) -> dict[str, Tensor]:
        return {"X": state.X, "laplacian": state.laplacian}


def nuclear_weight(gram: Tensor) -> tuple[Tensor, Tensor]:
    r"""``D = |X|_* (X'X)^(-1/2)`` and ``|X|_*`` of ``gram = X'X (\*batch, n, n)``.

    Directions whose singular value is at most 1e-5 of the sum of all get weight zero
    instead of a large weight, as in the paper.

    Parameters
    ----------
    gram : Tensor of shape (\*batch, n, n)
        Gram matrix ``X'X``.

    Returns
    -------
    tuple of Tensor
    """
    energy, basis = torch.linalg.eigh(gram)
    values = energy.clamp_min(0).sqrt()
    nuclear = values.sum(-1)
    inverse = nuclear[..., None] / values
    weight = torch.where(values > NO_ENERGY * nuclear[..., None], inverse, 0.0)
    return (basis * weight[..., None, :]) @ basis.mT, nuclear


def adaptive_laplacian(gram: Tensor, n_neighbors: int) -> Tensor:
    r"""Laplacian of the adaptive k-nearest-neighbor graph of columns.

    ``d_ij = |x_i - x_j|^2`` from ``gram = X'X (\*batch, n, n)``, ``d_i(l)`` its l-th
    smallest with the column itself first, ``kappa_i = d_i(k + 1) + 1e-6``::

        S_ij = max(kappa_i - d_ij, 0) / (k kappa_i - sum_(l <= k) d_i(l)),

    and the adjacency is ``(S + S') / 2``. A column's weights, its own included, sum to
    1 but for the 1e-6; ``k`` is at most n - 1.

    Parameters
    ----------
    gram : Tensor of shape (\*batch, n, n)
        Gram matrix ``X'X``.
    n_neighbors : int
        Number of neighbors of each column.

    Returns
    -------
    Tensor of shape (\*batch, n, n)
    """
    k = min(n_neighbors, gram.shape[-1] - 1)
    if k == 0:
        return torch.zeros_like(gram)
    norms = torch.diagonal(gram, dim1=-2, dim2=-1)
    d = (norms[..., :, None] + norms[..., None, :] - 2 * gram).clamp_min_(0)
    torch.diagonal(d, dim1=-2, dim2=-1).zero_()
    nearest = d.topk(k + 1, largest=False).values
    kappa = nearest[..., -1:] + RIDGE
    mass = k * kappa - nearest[..., :-1].sum(-1, keepdim=True)
    S = (kappa - d).clamp_min_(0).div_(mass)
    return graph_laplacian((S + S.mT) / 2)
