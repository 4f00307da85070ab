"""A fixed number of iterations towards an inverse, by matrix products."""

from __future__ import annotations

import torch
from torch import Tensor


def unrolled(
    A: Tensor,  # (*batch, m, n)
    coefficients: Tensor,  # (depth, order)
    c0: Tensor | None = None,
) -> Tensor:  # (*batch, n, m)
    """Compute all layers with ``(depth, order)`` coefficients, without validation."""
    if A.shape[-2] > A.shape[-1]:
        return unrolled(A.mT, coefficients, c0).mT
    # The map is equivariant to scale, so derivatives need not include the unit.
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


def norm_bound(
    gram: Tensor,  # (*batch, n, n)
) -> Tensor:  # (*batch, 1, 1)
    """Bound of the spectral norm of symmetric matrices; one where they are zero."""
    rows = gram.abs().sum(-1).amax(-1)
    bound = torch.minimum(rows, torch.linalg.vector_norm(gram, dim=(-2, -1)))
    return torch.where(bound > 0, bound, 1)


def polynomial(
    coefficients: Tensor,  # (order,)
    E: Tensor,  # (*batch, n, n)
    eye: Tensor,  # (n, n)
) -> Tensor:  # (*batch, n, n)
    """``sum_l coefficients_l E^l`` in about ``2 sqrt(L)`` products.

    Horner's rule is applied to blocks of ``sqrt(L)`` terms, which need only the first
    powers (Paterson and Stockmeyer 1973).
    """
    size = round(len(coefficients) ** 0.5)
    powers = [eye, E]
    while len(powers) <= size:
        powers.append(powers[-1] @ E)
    *blocks, last = coefficients.split(size)
    # The last block may be a number, which needs no product.
    result = last[0] if len(last) == 1 else combined(last, powers)
    for block in reversed(blocks):
        high = result * powers[size] if result.ndim == 0 else result @ powers[size]
        result = combined(block, powers) + high
    return result


def combined(
    coefficients: Tensor,  # (k,)
    powers: list[Tensor],
) -> Tensor:  # (*batch, n, n)
    """A linear combination of the first powers."""
    result = coefficients[0] * powers[0]
    for c, power in zip(coefficients[1:], powers[1:], strict=False):
        result = result + c * power
    return result
