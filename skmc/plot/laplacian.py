"""The similarities of rows and columns in graph Laplacians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from skmc.plot.panels import (
    add_colorbar,
    axes_for,
    label_axes,
    names_to_draw,
)

MAX_ITEMS = 5000  # of a sparse Laplacian, which is drawn as a dense picture


def _dense(name: str, L: Any) -> np.ndarray:
    """A Laplacian as an array."""
    if not sp.issparse(L):
        return np.array(L, dtype=float)
    if L.shape[0] > MAX_ITEMS:
        raise ValueError(
            f"The Laplacian of {L.shape[0]} {name} is sparse and too large to draw; "
            "pass the others, or a part of it, to LaplacianDisplay."
        )
    return L.toarray().astype(float)


@dataclass(eq=False, repr=False)
class LaplacianDisplay:
    """The similarities in graph Laplacians, learned or given, one panel for each.

    Each panel shows the adjacency matrix ``A``: the negative Laplacian off its
    diagonal. It is dark where two items are similar.

    Parameters
    ----------
    laplacians : mapping of str to ndarray or sparse array of shape (k, k)
        Laplacian of each kind of items ("rows", "columns", "blocks8").
    feature_names : sequence of str or None, default=None
        Labels of the columns, drawn if there are at most 25.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_laplacians,)
        Axes of each Laplacian.
    images_ : dict of str to matplotlib AxesImage
        Image of each Laplacian, by the kind of its items.

    See Also
    --------
    skmc.AIRCompleter : Learns Laplacians.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.plot import LaplacianDisplay
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    >>> X[4, 5] = np.nan
    >>> air = AIRCompleter(0.25, 0.25, max_iter=100, random_state=0).fit(X)
    >>> list(LaplacianDisplay.from_estimator(air).images_)
    ['rows', 'columns']
    """

    laplacians: Mapping[str, np.ndarray]
    _: KW_ONLY
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, **params: Any) -> LaplacianDisplay:
        """Draw the Laplacians of a fitted completer.

        Parameters
        ----------
        estimator : AIRCompleter, DMFCompleter with "dirichlet", or NCARLCompleter
            Fitted completer. Any other one with ``laplacians_``, or with ``laplacian_``
            and ``laplacian_axis_``, works too.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        LaplacianDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no Laplacian.
        """
        laplacians = getattr(estimator, "laplacians_", {})
        if hasattr(estimator, "laplacian_"):
            laplacians = {estimator.laplacian_axis_: estimator.laplacian_}
        if not laplacians:
            raise ValueError(
                f"{type(estimator).__name__} has no Laplacian. AIRCompleter, "
                "DMFCompleter(regularizer='dirichlet') and NCARLCompleter have one "
                "after fit."
            )
        names = getattr(estimator, "feature_names_in_", None)
        return cls(laplacians, feature_names=names).plot(**params)

    def plot(
        self,
        *,
        ax: Any = None,
        order: Mapping[str, np.ndarray] | None = None,
        cmap: Any = "Greys",
        colorbar: bool = True,
    ) -> LaplacianDisplay:
        """Draw the similarities.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each Laplacian, default=None
            Axes of the panels; None makes a figure.
        order : mapping of str to int ndarray of shape (k,), default=None
            Order in which to draw each kind of items. Items of a
            group drawn next to each other appear as a square. None keeps the order of
            the matrix.
        cmap : str or matplotlib Colormap, default="Greys"
            Colors from zero to the similarity that one pair in a hundred exceeds.
        colorbar : bool, default=True
            Whether to draw color bars.

        Returns
        -------
        LaplacianDisplay
            The display itself.

        Raises
        ------
        ValueError
            If the number of Axes differs from the number of Laplacians, if ``order``
            names unknown items, or if a sparse Laplacian has more than 5000 items.
        """
        order = order or {}
        if unknown := set(order) - set(self.laplacians):
            raise ValueError(
                f"order names {sorted(unknown)}, but the Laplacians are of "
                f"{list(self.laplacians)}."
            )
        n_columns = getattr(self.laplacians.get("columns"), "shape", (0,))[0]
        columns, aside = names_to_draw(self.feature_names, n_columns)
        n_panels = len(self.laplacians)
        self.figure_, self.axes_ = axes_for(ax, n_panels, 3.6, 1.0, aside=aside)
        self.images_: dict[str, Any] = {}
        for axis, (name, L) in zip(self.axes_, self.laplacians.items(), strict=True):
            A, names = -_dense(name, L), columns if name == "columns" else None
            np.fill_diagonal(A, 0)
            if name in order:
                A = A[np.ix_(order[name], order[name])]
                names = None if names is None else [names[k] for k in order[name]]
            # Otherwise a few strong pairs would make all others white.
            most = np.quantile(A[A > 0], 0.99) if (A > 0).any() else 1.0
            self.images_[name] = axis.imshow(A, cmap=cmap, vmin=0, vmax=most)
            axis.set_title(f"similar {name}", fontsize="medium")
            label_axes(axis, name, name)
            if names is not None:
                axis.set_yticks(range(len(names)), names, parse_math=False)
                axis.set(ylabel="", xticks=[])
            if colorbar:
                add_colorbar(self.images_[name], label="similarity", extend="max")
        return self
