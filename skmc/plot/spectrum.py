"""Singular values of matrices, and of a completion during its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skmc.cells import Container
from skmc.loop import TITLE, matrix_of
from skmc.plot.panels import axes_for, pyplot, read_truth

ROUNDING_SHARE_OF_MAX = 1e-7  # singular values below this are rounding errors


@dataclass(eq=False, repr=False)
class SpectrumDisplay:
    """Singular values of matrices, and those of a completion during its fit.

    Parameters
    ----------
    spectra : mapping of str to ndarray of shape (k,)
        Singular values by label, largest first.
    n_iter : int ndarray of shape (n_checks,) or None, default=None
        Iterations at which ``history`` was recorded.
    history : ndarray of shape (n_checks, n_values) or None, default=None
        The largest singular values at these iterations.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (1,) or (2,)
        The Axes of the spectra and, if there is a history, the Axes of the history.
    lines_ : dict of str to matplotlib Line2D
        Line of each spectrum, by its label.

    See Also
    --------
    skmc.loop.SpectrumRecorder : Records singular values during a fit.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.loop import SpectrumRecorder
    >>> from skmc.plot import SpectrumDisplay
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    >>> X[4, 5] = np.nan
    >>> air = AIRCompleter(max_iter=100, random_state=0)
    >>> air = air.set_callbacks(SpectrumRecorder()).fit(X)
    >>> SpectrumDisplay.from_estimator(air).axes_.shape
    (2,)
    """

    spectra: Mapping[str, np.ndarray]
    _: KW_ONLY
    n_iter: np.ndarray | None = None
    history: np.ndarray | None = None

    @classmethod
    def from_matrices(
        cls, matrices: Mapping[str, ArrayLike], **params: Any
    ) -> SpectrumDisplay:
        """Draw the singular values of matrices.

        Parameters
        ----------
        matrices : mapping of str to array-like of shape (n_rows, n_cols)
            Matrices by label.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        SpectrumDisplay
            The display, drawn.
        """
        spectra = {label: _singular_values(X) for label, X in matrices.items()}
        return cls(spectra).plot(**params)

    @classmethod
    def from_estimator(
        cls, estimator: object, *, truth: Container | None = None, **params: Any
    ) -> SpectrumDisplay:
        """Draw the singular values of a fitted completer or sensing regressor.

        Parameters
        ----------
        estimator : fitted estimator
            Estimator with ``reconstruction_`` or ``matrix_``, which is decomposed
            densely. If a `skmc.loop.SpectrumRecorder` has recorded singular values in
            its history, they are drawn over the iterations.
        truth : container of the matrix's shape, optional
            The truth, without missing cells.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        SpectrumDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no matrix, or if the truth has missing cells, another
            shape or other column names.
        """
        matrix = matrix_of(estimator)
        spectra = {"completed": _singular_values(matrix)}
        if truth is not None:
            names = getattr(estimator, "feature_names_in_", None)
            truth = read_truth(truth, matrix.shape, names)
            if np.isnan(truth).any():
                raise ValueError(
                    "truth has missing cells, so it has no singular values; leave it "
                    "out."
                )
            spectra["truth"] = _singular_values(truth)
        history = getattr(estimator, "history_", {})
        values = history.get(TITLE)
        n_iter = None if values is None else history["n_iter"]
        return cls(spectra, n_iter=n_iter, history=values).plot(**params)

    def plot(self, *, ax: Any = None) -> SpectrumDisplay:
        """Draw the singular values on a logarithmic scale.

        Values below 1e-7 of the largest are rounding errors and are left out.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of two, default=None
            Axes of the spectra and of their history during the fit. A single Axes
            shows only the spectra. None makes a figure.

        Returns
        -------
        SpectrumDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are two Axes but no history for the second.
        """
        recorded = self.history is not None
        single = ax is not None and np.size(ax) == 1
        self.figure_, self.axes_ = axes_for(
            ax, 1 + (recorded and not single), 4.6, 0.75
        )
        first, *others = self.axes_
        self.lines_: dict[str, Any] = {}
        for label, values in self.spectra.items():
            values = values[values > ROUNDING_SHARE_OF_MAX * values[0]]
            (self.lines_[label],) = first.semilogy(
                np.arange(1, len(values) + 1),
                values,
                marker="." if len(values) <= 40 else None,
                label=label,
            )
        first.set(xlabel="index", ylabel="singular value")
        first.locator_params(axis="x", integer=True)
        first.legend()
        for axis in others:
            self._plot_history(axis, np.asarray(self.history))
        return self

    def _plot_history(self, axis: Any, history: np.ndarray) -> None:
        n_values = history.shape[1]
        shades = pyplot().get_cmap("viridis")
        floor = ROUNDING_SHARE_OF_MAX * history.max()
        values = np.where(history > floor, history, np.nan)
        for k, column in enumerate(values.T):
            axis.semilogy(
                self.n_iter,
                column,
                color=shades(0.9 * k / max(n_values - 1, 1)),
                label=f"{k + 1}" if k in (0, n_values - 1) else None,
            )
        axis.set(xlabel="iteration", ylabel="singular value, during the fit")
        axis.legend(title="index")


def _singular_values(X: ArrayLike) -> np.ndarray:
    return np.linalg.svd(np.asarray(X, float), compute_uv=False)
