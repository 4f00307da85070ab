"""Inverse and pseudo-inverse by matrix products alone, fixed or learned."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from skmc.inverses.inverse_training import Spectra, descend, fit_gauss_newton
from skmc.inverses.unrolled import unrolled
from skmc.inverses.validation import check_count, check_matrix, check_number

HALVED_EVERY = 300  # steps of "sgd"
MAX_ITER = {"gauss-newton": 100, "sgd": 1200}


def d_minv(
    A: Tensor, order: int = 4, depth: int = 8, *, c0: float | Tensor | None = None
) -> Tensor:
    r"""The pseudo-inverse of ``A`` after ``depth`` steps of order ``order``: D-Minv.

        X_0 = A' / c0,    X_(k+1) = X_k (I + E_k + ... + E_k^(L-1)),  E_k = I - A X_k

    ``A X_k`` has the eigenvalues ``1 - (1 - s^2 / c0)^(L^k)`` for the singular values
    ``s > 0`` of ``A``, hence ``|A A^+ - A X_k| = e_0^(L^k)`` in the spectral norm with
    ``e_0 = max |1 - s^2 / c0|``. A value ``s`` needs ``L^k`` well above ``c0 / s^2``:
    each further step reaches values smaller by ``sqrt(L)``. Rows and columns of ``X_k``
    are always in the row and column spaces of ``A^+``. So ``A`` may be rectangular or
    singular; singular values that ``depth`` does not reach count as zero.

    Everything is differentiable in ``A``. In directions in which ``A`` is zero,
    rounding errors grow to about ``L^k`` units. For singular matrices in single
    precision use a ``depth`` of 6 at order 4, whose relative error is about 1e-4; that
    of the default is some 2e-3. (The default is for regular matrices, for which 6 steps
    are too few.)

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        Real matrices. Products are with the smaller of ``A A'`` and ``A' A``.
    order : int >= 2
        Number of terms ``L``. A step takes about ``2 sqrt(L)`` products for them
        and two more. One term would change nothing. The paper takes 4 or more.
    depth : int >= 1
        Number of steps ``K``.
    c0 : float or Tensor of shape (\\*batch,), optional
        Scale, above ``|A|_2^2 / 2``, otherwise the iteration diverges. The default is
        the smaller of ``|A A'|_inf`` and ``|A A'|_F``, both at least ``|A|_2^2`` and
        without extra cost, since the first step needs the product.

    Returns
    -------
    Tensor of shape (\\*batch, n, m)
        Approximate pseudo-inverses; zero for a matrix of zeros.

    Raises
    ------
    TypeError
        If ``A`` is complex or of integers.
    ValueError
        If ``A`` has fewer than two axes, no cell, or cells that are not finite; if
        ``order`` or ``depth`` is below its minimum; if ``c0`` is not positive and
        finite, or neither a number nor of shape (\\*batch,).

    See Also
    --------
    LDMinv : Learns the coefficients.
    torch.linalg.pinv : The pseudo-inverse by an SVD.

    References
    ----------
    Xie, Kong, Wu, Liu, Lin. Fast and differentiable matrix inverse and its extension
    to SVD, eq. 2.

    Examples
    --------
    >>> import torch
    >>> from skmc.inverses import d_minv
    >>> A = torch.tensor([[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    >>> d_minv(A)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500],
            [0.0000, 0.0000]])
    """
    check_matrix(A, "A")
    check_count(order, "order", 2)
    check_count(depth, "depth", 1)
    if c0 is not None:
        c0 = torch.as_tensor(c0, dtype=A.dtype, device=A.device)
        if c0.ndim > 0 and c0.shape != A.shape[:-2]:
            raise ValueError(
                f"c0 has shape {tuple(c0.shape)}; it must be a number, or of shape "
                f"{tuple(A.shape[:-2])}: one for each matrix of A."
            )
        if not ((c0 > 0) & c0.isfinite()).all():
            raise ValueError(
                f"c0={c0.tolist()}: it must be positive and finite, above |A|_2^2 / 2."
            )
    return unrolled(A, A.new_ones(depth, order), c0)


class LDMinv(nn.Module):
    r"""Approximate the pseudo-inverse by a few learned, differentiable steps (LD-Minv).

    For gradients through the inverses of similar matrices; not for speed, for which
    `torch.linalg.pinv` is better. ::

        X_0 = A' / c0,  X_(k+1) = X_k (C_k0 I + C_k1 E_k + ... + C_k(L-1) E_k^(L-1))

    with ``E_k = I - A X_k``. Untrained (all coefficients are one) it is `d_minv`.
    `fit` adapts it to given matrices. It then suits similar matrices, with
    singular values in the same range, relative to ``c0``. Row and column spaces are
    exact for any coefficients.

    Parameters
    ----------
    order : int >= 2
        Number of coefficients per layer, ``L``.
    depth : int >= 1
        Number of layers, ``K``.

    Attributes
    ----------
    coefficients : Parameter of shape (depth, order)
        Coefficients in double precision, converted to the precision of the matrices.
    history_ : list of float
        Loss at each step of the last `fit`.

    See Also
    --------
    d_minv : The same steps without learned coefficients.
    DSVD : The SVD in the same way.

    Notes
    -----
    If the depth of D-Minv reaches the smallest singular value, there is nothing to
    learn. Learned coefficients are accurate on the singular values of the training
    matrices and may be useless outside of their range: this is not an inverse of
    arbitrary matrices.

    References
    ----------
    Xie, Kong, Wu, Liu, Lin. Fast and differentiable matrix inverse and its extension
    to SVD, eq. 3, eq. 4 and Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from skmc.inverses import LDMinv, d_minv
    >>> random = torch.Generator().manual_seed(0)
    >>> seen, unseen = torch.randn(2, 50, 20, 30, generator=random)
    >>> inverse = LDMinv(order=4, depth=3).fit(seen)
    >>> error = (unseen @ inverse(unseen) @ unseen - unseen).square().mean()
    >>> fixed = (unseen @ d_minv(unseen, 4, 3) @ unseen - unseen).square().mean()
    >>> bool(error < 0.05 * fixed)
    True
    """

    def __init__(self, order: int = 4, depth: int = 4):
        super().__init__()
        check_count(order, "order", 2)
        check_count(depth, "depth", 1)
        self.order = order
        self.depth = depth
        self.coefficients = nn.Parameter(torch.ones(depth, order, dtype=torch.float64))
        self.history_: list[float] = []

    def forward(self, A: Tensor) -> Tensor:
        r"""``(\\*batch, m, n) -> (\\*batch, n, m)``; errors are those of `d_minv`.

        Parameters
        ----------
        A : Tensor of shape (\*batch, m, n)
            Matrices.

        Returns
        -------
        Tensor of shape (\*batch, n, m)
        """
        check_matrix(A, "A")
        return unrolled(A, self.coefficients)

    def fit(
        self,
        matrices: Tensor,
        *,
        solver: str = "gauss-newton",
        max_iter: int | None = None,
        lr: float = 1e-4,
        batch_size: int = 100,
        generator: torch.Generator | None = None,
    ) -> LDMinv:
        r"""Learn the coefficients from matrices, starting at the current ones.

        ``A X_k A - A`` has the singular values ``s (1 - t_k)`` where ``t_0 = s^2 / c0``
        and ``t_(k+1) = t_k sum_l C_kl (1 - t_k)^l``: scalars, so that training needs
        one decomposition of the matrices and no product.

        Parameters
        ----------
        matrices : Tensor of shape (\\*batch, m, n)
            Training matrices.
        solver : {"gauss-newton", "sgd"}, default="gauss-newton"
            Optimizer. "sgd" is the paper's: gradient descent on
            ``1 / (2 n K) sum_i sum_k |A_i X_ik A_i - A_i|_F^2``, where ``n`` matrices
            are drawn at each step and the step ``lr`` is halved every 300.
            "gauss-newton", which the paper does not have, minimizes ``1 / 2 sum_k log
            sum_i |A_i X_ik A_i - A_i|_F^2`` over all matrices ``i``. The logarithm
            gives weight to the last layers, whose errors are small, and makes the
            result independent of the scale of the matrices. Each ``t_0`` is used three
            times, also ``10 %`` smaller and larger, so that the result suits matrices
            that differ slightly, and ``5e-9 sum (C_kl - 1)^2`` keeps coefficients
            suitable for single precision.
        max_iter : int >= 0, optional
            Maximum number of steps. The default is 1200 for "sgd" and 100, which are
            rarely needed, for "gauss-newton".
        lr : float >= 0, default=1e-4
            Learning rate of "sgd". The gradient grows with the square of the matrices.
        batch_size : int >= 1, default=100
            Number ``n`` of matrices per step of "sgd"; all if there are fewer.
        generator : torch.Generator, optional
            Generator on the CPU, for the batches of "sgd". The default has the seed 0.

        Returns
        -------
        LDMinv
            This object, with `history_`. If training diverges, it warns and keeps the
            best coefficients.
        """
        check_matrix(matrices, "matrices")
        if solver not in MAX_ITER:
            raise ValueError(f"solver={solver!r}: it must be 'gauss-newton' or 'sgd'.")
        if max_iter is None:
            max_iter = MAX_ITER[solver]
        check_count(max_iter, "max_iter", 0)
        check_number(lr, "lr")
        check_count(batch_size, "batch_size", 1)
        with torch.no_grad():
            spectra = Spectra.of(matrices)
        start = self.coefficients.detach().to(spectra.s)
        if solver == "gauss-newton":
            best, self.history_ = fit_gauss_newton(start, spectra, max_iter)
        else:
            generator = generator or torch.Generator().manual_seed(0)
            best, self.history_ = start.clone().requires_grad_(), []
            descend(
                best,
                partial(spectra.loss, best, batch_size, generator),
                self.history_,
                max_iter,
                lr,
                halved_every=HALVED_EVERY,
                otherwise=", or take solver='gauss-newton'",
            )
        with torch.no_grad():
            self.coefficients.copy_(best)
        return self

    def extra_repr(self) -> str:
        """The sizes, for torch's ``repr``.

        Returns
        -------
        str
        """
        return f"order={self.order}, depth={self.depth}"
