"""Matrices with orthonormal columns: feasible steps, and minimization."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.inverses.validation import check_count, check_matrix, check_number

# Values of Wen and Yin.
SUFFICIENT = 1e-4  # required share of the predicted decrease
SHORTER = 0.2  # factor of a step that does not reach it
MEMORY = 0.85  # of the reference value of the line search; 0 is monotone
FIRST_STEP = 1e-3
STEPS = (1e-20, 1e20)
TINY = 1e-300
TRIALS = 30
ORTHONORMAL = 1e-3  # largest |U'U - I| of a starting point


def cayley_step(
    U: Tensor,  # (*batch, m, r)
    G: Tensor,  # (*batch, m, r)
    step: float | Tensor,  # (*batch,)
    inverse: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:  # (*batch, m, r)
    r"""Take a step from ``U`` against the gradient ``G`` with orthonormal columns.

        (I + step/2 P)^-1 (I - step/2 P) U,    P = G U' - U G'

    ``P`` is skew, so that the factor is orthogonal for any step. It is
    ``U - step P U`` to first order, where ``P U`` is the gradient in the canonical
    metric of the Stiefel manifold. If ``2 r < m``, the system to solve has size
    ``2 r``: with ``P = W Z'``, ``W = [G, U]`` and ``Z = [U, -G]``, the step is ::

        U - step W (I + step/2 Z' W)^-1 Z' U
    """
    if G.shape != U.shape:
        raise ValueError(
            f"G has shape {tuple(G.shape)}, U {tuple(U.shape)}; a gradient has the "
            f"shape of U."
        )
    check_tall(U, "U")
    return Skew.of(U, G).step(U, step, inverse)


def check_tall(
    U: Tensor,  # (*batch, m, r)
    name: str,
) -> None:
    """Raise an error if a matrix has more columns than rows."""
    m, r = U.shape[-2:]
    if m < r:
        raise ValueError(
            f"{name} has shape {tuple(U.shape)}; {r} columns of length {m} cannot be "
            f"orthonormal."
        )


def check_orthonormal(
    U: Tensor,  # (*batch, m, r)
    name: str,
) -> None:
    """Return a matrix, or a batch of them, with orthonormal columns."""
    check_matrix(U, name)
    check_tall(U, name)
    eye = torch.eye(U.shape[-1], dtype=U.dtype, device=U.device)
    if (U.mT @ U - eye).abs().max() > ORTHONORMAL:
        raise ValueError(
            f"The columns of {name} are not orthonormal; torch.linalg.qr({name}).Q has "
            "such columns of the same span."
        )


@dataclass(frozen=True, eq=False)
class Skew:
    """The skew matrix ``P = G U' - U G'``, stored as ``W Z'`` if that is smaller.

    Parameters
    ----------
    K : Tensor
        ``P``, or ``Z' W``, which has the same nonzero eigenvalues.
    W : Tensor of shape (\\*batch, m, 2 r) or None
        Left factor of ``P``.
    Z : Tensor of shape (\\*batch, m, 2 r) or None
        Right factor of ``P``.
    """

    K: Tensor  # P, or Z' W, which has the same nonzero eigenvalues
    W: Tensor | None  # (*batch, m, 2 r)
    Z: Tensor | None  # (*batch, m, 2 r)

    @classmethod
    def of(
        cls,
        U: Tensor,  # (*batch, m, r)
        G: Tensor,  # (*batch, m, r)
    ) -> Skew:
        """Make ``P`` in the smaller of its two forms."""
        m, r = U.shape[-2:]
        if 2 * r >= m:
            return cls(G @ U.mT - U @ G.mT, None, None)
        # The symmetric part of U' G cancels in P but not in the small system, which
        # is well-conditioned without it and with columns of similar norms.
        inner = U.mT @ G
        G = G - U @ (inner + inner.mT) / 2
        size = torch.linalg.vector_norm(G.detach(), dim=(-2, -1), keepdim=True)
        size = torch.where(size > 0, size / r**0.5, 1)
        W = torch.cat([G / size, U], -1)
        Z = torch.cat([size * U, -G], -1)
        return cls(Z.mT @ W, W, Z)

    def __matmul__(self, X: Tensor) -> Tensor:
        """``P X``."""
        if self.W is None or self.Z is None:
            return self.K @ X
        return self.W @ (self.Z.mT @ X)

    def step(
        self,
        U: Tensor,  # (*batch, m, r)
        step: float | Tensor,
        inverse: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:  # (*batch, m, r)
        """``(I + step/2 P)^-1 (I - step/2 P) U``."""
        t = torch.as_tensor(step, dtype=U.dtype, device=U.device)[..., None, None]
        eye = torch.eye(self.K.shape[-1], dtype=U.dtype, device=U.device)
        system = eye + t / 2 * self.K
        right = self.K @ U if self.Z is None else self.Z.mT @ U
        if inverse is None:
            moved = torch.linalg.solve(system, right)
        else:
            moved = inverse(system) @ right
        return U - t * (moved if self.W is None else self.W @ moved)


@dataclass(frozen=True, eq=False)
class StiefelResult:
    """The result of `minimize_on_stiefel`.

    Parameters
    ----------
    U : Tensor of shape (\\*batch, m, r)
        Solution, with orthonormal columns.
    value : float
        Objective ``f(U)``.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the relative gradient is at most ``tol``.
    history : list of float
        Objective at every iterate.
    """

    U: Tensor  # (*batch, m, r)
    value: float  # f(U)
    n_iter: int
    converged: bool
    history: list[float]  # f at every iterate


def minimize_on_stiefel(
    f: Callable[[Tensor], Tensor],
    U0: Tensor,
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> StiefelResult:
    r"""Find a local minimum of ``f(U)`` subject to ``U' U = I``.

    The method takes steps of `cayley_step` with Barzilai and Borwein's lengths ::

        |S|^2 / |<S, Y>|  and  |<S, Y>| / |Y|^2  in turn,
        S = U_k - U_(k-1),  Y = (P U)_k - (P U)_(k-1)

    alternately. Each is shortened until ``f`` is below an average of its previous
    values by 1e-4 of the decrease that the gradient predicts. The iteration ends when
    ``|P U|_F <= tol max |G|_F`` with the maximum over all iterates, when no step
    decreases ``f``, or after ``max_iter`` steps.

    This is a function and not a `torch.optim.Optimizer` because the line search
    evaluates ``f`` several times and there is nothing to tune. To train a network with
    orthonormal weights by an optimizer and mini-batches, use
    `torch.nn.utils.parametrizations.orthogonal`.

    Parameters
    ----------
    f : callable
        Differentiable function of a Tensor of shape ``(\\*batch, m, r)``, with scalar
        value.
    U0 : Tensor of shape (\\*batch, m, r)
        Starting point, with orthonormal columns. Members of a batch share the step, and
        ``f`` is usually a sum over them.
    max_iter : int >= 0
        Maximum number of steps.
    tol : float >= 0
        Relative gradient at which to stop. Single precision does not allow much less
        than the default.

    Returns
    -------
    StiefelResult
        Result, in which ``U`` is the best iterate.

    Raises
    ------
    ValueError
        If columns of ``U0`` are not orthonormal, ``f(U0)`` or its gradient is not
        finite, or ``max_iter`` or ``tol`` is negative.

    See Also
    --------
    DSVD : Unrolls such steps for the SVD.

    References
    ----------
    Wen, Yin. A feasible method for optimization with orthogonality constraints (2013),
    Algorithm 2.

    Examples
    --------
    The two largest eigenvalues, as the largest trace of ``U' A U``:

    >>> import torch
    >>> from skmc.inverses import minimize_on_stiefel
    >>> A = torch.diag(torch.tensor([1.0, 5.0, 2.0, 4.0]))
    >>> start = torch.linalg.qr(torch.arange(8.0).reshape(4, 2) % 3).Q
    >>> result = minimize_on_stiefel(lambda U: -(U * (A @ U)).sum(), start)
    >>> round(result.value, 4)
    -9.0
    """
    check_orthonormal(U0, "U0")
    check_count(max_iter, "max_iter", 0)
    check_number(tol, "tol")
    U = U0.detach()
    value, G, D = _evaluate(f, U)
    if not (math.isfinite(value) and bool(G.isfinite().all())):
        raise ValueError("f(U0) or its gradient is not finite; start elsewhere.")
    best, lowest, history = U, value, [value]
    reference, weight, step = value, 1.0, FIRST_STEP
    largest, converged, n_iter = float(G.norm()), False, 0
    step = step / max(float(D.norm()), torch.finfo(U.dtype).tiny)
    for n_iter in range(max_iter + 1):
        largest = max(largest, float(G.norm()))
        converged = float(D.norm()) <= tol * largest
        if converged or n_iter == max_iter:
            break
        promised = float((G * D).sum())
        for _ in range(TRIALS):
            trial = cayley_step(U, G, step)
            fresh, G_new, D_new = _evaluate(f, trial)
            if fresh <= reference - SUFFICIENT * step * promised:
                break
            step *= SHORTER
        else:
            break
        S, Y = trial - U, D_new - D
        U, G, D, value = trial, G_new, D_new, fresh
        history.append(value)
        if value < lowest:
            best, lowest = U, value
        inner = abs(float((S * Y).sum()))
        if n_iter % 2 == 0:
            step = float((S * S).sum()) / max(inner, TINY)
        else:
            step = inner / max(float((Y * Y).sum()), TINY)
        step = min(max(step, STEPS[0]), STEPS[1])
        weight, before = MEMORY * weight + 1, weight
        reference = (MEMORY * before * reference + value) / weight
    return StiefelResult(best, lowest, n_iter, converged, history)


def _evaluate(f: Callable[[Tensor], Tensor], U: Tensor) -> tuple[float, Tensor, Tensor]:
    """Evaluate ``f``, its gradient ``G``, and ``P U = G U' U - U G' U``."""
    U = U.detach().requires_grad_()
    with torch.enable_grad():
        value = f(U)
        (G,) = torch.autograd.grad(value, U)
    U = U.detach()
    return float(value.detach()), G, G @ (U.mT @ U) - U @ (G.mT @ U)
