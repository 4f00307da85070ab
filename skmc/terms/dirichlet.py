"""Dirichlet energies, which penalize differences between similar items."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skmc.linalg import (
    NeighborGraph,
    compressed_rows,
    matmul,
    softmax_derivative,
)
from skmc.terms.term import Term, inner, per_member
from skmc.terms.transforms import Rows, Transform, squared_distances


def graph_laplacian(adjacency: Tensor) -> Tensor:
    """``diag(A 1) - A`` of a symmetric adjacency; the diagonal of ``A`` cancels.

    Parameters
    ----------
    adjacency : Tensor of shape (\\*batch, k, k)
        Symmetric adjacency matrix.

    Returns
    -------
    Tensor of shape (\\*batch, k, k)

    See Also
    --------
    DirichletEnergy : The energy of a Laplacian.
    """
    return torch.diag_embed(adjacency.sum(-1)) - adjacency


class DirichletEnergy(Term):
    r"""Weighted squared differences between items, for a fixed Laplacian.

    .. math::

        F(X) = \lambda \operatorname{tr}(T(X)^\top L\, T(X))
             = \frac{\lambda}{2} \sum_{ij} A_{ij} \|t_i - t_j\|^2

    a *sum* over pairs of items, where the second form holds for a graph Laplacian
    :math:`L = \operatorname{diag}(A 1) - A`.

    Parameters
    ----------
    L : Tensor of shape (\*batch, k, k) or (k, k)
        Symmetric positive semi-definite matrix, where ``k`` is the number of items.
    transform : Rows, Columns or Blocks
        Transform of the matrix into the items ``t_i``.
    weight : float or Tensor of shape (\*batch,), default=1.0
        Weight ``lambda``, non-negative.

    See Also
    --------
    AdaptiveDirichletEnergy : Learns the Laplacian.
    graph_laplacian : Makes a Laplacian from an adjacency matrix.
    """

    L: Tensor
    weight: Tensor

    def __init__(
        self, L: Tensor, transform: Transform = Rows(), weight: float | Tensor = 1.0
    ):
        super().__init__()
        self.register_buffer("L", L)
        self.batched("L", 2)
        self.transform = transform
        self.add_weight("weight", weight)

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self.L @ items)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        half = self.transform.between(self.L, X)
        value = self.weight.to(X) * inner(X, half)
        return value, 2 * per_member(self.weight, X) * half

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        items = self.transform(V)
        eye = torch.eye(items.shape[-2], dtype=V.dtype, device=V.device)
        system = eye + 2 * per_member(step * self.weight, V) * self.L
        moved = torch.linalg.solve(system, items) - items
        return V + self.transform.adjoint(moved, *V.shape[-2:])

    def laplacians(self) -> dict[str, Tensor | NeighborGraph]:
        return {self.transform.name: self.L}


class SparseDirichletEnergy(Term):
    r"""Energy of `DirichletEnergy` for a Laplacian in compressed rows.

    All members share the Laplacian. The energy
    :math:`F(X) = \lambda \operatorname{tr}(T(X)^\top L\, T(X))` is a *sum* over pairs
    of items. Time and memory are linear in the number of stored cells of ``L``.

    Parameters
    ----------
    starts : int64 Tensor of shape (k + 1,)
        Row ``i`` of ``L`` has the cells ``starts[i]:starts[i + 1]``.
    cols : int64 Tensor of shape (n_cells,)
        Column of each cell.
    values : Tensor of shape (n_cells,)
        Values of the cells of a symmetric positive semi-definite matrix.
    transform : Rows, Columns or Blocks
        Transform of the matrix into the ``k`` items ``t_i``.
    weight : float or Tensor of shape (\*batch,), default=1.0
        Weight ``lambda``, non-negative.
    """

    weight: Tensor
    starts: Tensor
    cols: Tensor
    values: Tensor

    def __init__(
        self,
        starts: Tensor,
        cols: Tensor,
        values: Tensor,
        transform: Transform = Rows(),
        weight: float | Tensor = 1.0,
    ):
        super().__init__()
        self.register_buffer("starts", starts)
        self.register_buffer("cols", cols)
        self.register_buffer("values", values)
        self.transform = transform
        self.add_weight("weight", weight)

    def _times(self, items: Tensor) -> Tensor:
        """``L T(X)`` for all members at once."""
        k = items.shape[-2]
        L = compressed_rows(self.starts, self.cols, self.values, (k, k))
        side_by_side = items.movedim(-2, 0)
        product = L @ side_by_side.reshape(k, -1)
        return product.view(side_by_side.shape).movedim(0, -2)

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self._times(items))

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        half = self.transform.adjoint(self._times(self.transform(X)), *X.shape[-2:])
        value = self.weight.to(X) * inner(X, half)
        return value, 2 * per_member(self.weight, X) * half


class LearnedEnergy(Term):
    r"""Weighted squared differences between items, for a learned similarity.

    Parameters
    ----------
    W : Tensor of shape (\*batch, k, p)
        Initial value of the free parameter, where ``k`` is the number of items.
    transform : Rows, Columns or Blocks
        Transform of the matrix into the items ``t_i``.
    weight : float or Tensor of shape (\*batch,), default=1.0
        Weight ``lambda``, non-negative.
    adjacency : {"row", "global"}, default="row"
        Parametrization of the adjacency.
    every : int, default=1
        Number of calls of `value_and_grad` per update of ``W``; the first one learns.
    """

    weight: Tensor
    learned: Tensor  # state that the last learning call saves for the others

    def __init__(
        self,
        W: Tensor,
        transform: Transform = Rows(),
        weight: float | Tensor = 1.0,
        adjacency: str = "row",
        every: int = 1,
    ):
        super().__init__()
        self.W = nn.Parameter(W)
        self.register_buffer("learned", None, persistent=False)
        self.batched("W", 2)
        self.batched("learned", 2)
        self.every = every
        self.n_calls = 0
        self.transform = transform
        self.add_weight("weight", weight)
        self.by_row = adjacency == "row"

    def similarity(self) -> Tensor:
        """``S``, the softmax of the free parameter; not symmetric.

        Returns
        -------
        Tensor of shape (\\*batch, k, p)
        """
        if self.by_row:
            return torch.softmax(-self.W, -1)
        return torch.softmax(self.W.flatten(-2), -1).view_as(self.W)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        grad = self.grad(X)
        return 0.5 * inner(X, grad), grad

    def scale(self, items: Tensor) -> Tensor:
        """The weight of each member's distances, counted in both directions.

        Parameters
        ----------
        items : Tensor of shape (\\*batch, k, p)
            Items of each member.

        Returns
        -------
        Tensor of shape (\\*batch, 1, 1)
        """
        return per_member(self.weight if self.by_row else 2 * self.weight, items)

    def add_grad(self, grad: Tensor) -> None:
        """Add a derivative to the gradient of ``W``.

        Parameters
        ----------
        grad : Tensor of shape (\\*batch, k, p)
            Derivative of the energy.
        """
        self.W.grad = grad if self.W.grad is None else self.W.grad.add_(grad)


class AdaptiveDirichletEnergy(LearnedEnergy):
    r"""Weighted squared differences between items, for a learned Laplacian.

    .. math::

        F(X) = \lambda \operatorname{tr}(T(X)^\top L(W)\, T(X)), \qquad
        L(W) = \operatorname{diag}(A 1) - A

    and ``A`` is, off the diagonal,

    - ``adjacency="row"``: ``(S + S') / 2``, ``S`` the softmin of each row of ``W``;
    - ``adjacency="global"``: ``(exp W + exp W') / (1' exp(W) 1)``.

    Similarity on the diagonal costs nothing, so the energy can vanish. In this way the
    regularizer switches itself off at the end of a fit.

    Parameters
    ----------
    W : Tensor of shape (\*batch, k, k)
        Initial value of the free parameter, where ``k`` is the number of items.
    transform : Rows, Columns or Blocks
        Transform of the matrix into the items ``t_i``.
    weight : float or Tensor of shape (\*batch,), default=1.0
        Weight ``lambda``, non-negative.
    adjacency : {"row", "global"}, default="row"
        Parametrization of the adjacency.
    every : int, default=1
        Number of calls of `value_and_grad` per update of ``W``. The first of them
        learns. The others use its Laplacian, although ``W`` has changed since (the term
        `lags`), and do not change the gradient of ``W``. This saves the products with
        the Gram matrix.

    See Also
    --------
    DirichletEnergy : For a fixed Laplacian.

    Notes
    -----
    With ``d_ij = |t_i - t_j|^2`` the energy is ``<S, d> / 2`` (row) or ``<S, d>``
    (global, ``S = exp(W) / sum``). It is linear in ``S``, so its gradient in ``W`` is
    one softmax derivative. The row form omits ``|t_i|^2 / 2`` from ``d / 2``, which is
    constant along a row and cancels.

    References
    ----------
    Li, Sun, Wang, Wang. Adaptive and implicit regularization for matrix completion.
    SIAM J. Imaging Sci. 15 (2022), equations (2), (3) and Proposition 2.
    """

    def laplacian(self) -> Tensor:
        """The Laplacian of the current ``W``.

        Returns
        -------
        Tensor of shape (\\*batch, k, k)
        """
        S = self.similarity()
        return graph_laplacian((S + S.mT) * (0.5 if self.by_row else 1.0))

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self.laplacian() @ items)

    def grad(self, X: Tensor) -> Tensor:
        if self.n_calls == 0:
            self._learn(self.transform(X))
        # nn.Module's __setattr__ takes as long as a small product.
        object.__setattr__(self, "n_calls", (self.n_calls + 1) % self.every)
        return self.transform.between(self.learned, X)

    def value(self, X: Tensor) -> Tensor:
        return 0.5 * inner(X, self.transform.between(self.learned, X))

    @torch.no_grad()
    def _learn(self, items: Tensor) -> None:
        """Add to the gradient of W, and set ``learned = 2 weight L(W)``."""
        weight = self.scale(items)
        S = self.similarity()
        L2 = (S + S.mT).mul_(-weight)
        L2.diagonal(dim1=-2, dim2=-1).sub_(L2.sum(-1))
        self.learned = L2
        if self.by_row:
            dS = matmul(items, items.mT)
            dS.sub_(0.5 * dS.diagonal(dim1=-2, dim2=-1)[..., None, :])
            dW = softmax_derivative(dS, S)
        else:
            dS = 0.5 * squared_distances(items)
            dW = softmax_derivative(dS.flatten(-2), S.flatten(-2)).view_as(S)
        self.add_grad(dW.mul_(weight))

    @torch.no_grad()
    def laplacians(self) -> dict[str, Tensor | NeighborGraph]:
        return {self.transform.name: self.laplacian()}
