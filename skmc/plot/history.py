"""The course of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skmc.parameters import listed
from skmc.plot.panels import axes_for

LABELS = {"validation": "validation RMSE (scaled)"}


@dataclass(eq=False, repr=False)
class HistoryDisplay:
    """The course of a fit: the quantities in ``history_`` over the iterations.

    Parameters
    ----------
    history : mapping of str to ndarray
        History as in ``history_``: "n_iter" and the quantities at these iterations.
    status : str or None, default=None
        Final status of the fit.
    tol : float or None, default=None
        Residual at which the fit has converged.
    name : str or None, default=None
        Name of the estimator, for the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_keys,)
        Axes of each key.
    lines_ : dict of str to matplotlib Line2D
        Line of each key.

    See Also
    --------
    SpectrumDisplay : Singular values during the fit.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.plot import HistoryDisplay
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    >>> X[4, 5] = np.nan
    >>> air = AIRCompleter(early_stopping=True, random_state=0).fit(X)
    >>> list(HistoryDisplay.from_estimator(air).lines_)
    ['objective', 'residual', 'validation']
    """

    history: Mapping[str, np.ndarray]
    _: KW_ONLY
    status: str | None = None
    tol: float | None = None
    name: str | None = None

    @classmethod
    def from_estimator(cls, estimator: object, **params: Any) -> HistoryDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Estimator with ``history_``.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        HistoryDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no history.
        NotFittedError
            If the estimator is not fitted.
        """
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        history = getattr(estimator, "history_", {})
        if not len(history.get("n_iter", ())):
            raise ValueError(
                f"{type(estimator).__name__} has no history; pass an estimator that "
                "is fitted iteratively."
            )
        display = cls(
            history,
            status=getattr(estimator, "status_", None),
            tol=getattr(estimator, "tol", None),
            name=type(estimator).__name__,
        )
        return display.plot(**params)

    def plot(
        self,
        *,
        ax: Any = None,
        keys: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> HistoryDisplay:
        """Draw one panel for each key.

        Values that are positive and vary by more than a factor of ten get a logarithmic
        scale. A dotted line marks the end of the fit. A dashed line marks ``tol``, the
        residual at which the fit has converged. A circle marks the lowest error on
        held-out cells; its iterate was kept.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each key, default=None
            Axes of the panels; None makes a figure. Pass the Axes of another display to
            compare fits.
        keys : str or sequence of str, default=None
            Keys of the history; None draws all that record a single number.
        name : str or None, default=None
            Name for the legend, instead of the estimator's.

        Returns
        -------
        HistoryDisplay
            The display itself.

        Raises
        ------
        ValueError
            If a key is not in the history, or if the number of Axes differs from the
            number of keys.
        """
        steps = self.history["n_iter"]
        available = [
            k for k, v in self.history.items() if k != "n_iter" and v.ndim == 1
        ]
        keys = listed(available if keys is None else keys)
        unknown = [key for key in keys if key not in available]
        if unknown or not keys:
            raise ValueError(f"keys must be of {available}, got {unknown}.")
        self.figure_, self.axes_ = axes_for(ax, len(keys), 3.8, 0.8)
        self.lines_: dict[str, Any] = {}
        for axis, key in zip(self.axes_, keys, strict=True):
            values = np.where(np.isfinite(self.history[key]), self.history[key], np.nan)
            (line,) = axis.plot(steps, values, marker="." if len(steps) <= 20 else None)
            self.lines_[key] = line
            some = values[~np.isnan(values)]
            if len(some) and some.min() > 0 and some.max() > 10 * some.min():
                axis.set_yscale("log")
            self._mark(axis, key, values, line.get_color())
            axis.set(xlabel="iteration", ylabel=LABELS.get(key, key))
        label = self.name if name is None else name
        ended = f"{self.status} at {steps[-1]}" if self.status else ""
        self.lines_[keys[0]].set_label(": ".join(filter(None, [label, ended])))
        for axis in self.axes_:
            if axis.get_legend_handles_labels()[0]:
                axis.legend(fontsize="small")
        return self

    def _mark(self, axis: Any, key: str, values: np.ndarray, color: str) -> None:
        steps = self.history["n_iter"]
        axis.axvline(steps[-1], color=color, linestyle=":", linewidth=1)
        if key == "residual" and self.tol:
            axis.axhline(
                self.tol, color="0.5", linestyle="--", label=f"tol = {self.tol:g}"
            )
        if key == "validation" and not np.isnan(values).all():
            best = int(np.nanargmin(values))
            axis.plot(
                steps[best],
                values[best],
                "o",
                markersize=10,
                markerfacecolor="none",
                color=color,
                label=f"kept: {values[best]:.3g} at {steps[best]}",
            )
