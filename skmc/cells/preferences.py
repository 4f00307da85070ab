"""Counts as cells of a weighted least-squares problem."""

from __future__ import annotations

from dataclasses import replace

from skmc.cells.sparse_observed import SparseObserved


def preferences(data: SparseObserved, alpha: float) -> SparseObserved:
    """Targets and weights that turn the loss of counts into least squares.

    ``(1 + a) (x - 1)^2 = x^2 + a (x - 1 - 1 / a)^2 + constant`` with ``a = alpha r``,
    and `ALS` adds the ``x^2`` of all cells.
    """
    if (data.values < 0).any():
        raise ValueError(
            f"Negative values in data passed to X, such as {float(data.values.min())}; "
            "with alpha, cells are counts >= 0. Leave negative cells out, or set "
            "alpha=None."
        )
    data = data.only(data.values > 0)
    a = data.weighted(float(alpha or 1.0) * data.values)
    return replace(data, values=1 + 1 / a, weights=a)
