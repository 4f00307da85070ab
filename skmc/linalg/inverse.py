"""Inverse and pseudo-inverse by matrix products alone: fixed, and learned."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real

import torch
from torch import Tensor, nn

from skmc.linalg.gauss_newton import GaussNewton, NormalEquations

MAX_ITER = {"gauss-newton": 100, "sgd": 1200}
HALVED_EVERY = 300  # steps of stochastic gradient descent
# Of Gauss and Newton's method.
MARGIN = 0.1  # unseen values of t this far beyond those seen shall do no harm
MOST = 4096  # values of t
RIDGE = 1e-8  # keeps coefficients below some thousands: single precision
ROUNDING = 1e-28  # relative squared errors below which none is better than another
TRIALS = 20  # of a damping
TOL = 1e-3  # gain of a step, in the sum of logarithms, that ends it


def d_minv(
    A: Tensor, order: int = 4, depth: int = 8, *, c0: float | Tensor | None = None
) -> Tensor:
    r"""The pseudo-inverse of ``A`` after ``depth`` steps of order ``order``: D-Minv.

        X_0 = A' / c0,    X_(k+1) = X_k (I + E_k + ... + E_k^(L-1)),  E_k = I - A X_k

    ``A X_k`` has the eigenvalues ``1 - (1 - s^2 / c0)^(L^k)`` for the singular values
    ``s > 0`` of ``A``, hence ``|A A^+ - A X_k| = e_0^(L^k)`` in the spectral norm with
    ``e_0 = max |1 - s^2 / c0|``. A value ``s`` needs ``L^k`` well above ``c0 / s^2``:
    each further step reaches values smaller by ``sqrt(L)``. Rows and columns of ``X_k``
    lie in the spaces of those of ``A^+`` from the start. So ``A`` may be rectangular or
    singular; singular values which ``depth`` does not reach count as zero.

    Everything is differentiable in ``A``. In directions where ``A`` is zero rounding
    grows, to about ``L^k`` units: for singular matrices in single precision take a
    ``depth`` of 6 at order 4, whose relative error is about 1e-4; that of the default
    is some 2e-3. (The default is for regular ones, to which 6 steps are too few.)

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        Real. Products are with the smaller of ``A A'`` and ``A' A``.
    order : int >= 2
        ``L``, the number of terms. A step takes about ``2 sqrt(L)`` products for them
        and two more. With one term nothing would change. The paper takes 4 or more.
    depth : int >= 1
        ``K``, the number of steps.
    c0 : float or Tensor of shape (\\*batch,), optional
        Above ``|A|_2^2 / 2``, or the iteration diverges. The default (ours) is the
        smaller of ``|A A'|_inf`` and ``|A A'|_F``, both at least ``|A|_2^2`` and free,
        since the first step needs the product.

    Returns
    -------
    Tensor of shape (\\*batch, n, m)
        Zero for a matrix of zeros.

    Raises
    ------
    TypeError
        If ``A`` is complex or of integers.
    ValueError
        If ``A`` has fewer than two axes, no cell, or cells that are not finite; if
        ``order`` or ``depth`` is below its minimum; if ``c0`` is not positive and
        finite, or neither a number nor of shape (\\*batch,).

    References
    ----------
    Xie, Kong, Wu, Liu, Lin. Fast and differentiable matrix inverse and its extension
    to SVD, eq. 2.

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import d_minv
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
    r"""D-Minv with learned coefficients: LD-Minv.

        X_0 = A' / c0,  X_(k+1) = X_k (C_k0 I + C_k1 E_k + ... + C_k(L-1) E_k^(L-1))

    with ``E_k = I - A X_k``. Untrained (all coefficients are one) it is `d_minv`;
    `fit` adapts it to the matrices at hand, and it serves for others like them: with
    singular values in the same range, relative to ``c0``. Row and column spaces are
    exact whatever the coefficients.

    Parameters
    ----------
    order : int >= 2
        ``L``, coefficients per layer.
    depth : int >= 1
        ``K``, the number of layers.

    Attributes
    ----------
    coefficients : Parameter of shape (depth, order)
        In double precision; used in that of the matrices.
    history_ : list of float
        The loss of each step of the last `fit`.

    Notes
    -----
    Where the depth of D-Minv reaches the smallest singular value, there is nothing to
    learn. What is learned is good on the singular values of the training matrices and
    may be useless beyond them: this is no inverse for any matrix.

    References
    ----------
    Xie, Kong, Wu, Liu, Lin. Fast and differentiable matrix inverse and its extension
    to SVD, eq. 3, eq. 4 and Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from skmc.linalg import LDMinv, d_minv
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
        r"""Learn the coefficients from matrices, starting at the present ones.

        ``A X_k A - A`` has the singular values ``s (1 - t_k)`` where ``t_0 = s^2 / c0``
        and ``t_(k+1) = t_k sum_l C_kl (1 - t_k)^l``: scalars, so that training needs
        one decomposition of the matrices and no product.

        Parameters
        ----------
        matrices : Tensor of shape (\\*batch, m, n)
            What to learn from.
        solver : {"gauss-newton", "sgd"}, default="gauss-newton"
            "sgd" is the paper's: gradient descent on
            ``1 / (2 n K) sum_i sum_k |A_i X_ik A_i - A_i|_F^2``, ``n`` matrices drawn
            anew at each step, its step ``lr`` halved every 300. "gauss-newton" (ours)
            minimises ``1 / 2 sum_k log sum_i |A_i X_ik A_i - A_i|_F^2`` over all
            matrices ``i``: by the logarithm the last layers count, whose errors are
            small, and whatever the scale of the matrices nothing is to be tuned. Each
            ``t_0`` counts thrice, also 10 % smaller and larger, so that matrices a
            little unlike those seen come to no harm, and
            ``5e-9 sum (C_kl - 1)^2`` keeps coefficients fit for single precision.
        max_iter : int >= 0, optional
            Steps. The default is 1200 for "sgd" and 100, which few need, for
            "gauss-newton".
        lr : float >= 0, default=1e-4
            Of "sgd". The gradient grows with the square of the matrices.
        batch_size : int >= 1, default=100
            Of "sgd": ``n``; all matrices where there are no more.
        generator : torch.Generator, optional
            On the CPU; draws the batches of "sgd". The default has the seed 0.

        Returns
        -------
        LDMinv
            Itself, with `history_`. Should training diverge it warns and keeps the best
            coefficients.
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
            best, self.history_ = _gauss_newton(start, spectra, max_iter)
        else:
            generator = generator or torch.Generator().manual_seed(0)
            best, self.history_ = _sgd(
                start, spectra, max_iter, lr, batch_size, generator
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


def unrolled(A: Tensor, coefficients: Tensor, c0: Tensor | None = None) -> Tensor:
    """All layers, ``(depth, order)`` coefficients, without looking at the cells.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        Matrices.
    coefficients : Tensor of shape (depth, order)
        Of the layers.
    c0 : Tensor or None, default=None
        Bound of the squared norm, see `d_minv`; None makes one.

    Returns
    -------
    Tensor of shape (\\*batch, n, m)
    """
    if A.shape[-2] > A.shape[-1]:
        return unrolled(A.mT, coefficients, c0).mT
    # The map is equivariant to scale, so that the unit may be left out of derivatives.
    unit = A.detach().abs().amax((-2, -1), keepdim=True)
    unit = torch.where(unit > 0, unit, 1)
    A = A / unit
    gram = A @ A.mT
    if c0 is None:
        c0 = norm_bound(gram)[..., None, None]
    else:
        c0 = c0[..., None, None] / unit**2
    coefficients = coefficients.to(A)
    eye = torch.eye(A.shape[-2], dtype=A.dtype, device=A.device)
    X, product = A.mT / c0, gram / c0
    for k, layer in enumerate(coefficients):
        if k > 0:
            product = A @ X
        X = X @ polynomial(layer, eye - product, eye)
    return X / unit


def norm_bound(gram: Tensor) -> Tensor:
    """At least the spectral norm of symmetric matrices; one where they are zero.

    Parameters
    ----------
    gram : Tensor of shape (\\*batch, n, n)
        Symmetric.

    Returns
    -------
    Tensor of shape (\\*batch, 1, 1)
    """
    rows = gram.abs().sum(-1).amax(-1)
    bound = torch.minimum(rows, torch.linalg.vector_norm(gram, dim=(-2, -1)))
    return torch.where(bound > 0, bound, 1)


def polynomial(coefficients: Tensor, E: Tensor, eye: Tensor) -> Tensor:
    """``sum_l coefficients_l E^l`` in about ``2 sqrt(L)`` products.

    In blocks of ``sqrt(L)`` terms: Horner's rule over the blocks, whose terms need the
    first powers alone (Paterson and Stockmeyer 1973).

    Parameters
    ----------
    coefficients : Tensor of shape (order,)
        Of the powers 0, 1, 2, ...
    E : Tensor of shape (\\*batch, n, n)
        Square.
    eye : Tensor of shape (n, n)
        The identity.

    Returns
    -------
    Tensor of shape (\\*batch, n, n)
    """
    size = round(len(coefficients) ** 0.5)
    powers = [eye, E]
    while len(powers) <= size:
        powers.append(powers[-1] @ E)
    *blocks, last = coefficients.split(size)
    # The last block may be a number: no product.
    result = last[0] if len(last) == 1 else combined(last, powers)
    for block in reversed(blocks):
        high = result * powers[size] if result.ndim == 0 else result @ powers[size]
        result = combined(block, powers) + high
    return result


def combined(coefficients: Tensor, powers: list[Tensor]) -> Tensor:
    """A linear combination of the first powers.

    Parameters
    ----------
    coefficients : Tensor of shape (k,)
        At most as many as powers.
    powers : list of Tensor
        From the identity on.

    Returns
    -------
    Tensor of shape (\\*batch, n, n)
    """
    result = coefficients[0] * powers[0]
    for c, power in zip(coefficients[1:], powers[1:], strict=False):
        result = result + c * power
    return result


class Spectra:
    """Singular values of matrices ``s`` and ``t = s^2 / c0``, both ``(n, rank)``.

    Parameters
    ----------
    s : Tensor of shape (n, rank)
        Singular values.
    t : Tensor of shape (n, rank)
        Their squares over ``c0``.
    """

    def __init__(self, s: Tensor, t: Tensor):
        self.s = s
        self.t = t

    @classmethod
    def of(cls, A: Tensor) -> Spectra:
        """Those of a batch of matrices.

        Parameters
        ----------
        A : Tensor of shape (\\*batch, m, n)
            Matrices.

        Returns
        -------
        Spectra
        """
        A = A.reshape(-1, *A.shape[-2:]).double()
        if A.shape[-2] > A.shape[-1]:
            A = A.mT
        unit = A.abs().amax().clamp_min(torch.finfo(A.dtype).tiny)
        s = torch.linalg.svdvals(A / unit)
        c0 = norm_bound((A / unit) @ (A / unit).mT)
        return cls(s * unit, s**2 / c0[:, None])

    def __getitem__(self, chosen: Tensor) -> Spectra:
        return Spectra(self.s[chosen], self.t[chosen])

    def widened(self) -> Spectra:
        """With a margin around the values, of one row and of bounded size.

        Returns
        -------
        Spectra
        """
        t = torch.cat([self.t.flatten() * (1 + m) for m in (-MARGIN, 0.0, MARGIN)])
        t, order = t.sort()
        s = self.s.flatten().repeat(3)[order]
        if len(t) > MOST:
            thin = torch.linspace(0, len(t) - 1, MOST, device=t.device).round().long()
            s, t = s[thin], t[thin]
        return Spectra(s[None], t[None])

    def errors(self, coefficients: Tensor) -> Tensor:
        """``|A X_k A - A|_F^2``, mean over matrices, ``(depth,)``.

        Parameters
        ----------
        coefficients : Tensor of shape (depth, order)
            Of the layers.

        Returns
        -------
        Tensor of shape (depth,)
        """
        t, errors = self.t, []
        for layer in coefficients:
            E = 1 - t
            p = layer[-1]
            for c in layer[:-1].flip(0):
                p = p * E + c
            t = t * p
            errors.append((self.s * (1 - t)).square().sum(-1).mean())
        return torch.stack(errors)

    def normal_equations(self, coefficients: Tensor) -> tuple[Tensor, Tensor]:
        """``sum_k J_k' J_k / |r_k|^2`` and ``sum_k J_k' r_k / |r_k|^2``.

        ``r_k = s (1 - t_k)``, and ``-J_k`` are its derivatives by all coefficients.

        Parameters
        ----------
        coefficients : Tensor of shape (depth, order)
            Of the layers.

        Returns
        -------
        gram : Tensor of shape (k, k), k = depth * order
        right : Tensor of shape (k,)
        """
        depth, order = coefficients.shape
        s, t = self.s.flatten(), self.t.flatten()
        J = t.new_zeros(len(t), depth, order)
        left, right = t.new_zeros(depth * order, depth * order), t.new_zeros(1)
        count = torch.arange(1.0, order, dtype=t.dtype, device=t.device)
        floor = ROUNDING * s.square().sum()
        for k, layer in enumerate(coefficients):
            powers = (1 - t)[:, None] ** torch.arange(order, device=t.device)
            p = powers @ layer
            slope = powers[:, :-1] @ (layer[1:] * count)
            J = J * (p - t * slope)[:, None, None]
            J[:, k] = t[:, None] * powers
            t = t * p
            r = s * (1 - t)
            scaled = (J * s[:, None, None]).flatten(1)
            weight = r.square().sum() + floor
            left = left + scaled.mT @ scaled / weight
            right = right + scaled.mT @ r / weight
        return left, right


def _gauss_newton(
    start: Tensor, spectra: Spectra, max_iter: int
) -> tuple[Tensor, list[float]]:
    """Levenberg and Marquardt's method, on few values and fewer coefficients."""
    spectra = spectra.widened()
    floor = ROUNDING * spectra.s.square().sum()

    def objective(C: Tensor) -> Tensor:
        logs = (spectra.errors(C) + floor).log().sum()
        return (logs + RIDGE * (C - 1).square().sum()) / 2

    def equations_at(x: Tensor) -> NormalEquations:
        C = x.view_as(start)
        gram, right = spectra.normal_equations(C)
        gram = gram + RIDGE * torch.eye(C.numel(), dtype=C.dtype, device=C.device)
        right = right - RIDGE * (C - 1).flatten()
        return NormalEquations(objective(C)[None], gram[None], right[None])

    x = start.flatten()[None]
    history = [float(objective(start))]
    if not floor > 0:  # matrices of zeros
        return start, history
    fit = GaussNewton.start(x, equations_at(x), damping=1e-2)
    while len(history) <= max_iter:
        fit = fit.step(equations_at)
        if fit.rejected == TRIALS:
            break
        if fit.rejected == 0:
            history.append(float(fit.equations.loss))
            if history[-2] - history[-1] < TOL:
                break
    return fit.x.view_as(start), history


def _sgd(
    start: Tensor,
    spectra: Spectra,
    max_iter: int,
    lr: float,
    batch_size: int,
    generator: torch.Generator,
) -> tuple[Tensor, list[float]]:
    trial = start.clone().requires_grad_()
    n = len(spectra.s)
    track = Best(start)
    for step in range(max_iter):
        batch = spectra
        if n > batch_size:
            chosen = torch.randperm(n, generator=generator)[:batch_size]
            batch = spectra[chosen.to(spectra.s.device)]
        with torch.enable_grad():
            loss = batch.errors(trial).mean() / 2
        if not track(float(loss.detach()), trial):
            warnings.warn(
                f"Training diverged at step {step}; the best coefficients so far are "
                f"kept. Lower lr={lr:g}, or take solver='gauss-newton'.",
                RuntimeWarning,
                stacklevel=3,
            )
            return track.best, track.history
        (gradient,) = torch.autograd.grad(loss, trial)
        with torch.no_grad():
            trial -= lr * 0.5 ** (step // HALVED_EVERY) * gradient
    last = trial.detach()
    return (last if last.isfinite().all() else track.best), track.history


class Best:
    """What had the lowest loss, and all losses.

    Parameters
    ----------
    start : Tensor
        The parameters at the start.
    """

    def __init__(self, start: Tensor):
        self.best = start
        self.lowest = float("inf")
        self.history: list[float] = []

    def __call__(self, value: float, trial: Tensor) -> bool:
        """Whether the loss is finite."""
        self.history.append(value)
        if value < self.lowest:
            self.best, self.lowest = trial.detach().clone(), value
        return math.isfinite(value)


def check_matrix(A: Tensor, name: str) -> None:
    """Real floats, at least one cell, finite.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, m, n)
        Matrices.
    name : str
        What the error calls it.
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"{name} is a {type(A).__name__}; make it a torch.Tensor.")
    if not A.is_floating_point():
        raise TypeError(
            f"{name} has dtype {A.dtype}; only real floating-point matrices are "
            f"supported: call {name}.double(), or treat real and imaginary parts of a "
            f"complex matrix as [[R, -I], [I, R]]."
        )
    if A.ndim < 2 or 0 in A.shape:
        raise ValueError(
            f"{name} has shape {tuple(A.shape)}; it must be (*batch, m, n), none of "
            f"them zero."
        )
    if not A.isfinite().all():
        place = tuple((~A.isfinite()).nonzero()[0].tolist())
        raise ValueError(
            f"{name} has {A[place].item()} at {place}; remove or replace cells that "
            f"are not finite."
        )


def check_count(value: int, name: str, least: int) -> None:
    """Refuse what is no integer of at least ``least``.

    Parameters
    ----------
    value : int
        To be checked.
    name : str
        What the error calls it.
    least : int
        The least that is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}={value!r}: it must be an integer of at least {least}."
        )


def check_number(value: float, name: str) -> None:
    """Refuse what is no finite number that is at least zero.

    Parameters
    ----------
    value : float
        To be checked.
    name : str
        What the error calls it.
    """
    if not isinstance(value, Real) or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r}: it must be a finite number, at least 0.")
