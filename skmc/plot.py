"""Pictures of what a fit has learned. Needs matplotlib (``pip install skmc[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

FLOOR = 1e-7  # below this share of the largest, a singular value is rounding


def draw_similarities(L: np.ndarray, ax: Any, *, order: np.ndarray | None = None):
    """The adjacency of a Laplacian, dark where two items are alike.

    Parameters
    ----------
    L : ndarray of shape (k, k)
        One of ``laplacians_``.
    ax : matplotlib Axes
    order : int ndarray of shape (k,), optional
        Items in the order in which to draw them.

    Returns
    -------
    matplotlib AxesImage
    """
    A = np.array(-L, dtype=float)
    np.fill_diagonal(A, 0)
    if order is not None:
        A = A[np.ix_(order, order)]
    ax.set_axis_off()
    # A few strong pairs would leave all others white.
    return ax.imshow(A, cmap="Greys", vmin=0, vmax=np.quantile(A, 0.99) or None)


def draw_spectra(matrices: Mapping[str, np.ndarray], ax: Any) -> None:
    """Singular values of matrices, largest first, on a logarithmic scale.

    Parameters
    ----------
    matrices : mapping of str to ndarray
        Label -> matrix.
    ax : matplotlib Axes
    """
    for label, X in matrices.items():
        values = np.linalg.svd(X, compute_uv=False)
        values = values[values > FLOOR * values[0]]
        ax.semilogy(np.arange(1, len(values) + 1), values, label=label)
    ax.set_xlabel("index")
    ax.set_title("singular values")
    ax.legend()
