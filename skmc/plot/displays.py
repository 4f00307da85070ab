"""Displays of a fit, in scikit-learn's style.

They need matplotlib (``pip install skmc[plot]``). Each is made by ``from_estimator``,
or from its data, and drawn again, elsewhere or otherwise, by ``plot``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from skmc.cells import Observed, Scaling, to_cells
from skmc.loop import TITLE, matrix_of
from skmc.metrics import nmae

FLOOR = 1e-7  # below this share of the largest, a singular value is rounding
NAMED = 25  # columns at most whose names are written
UNLIKE = 3  # sides of a matrix that is stretched to be seen
MISSING = ("white", "#29ABE2", "tab:red", "tab:green")  # one is far from any colour map
LABELS = {"validation": "validation RMSE (scaled)"}
FLAT = 0.1  # of the colours


class CompletionDisplay:
    """What was observed of a matrix and how it was completed, side by side.

    With the truth, that and the error are drawn as well. All but the error share one
    scale of colours, from the least to the largest observed (or true) value.

    Parameters
    ----------
    observed : ndarray of shape (n_rows, n_cols)
        NaN where a cell is missing.
    completed : ndarray of shape (n_rows, n_cols)
        The completion.
    truth : ndarray of shape (n_rows, n_cols) or None, default=None
        The truth, NaN where even that is not known.
    name : str or None, default=None
        Of the method, for the title.
    feature_names : sequence of str or None, default=None
        Written at the columns, unless they are more than 25.

    Attributes
    ----------
    figure_ : matplotlib Figure
        It has the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_panels,)
        One for each panel.
    images_ : dict of str to matplotlib AxesImage
        By panel.

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

    def __init__(
        self, observed, completed, *, truth=None, name=None, feature_names=None
    ):
        self.observed = observed
        self.completed = completed
        self.truth = truth
        self.name = name
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator, X, *, truth=None, **params) -> CompletionDisplay:
        """Complete ``X`` and draw it.

        Parameters
        ----------
        estimator : fitted completer or imputer
            Its ``transform`` answers.
        X : container as in ``fit``, of shape (n_rows, n_cols)
            What is missing in it is completed.
        truth : container of X's shape, optional
            The truth.
        **params : dict
            For `plot`.

        Returns
        -------
        CompletionDisplay
            Drawn.

        Raises
        ------
        ValueError
            There is no ``transform``, or it returns a matrix of another shape; the
            truth has another shape or other names of columns.
        """
        if not hasattr(estimator, "transform"):
            raise ValueError(
                f"{type(estimator).__name__} has no transform; give a completer or an "
                "imputer."
            )
        marks = getattr(estimator, "missing_values", np.nan)
        observed = to_cells(X, missing_values=marks)
        # scikit-learn's imputers read no other containers.
        readable = hasattr(X, "columns") or type(X) is np.ndarray
        ours = hasattr(estimator, "predict_entries")
        given = X if ours or readable else observed
        completed = np.asarray(estimator.transform(given), float)
        if completed.shape != observed.shape:
            raise ValueError(
                f"transform makes a matrix of shape {completed.shape} of one of "
                f"{observed.shape}; set add_indicator=False and "
                "keep_empty_features=True."
            )
        names = getattr(estimator, "feature_names_in_", None)
        if truth is not None:
            columns = getattr(X, "columns", names)
            truth = _truth(truth, observed.shape, columns, missing_values=marks)
        name = type(estimator).__name__
        display = cls(observed, completed, truth=truth, name=name, feature_names=names)
        return display.plot(**params)

    def plot(
        self,
        *,
        ax=None,
        panels: Sequence[str] | None = None,
        cmap="viridis",
        scaling="auto",
        vmin: float | None = None,
        vmax: float | None = None,
        colorbar: bool = True,
    ) -> CompletionDisplay:
        """Draw the matrices.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each panel, default=None
            Where to draw; None makes a figure.
        panels : sequence of {"observed", "completed", "truth", "error"}, default=None
            What to draw; None is all there is. "error" is that of the completion,
            absolute; its title has the NMAE over the cells that are missing and known
            in truth.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the values; "gray" suits pictures. Missing cells have a colour
            that is far from all of them.
        scaling : {"auto", "columns"} or None, default="auto"
            With "columns" a colour stands for the deviation from the column's mean, in
            standard deviations of its observed cells, from -3 to 3. "auto" is "columns"
            where half of the columns would have less than a tenth of the colours, as in
            tables of unlike units.
        vmin, vmax : float or None, default=None
            Values of the first and last colour; None is those of the data.
        colorbar : bool, default=True
            Explain the colours.

        Returns
        -------
        CompletionDisplay
            Itself.

        Raises
        ------
        ValueError
            An unknown scaling or panel, one that needs the truth where there is none,
            no panel, or another number of Axes than of panels.
        """
        if scaling not in ("auto", "columns", None):
            raise ValueError(
                f"scaling must be 'auto', 'columns' or None, got {scaling!r}."
            )
        known = ["observed", "completed"]
        if self.truth is not None:
            known += ["truth", "error"]
        panels = list(known if panels is None else panels)
        unknown = [name for name in panels if name not in known]
        if unknown or not panels:
            raise ValueError(f"panels must be of {known}, got {unknown}.")
        shown, label = self._shown(scaling)
        limits = {"vmin": -3.0, "vmax": 3.0}
        if label is None:
            seen = [shown[name] for name in known if name in ("observed", "truth")]
            limits["vmin"] = min(np.nanmin(matrix) for matrix in seen)
            limits["vmax"] = max(np.nanmax(matrix) for matrix in seen)
        limits |= {k: v for k, v in (("vmin", vmin), ("vmax", vmax)) if v is not None}
        if limits["vmin"] == limits["vmax"]:  # or colours would differ by panel
            more = 0.1 * abs(limits["vmin"]) or 0.1
            limits = {"vmin": limits["vmin"] - more, "vmax": limits["vmax"] + more}
        n_rows, n_cols = self.observed.shape
        stretched = max(n_rows, n_cols) > UNLIKE * min(n_rows, n_cols)
        names = self.feature_names if n_cols <= NAMED else None
        room = {} if names is None else {"below": _length(names)}
        tall = 1.0 if stretched else n_rows / n_cols
        self.figure_, self.axes_ = _axes(ax, len(panels), 3.6, tall, **room)
        self.images_ = {}
        colors, titles = _with_missing(cmap), self._titles()
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
            _label(axis, "column", "row" if first else None)
            if names is not None:
                axis.set_xticks(range(n_cols), names, rotation=90, parse_math=False)
                axis.set_xlabel("")
        if colorbar:
            how = {"label": label, "extend": "both"} if label else {"label": "value"}
            for name in [k for k in panels if k != "error"][-1:]:
                _explain(self.images_[name], **how)
            if "error" in panels:
                unit = "deviations" if label else "|error|"
                _explain(self.images_["error"], label=unit)
        return self

    def _shown(self, how: str | None) -> tuple[dict[str, np.ndarray], str | None]:
        """The matrices as they are drawn, and the unit unless it is their own."""
        shown = {"observed": self.observed, "completed": self.completed}
        if self.truth is not None:
            shown["truth"] = self.truth
        shift, scale = np.zeros(1), np.ones(1)
        label = None
        if how == "auto":
            observed = np.ma.masked_invalid(self.observed)
            span = np.ma.median(np.ma.ptp(observed, axis=0))
            flat = len(observed) > 1 and span < FLAT * np.ma.ptp(observed)
            how = "columns" if flat else None
        if how == "columns":
            values = torch.as_tensor(np.array(self.observed, float))
            found = Scaling.of(Observed(values, ~torch.isnan(values)), how)
            shift, scale = found.shift.numpy()[0], found.scale.numpy()[0]
            label = "deviations from the mean"
        scale = np.where(scale > 0, scale, 1.0)
        shown = {name: (M - shift) / scale for name, M in shown.items()}
        if self.truth is not None:
            shown["error"] = np.abs(shown["completed"] - shown["truth"])
        return shown, label

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


class LaplacianDisplay:
    """The similarities in graph Laplacians, learned or given, one panel for each.

    Drawn is the adjacency ``A``, minus the Laplacian off its diagonal: dark where two
    items are alike.

    Parameters
    ----------
    laplacians : mapping of str to ndarray of shape (k, k)
        What the items are ("rows", "columns", "blocks8") -> the Laplacian.
    feature_names : sequence of str or None, default=None
        Written at the similarities of columns, unless they are more than 25.

    Attributes
    ----------
    figure_ : matplotlib Figure
        It has the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_laplacians,)
        One for each Laplacian.
    images_ : dict of str to matplotlib AxesImage
        By what the items are.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.plot import LaplacianDisplay
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    >>> X[4, 5] = np.nan
    >>> air = AIRCompleter(max_iter=100, random_state=0).fit(X)
    >>> list(LaplacianDisplay.from_estimator(air).images_)
    ['rows', 'columns']
    """

    def __init__(self, laplacians: Mapping[str, np.ndarray], *, feature_names=None):
        self.laplacians = laplacians
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator, **params) -> LaplacianDisplay:
        """Draw the Laplacians of a fitted completer.

        Parameters
        ----------
        estimator : AIRCompleter, DMFCompleter with "dirichlet", or NCARLCompleter
            Fitted. Others work that have ``laplacians_``, or ``laplacian_`` and
            ``laplacian_axis_``.
        **params : dict
            For `plot`.

        Returns
        -------
        LaplacianDisplay
            Drawn.

        Raises
        ------
        ValueError
            The estimator has no Laplacian.
        """
        laplacians = getattr(estimator, "laplacians_", {})
        if hasattr(estimator, "laplacian_"):
            laplacians = {estimator.laplacian_axis_: estimator.laplacian_}
        if not laplacians:
            raise ValueError(
                f"{type(estimator).__name__} has no Laplacian. AIRCompleter, "
                "DMFCompleter(regularizer='dirichlet') and NCARLCompleter have, once "
                "they are fitted."
            )
        names = getattr(estimator, "feature_names_in_", None)
        return cls(laplacians, feature_names=names).plot(**params)

    def plot(
        self,
        *,
        ax=None,
        order: Mapping[str, np.ndarray] | None = None,
        cmap="Greys",
        colorbar: bool = True,
    ) -> LaplacianDisplay:
        """Draw the similarities.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each Laplacian, default=None
            Where to draw; None makes a figure.
        order : mapping of str to int ndarray of shape (k,), default=None
            What the items are -> the order in which to draw them: groups that follow
            each other are seen as squares. None is the order of the matrix.
        cmap : str or matplotlib Colormap, default="Greys"
            Colours from no similarity to that which one pair in a hundred exceeds.
        colorbar : bool, default=True
            Explain the colours.

        Returns
        -------
        LaplacianDisplay
            Itself.

        Raises
        ------
        ValueError
            Another number of Axes than of Laplacians, or an order of items that there
            are not.
        """
        order = order or {}
        if unknown := set(order) - set(self.laplacians):
            raise ValueError(
                f"order names {sorted(unknown)}, but the Laplacians are of "
                f"{list(self.laplacians)}."
            )
        named = len(self.laplacians.get("columns", ())) <= NAMED
        columns = self.feature_names if named else None
        room = {} if columns is None else {"aside": _length(columns)}
        self.figure_, self.axes_ = _axes(ax, len(self.laplacians), 3.6, 1.0, **room)
        self.images_ = {}
        for axis, (name, L) in zip(self.axes_, self.laplacians.items(), strict=True):
            A, names = np.array(-L, dtype=float), columns if name == "columns" else None
            np.fill_diagonal(A, 0)
            if name in order:
                A = A[np.ix_(order[name], order[name])]
                names = None if names is None else np.asarray(names)[order[name]]
            # A few strong pairs would leave all others white.
            most = np.quantile(A[A > 0], 0.99) if (A > 0).any() else 1.0
            self.images_[name] = axis.imshow(A, cmap=cmap, vmin=0, vmax=most)
            axis.set_title(f"similar {name}", fontsize="medium")
            _label(axis, name, name)
            if names is not None:
                axis.set_yticks(range(len(names)), names, parse_math=False)
                axis.set(ylabel="", xticks=[])
            if colorbar:
                _explain(self.images_[name], label="similarity", extend="max")
        return self


class SpectrumDisplay:
    """Singular values of matrices; those of the completion during the fit, too.

    Parameters
    ----------
    spectra : mapping of str to ndarray of shape (k,)
        Label -> singular values, largest first.
    n_iter : int ndarray of shape (n_checks,) or None, default=None
        Iterations at which ``history`` was recorded.
    history : ndarray of shape (n_checks, n_values) or None, default=None
        The largest singular values at these iterations.

    Attributes
    ----------
    figure_ : matplotlib Figure
        It has the panels.
    axes_ : ndarray of matplotlib Axes, shape (1,) or (2,)
        Of the spectra and, if there is a history, of that.
    lines_ : dict of str to matplotlib Line2D
        The spectra by their labels.

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

    def __init__(
        self,
        spectra: Mapping[str, np.ndarray],
        *,
        n_iter: np.ndarray | None = None,
        history: np.ndarray | None = None,
    ):
        self.spectra = spectra
        self.n_iter = n_iter
        self.history = history

    @classmethod
    def from_matrices(
        cls, matrices: Mapping[str, np.ndarray], **params
    ) -> SpectrumDisplay:
        """Draw the singular values of matrices.

        Parameters
        ----------
        matrices : mapping of str to ndarray
            Label -> matrix.
        **params : dict
            For `plot`.

        Returns
        -------
        SpectrumDisplay
            Drawn.
        """
        spectra = {label: _singular_values(X) for label, X in matrices.items()}
        return cls(spectra).plot(**params)

    @classmethod
    def from_estimator(cls, estimator, *, truth=None, **params) -> SpectrumDisplay:
        """Draw those of a fitted completer or sensing regressor.

        Parameters
        ----------
        estimator : fitted estimator
            With ``reconstruction_`` or ``matrix_``, of which a dense decomposition is
            made. What a `skmc.loop.SpectrumRecorder` has put into its history is
            drawn over the iterations.
        truth : container of the matrix' shape, optional
            The truth, every cell of it.
        **params : dict
            For `plot`.

        Returns
        -------
        SpectrumDisplay
            Drawn.

        Raises
        ------
        ValueError
            The estimator has no matrix; the truth has missing cells, another shape, or
            other names of columns.
        """
        matrix = matrix_of(estimator)
        spectra = {"completed": _singular_values(matrix)}
        if truth is not None:
            names = getattr(estimator, "feature_names_in_", None)
            truth = _truth(truth, matrix.shape, names)
            if np.isnan(truth).any():
                raise ValueError(
                    "truth has missing cells, and so no singular values; leave it out."
                )
            spectra["truth"] = _singular_values(truth)
        history = getattr(estimator, "history_", {})
        values = history.get(TITLE)
        n_iter = None if values is None else history["n_iter"]
        return cls(spectra, n_iter=n_iter, history=values).plot(**params)

    def plot(self, *, ax=None) -> SpectrumDisplay:
        """Draw the singular values on a logarithmic scale.

        Values below 1e-7 of the largest are rounding, and left out.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of two, default=None
            Where to draw the spectra, and what happened during the fit; with one Axes
            that is left out. None makes a figure.

        Returns
        -------
        SpectrumDisplay
            Itself.

        Raises
        ------
        ValueError
            Two Axes, and no history for the second.
        """
        recorded = self.history is not None
        single = ax is not None and np.size(ax) == 1
        self.figure_, self.axes_ = _axes(ax, 1 + (recorded and not single), 4.6, 0.75)
        first, *others = self.axes_
        self.lines_ = {}
        for label, values in self.spectra.items():
            values = values[values > FLOOR * values[0]]
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
        shades = _pyplot().get_cmap("viridis")
        values = np.where(history > FLOOR * history.max(), history, np.nan)
        for k, column in enumerate(values.T):
            axis.semilogy(
                self.n_iter,
                column,
                color=shades(0.9 * k / max(n_values - 1, 1)),
                label=f"{k + 1}" if k in (0, n_values - 1) else None,
            )
        axis.set(xlabel="iteration", ylabel="singular value, during the fit")
        axis.legend(title="index")


class HistoryDisplay:
    """How a fit went: what ``history_`` has, over the iterations.

    Parameters
    ----------
    history : mapping of str to ndarray
        As in ``history_``: "n_iter" and what was recorded there.
    status : str or None, default=None
        How the fit ended.
    tol : float or None, default=None
        Where the residual has converged.
    name : str or None, default=None
        Of the estimator, for the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
        It has the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_keys,)
        One for each key.
    lines_ : dict of str to matplotlib Line2D
        By key.

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

    def __init__(
        self,
        history: Mapping[str, np.ndarray],
        *,
        status: str | None = None,
        tol: float | None = None,
        name: str | None = None,
    ):
        self.history = history
        self.status = status
        self.tol = tol
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, **params) -> HistoryDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            With ``history_``.
        **params : dict
            For `plot`.

        Returns
        -------
        HistoryDisplay
            Drawn.

        Raises
        ------
        ValueError
            The estimator has no history.
        NotFittedError
            It is not fitted.
        """
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        history = getattr(estimator, "history_", {})
        if not len(history.get("n_iter", ())):
            raise ValueError(
                f"{type(estimator).__name__} has no history; give an estimator that "
                "is fitted by iterations."
            )
        display = cls(
            history,
            status=getattr(estimator, "status_", None),
            tol=getattr(estimator, "tol", None),
            name=type(estimator).__name__,
        )
        return display.plot(**params)

    def plot(
        self, *, ax=None, keys: Sequence[str] | None = None, name: str | None = None
    ) -> HistoryDisplay:
        """Draw one panel for each key, logarithmic from a factor of ten on.

        A dotted line is where the fit ended, a dashed one where its residual has
        converged (``tol``), and a circle the lowest error on held-out cells, whose
        iterate was kept.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, one for each key, default=None
            Where to draw; None makes a figure. Those of another display compare fits.
        keys : sequence of str, default=None
            Of the history; None is all that are one number at each check.
        name : str or None, default=None
            For the legend, instead of the estimator's.

        Returns
        -------
        HistoryDisplay
            Itself.

        Raises
        ------
        ValueError
            A key that there is not, or another number of Axes than of keys.
        """
        steps = self.history["n_iter"]
        known = [k for k, v in self.history.items() if k != "n_iter" and v.ndim == 1]
        keys = list(known if keys is None else keys)
        unknown = [key for key in keys if key not in known]
        if unknown or not keys:
            raise ValueError(f"keys must be of {known}, got {unknown}.")
        self.figure_, self.axes_ = _axes(ax, len(keys), 3.8, 0.8)
        self.lines_ = {}
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


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib: pip install 'skmc[plot]'."
        ) from error
    return plt


def _axes(
    ax: Any,
    n_panels: int,
    width: float,
    tall: float,
    *,
    below: float = 0.0,
    aside: float = 0.0,
) -> tuple[Any, np.ndarray]:
    """The figure and the Axes of the panels: those given, or new ones in a row.

    There is room below the panels and at the side, in inches.
    """
    plt = _pyplot()
    if ax is None:
        figure, axes = plt.subplots(
            1,
            n_panels,
            figsize=(width * n_panels + aside, width * tall + below),
            squeeze=False,
            layout="compressed",
        )
        return figure, axes[0]
    axes = np.atleast_1d(np.asarray(ax, object)).ravel()
    for axis in axes:
        if not hasattr(axis, "imshow"):
            raise ValueError(f"ax must be of matplotlib Axes, got {axis!r}.")
    if len(axes) != n_panels:
        raise ValueError(f"ax holds {len(axes)} Axes for {n_panels} panels.")
    return axes[0].figure, axes


def _truth(truth: Any, shape: tuple, names: Any, **params: Any) -> np.ndarray:
    """The cells of the truth, each of which is one of the matrix."""
    cells = to_cells(truth, name="truth", **params)
    if cells.shape != tuple(shape):
        raise ValueError(
            f"truth has shape {cells.shape}, the completed matrix {tuple(shape)}; give "
            "the truth of the same rows and columns."
        )
    if names is not None and list(getattr(truth, "columns", names)) != list(names):
        raise ValueError(
            f"truth has columns {list(truth.columns)}, the completed matrix "
            f"{list(names)}; give truth in the order of the latter."
        )
    return cells


def _length(names: Sequence[str]) -> float:
    return 0.085 * max(map(len, names))


def _label(axis: Any, across: str, down: str | None) -> None:
    """Name the axes of a matrix; without ``down`` the next panel to the left does."""
    for side in (axis.xaxis, axis.yaxis):
        side.get_major_locator().set_params(integer=True)
    axis.set_xlabel(across)
    if down is None:
        axis.tick_params(labelleft=False)
    else:
        axis.set_ylabel(down)


def _explain(image: Any, **params: Any) -> None:
    """A bar of an image's colours, as high as it."""
    beside = image.axes.inset_axes((1.03, 0, 0.04, 1))
    image.figure.colorbar(image, cax=beside, **params)


def _with_missing(cmap: Any) -> Any:
    """The colour map, with a colour for missing cells that is far from all of its."""
    plt = _pyplot()
    cmap = plt.get_cmap(cmap)
    own = cmap(np.linspace(0, 1, 64))[:, None, :3]
    others = np.array([plt.matplotlib.colors.to_rgb(name) for name in MISSING])
    distance = np.linalg.norm(others - own, axis=-1).min(0)
    return cmap.with_extremes(bad=MISSING[distance.argmax()])


def _singular_values(X: Any) -> np.ndarray:
    return np.linalg.svd(np.asarray(X, float), compute_uv=False)
