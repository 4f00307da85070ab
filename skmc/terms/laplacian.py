"""Dirichlet energies: how much similar items of a matrix differ."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from skmc.terms.term import Term, inner, per_member
from skmc.terms.transforms import Rows, Transform, squared_distances


def graph_laplacian(adjacency: Tensor) -> Tensor:
    """``diag(A 1) - A`` of a symmetric adjacency; its diagonal cancels.

    Parameters
    ----------
    adjacency : Tensor of shape (\\*batch, k, k)
        Symmetric.

    Returns
    -------
    Tensor of shape (\\*batch, k, k)
    """
    return torch.diag_embed(adjacency.sum(-1)) - adjacency


class DirichletEnergy(Term):
    r"""``weight * tr(T(X)' L T(X))`` with a fixed Laplacian ``L``, a *sum* over items.

    With ``L = diag(A 1) - A`` this is ``weight / 2 * sum_ij A_ij |t_i - t_j|^2``.

    Parameters
    ----------
    L : Tensor of shape (\*batch, k, k) or (k, k)
        Symmetric positive semi-definite, ``k`` the number of items of the transform.
    transform : Rows, Columns or Blocks
        What the items ``t_i`` are.
    weight : Tensor of shape (\*batch,) or ()
        Non-negative; multiplies the energy.
    """

    L: Tensor
    weight: Tensor
    member_axes: ClassVar[dict[str, int]] = {"L": 2, "weight": 0}

    def __init__(self, L: Tensor, transform: Transform = Rows(), weight=1.0):
        super().__init__()
        self.register_buffer("L", L)
        self.transform = transform
        self.register_buffer("weight", torch.as_tensor(weight, dtype=torch.float64))

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self.L @ items)

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        slope = self.transform.between(self.L, X)
        value = self.weight.to(X) * inner(X, slope)
        return value, 2 * per_member(self.weight, X) * slope

    def prox(self, V: Tensor, step: float) -> Tensor:
        items = self.transform(V)
        eye = torch.eye(items.shape[-2], dtype=V.dtype, device=V.device)
        system = eye + 2 * step * per_member(self.weight, V) * self.L
        moved = torch.linalg.solve(system, items) - items
        return V + self.transform.adjoint(moved, *V.shape[-2:])

    def outputs(self) -> dict[str, Tensor]:
        return {self.transform.name: self.L}


class AdaptiveDirichletEnergy(Term):
    r"""``weight * tr(T(X)' L(W) T(X))`` with a Laplacian learned through ``W``.

    ``L(W) = diag(A 1) - A``, and ``A`` is, off the diagonal,

    - ``adjacency="row"``: ``(S + S') / 2``, ``S`` the softmin of each row of ``W``;
    - ``adjacency="global"``: ``(exp W + exp W') / (1' exp(W) 1)``.

    The mass on the diagonal costs nothing, so the energy can vanish: that is how the
    regularizer switches itself off at the end of a fit.

    Parameters
    ----------
    W : Tensor of shape (\*batch, k, k)
        Start of the free parameter, ``k`` the number of items of the transform.
    transform : Rows, Columns or Blocks
        What the items ``t_i`` are.
    weight : Tensor of shape (\*batch,) or ()
        Non-negative; multiplies the energy.
    adjacency : {"row", "global"}
        The parametrisation.
    every : int
        ``W`` learns at the first of so many calls of `value_and_grad`; the others use
        the Laplacian of that call and leave ``W`` alone, which saves the products with
        the Gram matrix.

    Notes
    -----
    With ``d_ij = |t_i - t_j|^2`` the energy is ``<S, d> / 2`` (row) or ``<S, d>``
    (global, ``S = exp(W) / sum``), linear in ``S``, so its gradient in ``W`` is one
    softmax derivative. The row form omits ``|t_i|^2 / 2`` from ``d / 2``, which is
    constant along a row and falls out.

    References
    ----------
    Li, Sun, Wang, Wang. Adaptive and implicit regularization for matrix completion.
    SIAM J. Imaging Sci. 15 (2022), equations (2), (3) and Proposition 2.
    """

    weight: Tensor
    member_axes: ClassVar[dict[str, int]] = {"W": 2, "L2": 2, "weight": 0}

    def __init__(
        self,
        W: Tensor,
        transform: Transform = Rows(),
        weight=1.0,
        adjacency="row",
        every: int = 1,
    ):
        super().__init__()
        self.W = nn.Parameter(W)
        self.every = every
        self.n_calls = 0
        self.transform = transform
        self.register_buffer("weight", torch.as_tensor(weight, dtype=torch.float64))
        self.by_row = adjacency == "row"

    def similarity(self) -> Tensor:  # (*batch, k, k), not symmetric
        """``S``, the softmax of the free parameters; not symmetric.

        Returns
        -------
        Tensor of shape (\\*batch, k, k)
        """
        if self.by_row:
            return torch.softmax(-self.W, -1)
        return torch.softmax(self.W.flatten(-2), -1).view_as(self.W)

    def laplacian(self) -> Tensor:
        """The Laplacian learned by now.

        Returns
        -------
        Tensor of shape (\\*batch, k, k)
        """
        S = self.similarity()
        return graph_laplacian((S + S.mT) * (0.5 if self.by_row else 1.0))

    def forward(self, X: Tensor) -> Tensor:
        items = self.transform(X)
        return self.weight.to(X) * inner(items, self.laplacian() @ items)

    @torch.no_grad()
    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        if self.n_calls % self.every == 0:
            self._learn(self.transform(X))
        self.n_calls += 1
        slope = self.transform.between(self.L2, X)
        return 0.5 * inner(X, slope), slope

    def _learn(self, items: Tensor) -> None:
        """Add to the gradient of W, and set ``L2 = 2 weight L(W)``."""
        scale = per_member(self.weight if self.by_row else 2 * self.weight, items)
        S = self.similarity()
        self.L2 = graph_laplacian(S + S.mT).mul_(scale)
        if self.by_row:
            norms = (items * items).sum(-1)
            dS = (items @ items.mT).neg_().add_(norms[..., None, :], alpha=0.5)
            dW = S * ((S * dS).sum(-1, keepdim=True) - dS)
        else:
            dS = 0.5 * squared_distances(items)
            dW = S * (dS - inner(S, dS)[..., None, None])
        dW.mul_(scale)
        self.W.grad = dW if self.W.grad is None else self.W.grad.add_(dW)

    @torch.no_grad()
    def outputs(self) -> dict[str, Tensor]:
        return {self.transform.name: self.laplacian()}
