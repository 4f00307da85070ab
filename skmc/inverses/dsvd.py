"""Singular values by descent on orthonormal matrices: differentiable everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from skmc.inverses.dsvd_steps import objective, random_orthonormal, scaled, step_of_side
from skmc.inverses.inverse import LDMinv
from skmc.inverses.inverse_training import descend
from skmc.inverses.stiefel import check_orthonormal
from skmc.inverses.unrolled import unrolled
from skmc.inverses.validation import check_count, check_matrix, check_number
from skmc.linalg import SVD

SEED = 20201  # not 0, which may have been the seed of the matrices
EXACT = 1e-4  # |A X A - A|_F / |A|_F up to which an inverse needs no training


class DSVD(nn.Module):
    r"""Compute an SVD by a fixed number of differentiable, learned steps (D-SVD).

    For gradients through an SVD with repeated singular values; not for speed, for which
    `torch.linalg.svd` is better.

    With ``M`` scaled to a root mean square of its singular values of 1, ``r = min(m,
    n)`` and ``offdiag`` a matrix without its diagonal, ::

        f(U, V) = 1/2 |offdiag(U' M V)|_F^2 - <M, U V'>,   U' U = V' V = I

    is minimal at singular vectors. A layer is a step of `cayley_step` for ``U`` and
    then one for ``V``, against ``G = M V (offdiag(V' M' U) - I)``, of length ::

        t = min(2 / |P|, -f'(0) / f''(0)) + learned,    P = G U' - U G'

    with derivatives along the step in closed form. ``(I + t/2 P)^-1`` is one `LDMinv`
    per layer and side. This implementation adds to the paper: ``|P|`` is ``(tr P^4 /
    2)^(1/4) >= |P|_2``; only the first term is used where ``f''(0) <= 0``; ``|t|`` is
    clipped to ``4 / |P|``, so that the inverse is accurate for any learned length;
    negative singular values are made positive with the column of ``U``, since for
    square ``M`` no path of orthogonal matrices changes the sign of a determinant.

    No step divides by a difference of singular values, so derivatives with respect to
    ``M`` exist and are finite where singular values repeat. `torch.linalg.svd` has
    none there. The result is approximate: ``U`` and ``V`` are orthonormal, but
    ``U' M V`` is diagonal only in the limit, to which close singular values converge
    slowly.

    Parameters
    ----------
    depth : int >= 1
        Number of layers, ``K_svd``.
    inverse_order : int >= 2
        Number of terms of each step of the inverses, see `LDMinv`.
    inverse_depth : int >= 1
        Number of layers of each `LDMinv`. The condition of ``I + t/2 P`` is at most
        2.3, and below 1.5 untrained: four layers are enough, and three for most
        matrices.

    Attributes
    ----------
    steps : Parameter of shape (depth, 2)
        Learned parts of the lengths, for ``U`` and ``V``; initially 0.
    inverses : ModuleList of LDMinv
        Inverses, two for each layer.
    history_ : list of float
        Loss at each iteration of the last `fit`.

    See Also
    --------
    minimize_on_stiefel : The steps that it unrolls.
    LDMinv : The pseudo-inverse in the same way.

    References
    ----------
    Xie, Kong, Wu, Liu, Lin. Fast and differentiable matrix inverse and its extension
    to SVD, eq. 7 to 12, Algorithms 2 and 3.

    Examples
    --------
    >>> import torch
    >>> from skmc.inverses import DSVD
    >>> M = torch.diag(torch.tensor([3.0, 2.0, 2.0])).requires_grad_()
    >>> found = DSVD(depth=60)(M)
    >>> found.s.detach().round(decimals=3)
    tensor([3., 2., 2.])
    >>> P = found.U[:, :1] @ found.U[:, :1].mT  # projects on the first singular vector
    >>> P[0, 1].backward()  # its derivative by M[0, 1] is 2 / (3^2 - 2^2)
    >>> M.grad.isfinite().all()
    tensor(True)
    """

    def __init__(
        self, depth: int = 20, *, inverse_order: int = 4, inverse_depth: int = 6
    ):
        super().__init__()
        check_count(depth, "depth", 1)
        self.depth = depth
        self.steps = nn.Parameter(torch.zeros(depth, 2, dtype=torch.float64))
        self.inverses = nn.ModuleList(
            LDMinv(inverse_order, inverse_depth) for _ in range(2 * depth)
        )
        self.history_: list[float] = []

    def forward(
        self,
        M: Tensor,
        U0: Tensor | None = None,
        V0: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> SVD:
        r"""The SVD of ``M``, with ``s = diag(U' M V)`` descending.

        Parameters
        ----------
        M : Tensor of shape (\\*batch, m, n)
            Real and finite matrices.
        U0 : Tensor of shape (\\*batch, m, r), optional
            Initial left vectors, as ``V0``.
        V0 : Tensor of shape (\\*batch, n, r), optional
            Initial right vectors: orthonormal columns, ``r = min(m, n)``, in the dtype
            of ``M``. The default is random, uniform on the Stiefel manifold.
        generator : torch.Generator, optional
            Generator on the CPU. The default has a fixed seed: the same start at every
            call.

        Returns
        -------
        SVD
            ``U`` of shape (\\*batch, m, r), ``s`` (\\*batch, r) and ``V``
            (\\*batch, n, r).
        """
        check_matrix(M, "M")
        *batch, m, n = M.shape
        r = min(m, n)
        generator = generator or torch.Generator().manual_seed(SEED)
        U = _start(U0, "U0", (*batch, m, r), M, generator)
        V = _start(V0, "V0", (*batch, n, r), M, generator)
        for left, right in self._layers(scaled(M), U, V, _inverse):
            U, V = left, right
        s = (U * (M @ V)).sum(-2)
        sign = torch.where(s < 0, -1, 1).to(s)
        U, s = U * sign[..., None, :], s * sign
        order = s.argsort(-1, descending=True)
        columns = order[..., None, :]
        return SVD(
            U.gather(-1, columns.expand_as(U)),
            s.gather(-1, order),
            V.gather(-1, columns.expand_as(V)),
        )

    def fit(
        self,
        matrices: Tensor,
        *,
        max_iter: int = 200,
        lr: float = 1e-2,
        batch_size: int = 30,
        generator: torch.Generator | None = None,
        callback: Callable[[int, float], None] | None = None,
    ) -> DSVD:
        r"""Learn the lengths of steps from matrices, starting at the current ones.

        Gradient descent on ``1 / (n K_svd) sum_i sum_k f(U_ik, V_ik)``, over ``n``
        matrices ``i`` drawn at each iteration with random starts, and all layers
        ``k``. A `LDMinv` is trained by its `LDMinv.fit` when its relative error
        ``|A X A - A|_F / |A|_F`` on these matrices exceeds 1e-4. In the paper each is
        trained at each iteration.

        Parameters
        ----------
        matrices : Tensor of shape (\\*batch, m, n)
            Training matrices, real and finite.
        max_iter : int >= 0
            Number of iterations.
        lr : float >= 0
            Learning rate of the gradient descent.
        batch_size : int >= 1
            Number of matrices drawn at each iteration.
        generator : torch.Generator, optional
            Generator on the CPU; the default has a fixed seed.
        callback : callable, optional
            Function that is called with the number of each iteration and its loss.

        Returns
        -------
        DSVD
            This object, with `history_`. If training diverges, it warns and keeps the
            best lengths.
        """
        check_matrix(matrices, "matrices")
        check_count(max_iter, "max_iter", 0)
        check_number(lr, "lr")
        check_count(batch_size, "batch_size", 1)
        matrices = matrices.detach().reshape(-1, *matrices.shape[-2:])
        count, m, n = matrices.shape
        r, size = min(m, n), min(batch_size, count)
        generator = generator or torch.Generator().manual_seed(SEED)
        self.history_ = []

        def loss_at() -> Tensor:
            chosen = torch.randperm(count, generator=generator)[:size]
            M = scaled(matrices[chosen.to(matrices.device)])
            U = random_orthonormal((size, m, r), M, generator)
            V = random_orthonormal((size, n, r), M, generator)
            losses = [
                objective(M, U, V).mean()
                for U, V in self._layers(M, U, V, _trained_inverse)
            ]
            return torch.stack(losses).mean()

        descend(self.steps, loss_at, self.history_, max_iter, lr, callback=callback)
        return self

    def extra_repr(self) -> str:
        """The sizes, for torch's ``repr``.

        Returns
        -------
        str
        """
        return f"depth={self.depth}"

    def _layers(
        self,
        M: Tensor,
        U: Tensor,
        V: Tensor,
        inverse: Callable[[LDMinv, Tensor], Tensor],
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """``U, V`` after each layer, for a scaled ``M``."""
        steps = self.steps.to(M)
        inverses = [partial(inverse, cast(LDMinv, net)) for net in self.inverses]
        for k in range(self.depth):
            U = step_of_side(U, M @ V, steps[k, 0], inverses[2 * k])
            V = step_of_side(V, M.mT @ U, steps[k, 1], inverses[2 * k + 1])
            yield U, V


def _inverse(inverse: LDMinv, A: Tensor) -> Tensor:
    return unrolled(A, inverse.coefficients)


def _trained_inverse(inverse: LDMinv, A: Tensor) -> Tensor:
    fixed = A.detach()
    with torch.no_grad():
        wrong = fixed @ unrolled(fixed, inverse.coefficients) @ fixed - fixed
        needed = wrong.norm() > EXACT * fixed.norm()
    if needed and fixed.isfinite().all():
        inverse.fit(fixed)
    return unrolled(A, inverse.coefficients.detach())


def _start(
    given: Tensor | None,
    name: str,
    shape: tuple[int, ...],
    M: Tensor,
    generator: torch.Generator,
) -> Tensor:
    if given is None:
        return random_orthonormal(shape, M, generator)
    check_orthonormal(given, name)
    if given.shape != shape or given.dtype != M.dtype:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)} and dtype {given.dtype}; M needs "
            f"{shape} and {M.dtype}."
        )
    return given
