"""Which cells of a table are missing, and which columns are missing together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from skmc.plot.panels import add_colorbar, axes_for, label_axes, names_to_draw
from skmc.tables import as_table, marks_of_columns, missing_cells

MOST_ROWS = 1000  # of the drawing; further rows share one


@dataclass(eq=False, repr=False)
class MissingnessDisplay:
    r"""The missing cells of a table, and the correlations between columns.

    The first panel shows the missing cells in black. The second one shows, for each two
    columns with missing cells, the correlation of the indicators of these cells: 1 if
    both are missing in the same rows, -1 if exactly one of them is missing in each row,
    and near 0 if they are missing independently.

    Parameters
    ----------
    missing : bool ndarray of shape (n_rows, n_cols)
        True where a cell is missing.
    feature_names : sequence or None, default=None
        Labels of the columns, drawn if there are at most 25.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (1,) or (2,)
        Axes of each panel. There is no second one if fewer than two columns have both
        missing and observed cells.
    images_ : dict of str to matplotlib AxesImage
        Images "missing" and "correlation".

    See Also
    --------
    skmc.uncertainty.little_test : Tests whether cells are missing completely at random.
    CompletionDisplay : The completed cells.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc.plot import MissingnessDisplay
    >>> X = np.ones((6, 3))
    >>> X[:2, 0] = X[:2, 2] = np.nan
    >>> display = MissingnessDisplay.from_matrix(X)
    >>> display.images_["correlation"].get_array().data.round(2)
    array([[1., 1.],
           [1., 1.]])
    """

    missing: np.ndarray
    _: KW_ONLY
    feature_names: Sequence[Any] | None = None

    @classmethod
    def from_matrix(
        cls, X: Any, *, missing_values: Any = np.nan, **params: Any
    ) -> MissingnessDisplay:
        """Draw the missing cells of a matrix or a table.

        Parameters
        ----------
        X : DataFrame, or container as for completers, of shape (n_rows, n_cols)
            Table with columns of any type.
        missing_values : object or sequence of objects, default=numpy.nan
            Values that mark missing cells, in addition to NaN, None and pandas' NA.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        MissingnessDisplay
            The display, drawn.
        """
        X = as_table(X)
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        missing = missing_cells(X, marks_of_columns(missing_values))
        return cls(missing, feature_names=names).plot(**params)

    def plot(self, *, ax: Any = None, colorbar: bool = True) -> MissingnessDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each panel, default=None
            Axes of the panels; None makes a figure. A single Axes shows only the
            missing cells.
        colorbar : bool, default=True
            Whether to draw a color bar of the correlations.

        Returns
        -------
        MissingnessDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are two Axes, but no two columns for the second.
        """
        missing, n_cols = self.missing, self.missing.shape[1]
        share = missing.mean(0)
        some = np.flatnonzero((share > 0) & (share < 1))
        single = (ax is not None and np.size(ax) == 1) or len(some) < 2
        names, below = names_to_draw(self.feature_names, n_cols)
        self.figure_, self.axes_ = axes_for(
            ax, 1 if single else 2, 4.0, 0.9, below=below
        )
        first, *others = self.axes_
        self.images_: dict[str, Any] = {}
        bands = np.array_split(missing, min(len(missing), MOST_ROWS))
        self.images_["missing"] = first.imshow(
            np.stack([part.mean(0) for part in bands]),
            cmap="Greys",
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="none",
            extent=(-0.5, n_cols - 0.5, len(missing) - 0.5, -0.5),
        )
        first.set_title(f"missing cells ({missing.mean():.0%})", fontsize="medium")
        label_axes(first, "column", "row")
        if names is not None:
            first.set_xticks(range(n_cols), names, rotation=90, parse_math=False)
            first.set_xlabel("")
        for axis in others:
            self._plot_correlation(axis, some, colorbar)
        return self

    def _plot_correlation(self, axis: Any, some: np.ndarray, colorbar: bool) -> None:
        correlation = np.corrcoef(self.missing[:, some].astype(float).T)
        image = axis.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
        self.images_["correlation"] = image
        axis.set_title("missing together", fontsize="medium")
        names, _ = names_to_draw(self.feature_names, len(some))
        label_axes(axis, "column with missing cells", "")
        if names is None:
            names = some.tolist() if self.feature_names is None else None
        else:
            names = [names[k] for k in some]
        if names is not None and len(some) <= 25:
            axis.set_xticks(range(len(some)), names, rotation=90, parse_math=False)
            axis.set_yticks(range(len(some)), names, parse_math=False)
            axis.set_xlabel("")
        if colorbar:
            add_colorbar(image, label="correlation")
