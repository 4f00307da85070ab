"""A matrix before and after its completion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np

from skmc.cells import Container, in_order, labels_of, to_cells
from skmc.metrics import nmae
from skmc.parameters import listed
from skmc.plot.panels import (
    add_colorbar,
    axes_for,
    label_axes,
    names_to_draw,
    read_truth,
    with_missing_color,
)

MAX_TRUE_ASPECT = 3  # a longer matrix is stretched to fill its panel
FLAT_SHARE_OF_COLORS = 0.1


@dataclass(eq=False, repr=False)
class CompletionDisplay:
    """The observed cells of a matrix and its completion, side by side.

    If the truth is given, it is drawn too, with the error of the completion. All panels
    except the error share one color scale, from the smallest to the largest observed
    (or true) value.

    Parameters
    ----------
    observed : ndarray of shape (n_rows, n_cols)
        Observed cells, NaN where missing.
    completed : ndarray of shape (n_rows, n_cols)
        The completion.
    truth : ndarray of shape (n_rows, n_cols) or None, default=None
        Truth, NaN where unknown.
    name : str or None, default=None
        Name of the method, for the title.
    feature_names : sequence of str or None, default=None
        Labels of the columns, drawn if there are at most 25.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_panels,)
        Axes of each panel.
    images_ : dict of str to matplotlib AxesImage
        Image of each panel, by name.

    See Also
    --------
    HistoryDisplay : The course of the fit.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import AIRCompleter, patterns
    >>> from skmc.plot import CompletionDisplay
    >>> truth = np.cos(np.add.outer(np.arange(30), np.arange(30)) / 10)
    >>> hidden = patterns.random(truth, 0.3, random_state=0)
    >>> X = np.ma.masked_array(truth, hidden)
    >>> air = AIRCompleter(random_state=0).fit(X)
    >>> display = CompletionDisplay.from_estimator(air, X, truth=truth, cmap="gray")
    >>> list(display.images_)
    ['observed', 'completed', 'truth', 'error']
    """

    observed: np.ndarray
    completed: np.ndarray
    _: KW_ONLY
    truth: np.ndarray | None = None
    name: str | None = None
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: Container,
        *,
        truth: Container | None = None,
        **params: Any,
    ) -> CompletionDisplay:
        """Complete ``X`` and draw it.

        Parameters
        ----------
        estimator : fitted completer or imputer
            Estimator whose ``transform`` completes ``X``.
        X : container as in ``fit``, of shape (n_rows, n_cols)
            Matrix to complete.
        truth : container of X's shape, optional
            The truth.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        CompletionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no ``transform``, if its ``transform`` changes the
            shape, or if the truth has another shape or other column names.
        """
        if not hasattr(estimator, "transform"):
            raise ValueError(
                f"{type(estimator).__name__} has no transform; pass a completer or an "
                "imputer."
            )
        given = np.ravel(getattr(estimator, "missing_values", np.nan)).tolist()
        marks: list[Any] = [mark for mark in given if isinstance(mark, Real)]
        observed = to_cells(X)
        observed = np.where(np.isin(observed, marks), np.nan, observed)
        # scikit-learn's imputers accept no other containers.
        readable = hasattr(X, "columns") or type(X) is np.ndarray
        ours = hasattr(estimator, "predict_entries")
        given = X if ours or readable else observed
        completed = np.asarray(estimator.transform(given), float)
        if completed.shape != observed.shape:
            raise ValueError(
                f"transform changes the shape from {observed.shape} to "
                f"{completed.shape}; set add_indicator=False and "
                "keep_empty_features=True."
            )
        names = getattr(estimator, "feature_names_in_", None)
        if truth is not None:
            columns = getattr(X, "columns", names)
            truth = in_order(truth, labels_of(X)[0], None, "truth")
            truth = read_truth(truth, observed.shape, columns)
            truth = np.where(np.isin(truth, marks), np.nan, truth)
        name = type(estimator).__name__
        display = cls(observed, completed, truth=truth, name=name, feature_names=names)
        return display.plot(**params)

    def plot(
        self,
        *,
        ax: Any = None,
        panels: str | Sequence[str] | None = None,
        cmap: Any = "viridis",
        scaling: str | None = "auto",
        vmin: float | None = None,
        vmax: float | None = None,
        colorbar: bool = True,
    ) -> CompletionDisplay:
        """Draw the matrices.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each panel, default=None
            Axes of the panels; None makes a figure.
        panels : str or sequence of str, default=None
            Panels to draw, of "observed", "completed", "truth" and "error"; None draws
            all that are available. "error" is the absolute error of the completion. Its
            title shows the NMAE over the missing cells with known truth.
        cmap : str or matplotlib Colormap, default="viridis"
            Colors of the values; "gray" suits pictures. Missing cells get a color that
            is far from all of them.
        scaling : {"auto", "columns"} or None, default="auto"
            With "columns", a color shows how far a value is from its column's mean, in
            standard deviations of the observed cells, from -3 to 3. "auto" chooses
            "columns" if half of the columns would otherwise use less than a tenth of
            the colors, as in tables of different units.
        vmin, vmax : float or None, default=None
            Values of the first and the last color; None takes them from the data.
        colorbar : bool, default=True
            Whether to draw color bars.

        Returns
        -------
        CompletionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If ``scaling`` or a panel is unknown, if a panel needs the truth and there
            is none, if there is no panel, or if the number of Axes differs from the
            number of panels.
        """
        if scaling not in ("auto", "columns", None):
            raise ValueError(
                f"scaling must be 'auto', 'columns' or None, got {scaling!r}."
            )
        available = ["observed", "completed"]
        if self.truth is not None:
            available += ["truth", "error"]
        panels = listed(available if panels is None else panels)
        unknown = [name for name in panels if name not in available]
        if unknown or not panels:
            raise ValueError(f"panels must be of {available}, got {unknown}.")
        shown, unit = self._shown(scaling)
        limits = {"vmin": -3.0, "vmax": 3.0}
        if unit is None:
            seen = [shown[name] for name in available if name in ("observed", "truth")]
            limits["vmin"] = min(np.nanmin(matrix) for matrix in seen)
            limits["vmax"] = max(np.nanmax(matrix) for matrix in seen)
        limits |= {k: v for k, v in (("vmin", vmin), ("vmax", vmax)) if v is not None}
        if limits["vmin"] == limits["vmax"]:  # or colors would differ by panel
            more = 0.1 * abs(limits["vmin"]) or 0.1
            limits = {"vmin": limits["vmin"] - more, "vmax": limits["vmax"] + more}
        n_rows, n_cols = self.observed.shape
        stretched = max(n_rows, n_cols) > MAX_TRUE_ASPECT * min(n_rows, n_cols)
        names, below = names_to_draw(self.feature_names, n_cols)
        aspect = 1.0 if stretched else n_rows / n_cols
        self.figure_, self.axes_ = axes_for(ax, len(panels), 3.6, aspect, below=below)
        self.images_: dict[str, Any] = {}
        colors, titles = with_missing_color(cmap), self._titles()
        for axis, name in zip(self.axes_, panels, strict=True):
            style = {"cmap": colors, **limits}
            if name == "error":
                most = np.nanmax(shown[name], initial=0)
                style = {"cmap": "magma", "vmin": 0, "vmax": most or 1}
            self.images_[name] = axis.imshow(
                shown[name], aspect="auto" if stretched else "equal", **style
            )
            axis.set_title(titles[name], fontsize="medium")
            first = axis is self.axes_[0] or ax is not None
            label_axes(axis, "column", "row" if first else None)
            if names is not None:
                axis.set_xticks(range(n_cols), names, rotation=90, parse_math=False)
                axis.set_xlabel("")
        if colorbar:
            for name in [k for k in panels if k != "error"][-1:]:
                extend = "both" if unit else "neither"
                add_colorbar(self.images_[name], label=unit or "value", extend=extend)
            if "error" in panels:
                label = "deviations" if unit else "|error|"
                add_colorbar(self.images_["error"], label=label)
        return self

    def _shown(self, how: str | None) -> tuple[dict[str, np.ndarray], str | None]:
        """The matrices as drawn, and their unit if it differs from that of the data."""
        shown = {"observed": self.observed, "completed": self.completed}
        if self.truth is not None:
            shown["truth"] = self.truth
        shift, scale, unit = np.zeros(1), np.ones(1), None
        observed = np.ma.masked_invalid(self.observed)
        if how == "auto":
            spans = np.ma.ptp(observed, axis=0)
            span = np.ma.median(spans)  # type: ignore[no-untyped-call]
            flat = span < FLAT_SHARE_OF_COLORS * np.ma.ptp(observed)
            how = "columns" if len(observed) > 1 and flat else None
        if how == "columns":
            shift, scale = observed.mean(0).filled(0.0), observed.std(0).filled(1.0)
            unit = "deviations from the mean"
        scale = np.where(scale > 0, scale, 1.0)
        shown = {name: (M - shift) / scale for name, M in shown.items()}
        if self.truth is not None:
            shown["error"] = np.abs(shown["completed"] - shown["truth"])
        return shown, unit

    def _titles(self) -> dict[str, str]:
        missing = np.isnan(self.observed)
        share = missing.mean()
        name = (self.name or "").removesuffix("Completer")
        titles = {
            "observed": f"observed ({share:.{0 if share > 0.01 else 1}%} missing)",
            "completed": f"completed by {name}" if name else "completed",
            "truth": "truth",
            "error": "|error|",
        }
        if self.truth is not None and (hidden := missing & ~np.isnan(self.truth)).any():
            titles["error"] += f", NMAE {nmae(self.completed, self.truth, hidden):.3g}"
        return titles
