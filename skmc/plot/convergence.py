"""Whether the chains of a completion by draws have converged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skmc.metrics import scale_reduction
from skmc.parameters import listed
from skmc.plot.panels import axes_for
from skmc.tables import Categorical

MAX_COLUMNS = 4  # drawn unless columns are chosen


@dataclass(eq=False, repr=False)
class ConvergenceDisplay:
    """Mean and deviation of the imputed cells of each column, over the sweeps.

    The chains of `skmc.ChainedCompleter` start from different values. They have
    converged if their lines are mixed and without a trend; then R-hat, the potential
    scale reduction, is near 1.

    Parameters
    ----------
    means : ndarray of shape (n_sweeps, n_chains, n_columns)
        Mean of the imputed cells of each column, after each sweep.
    deviations : ndarray of the same shape
        Their standard deviation.
    feature_names : sequence of str
        Names of the columns.
    n_iter : int or None, default=None
        Number of sweeps before draws are kept; it is marked by a dotted line.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes
        Axes of the mean and of the deviation of each column.
    lines_ : dict of str to list of matplotlib Line2D
        Lines of the means of each column, one for each chain.

    See Also
    --------
    DistributionDisplay : The imputed values beside the observed ones.
    skmc.metrics.scale_reduction : R-hat, from the later half of the chains.

    References
    ----------
    van Buuren. Flexible imputation of missing data, section 6.5. CRC Press 2018.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import ChainedCompleter
    >>> from skmc.plot import ConvergenceDisplay
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(60, 1) + rng.randn(60, 3)
    >>> X[:20, 1] = np.nan
    >>> chained = ChainedCompleter(n_draws=4, random_state=0).fit(X)
    >>> display = ConvergenceDisplay.from_estimator(chained)
    >>> len(display.lines_["column 1"])
    4
    """

    means: np.ndarray
    deviations: np.ndarray
    feature_names: Sequence[str]
    _: KW_ONLY
    n_iter: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, **params: Any) -> ConvergenceDisplay:
        """Draw the chains of a fitted completer.

        Parameters
        ----------
        estimator : fitted ChainedCompleter, or MixedCompleter of one
            Completer that draws in chains. The columns of a `skmc.MixedCompleter` are
            those of the matrix that represents the table: numbers in their units,
            positions of ordered levels, and the share of each category.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has no chains, or no cell was missing in its fit.
        NotFittedError
            If the estimator is not fitted.
        """
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        inner = getattr(estimator, "completer_", estimator)
        history = getattr(inner, "history_", {})
        if "deviation" not in history:
            raise ValueError(
                f"{type(inner).__name__} has no chains; pass a fitted "
                "ChainedCompleter, or a MixedCompleter of one."
            )
        means, deviations = history["mean"], history["deviation"]
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"column {k}" for k in range(estimator.n_features_in_)]
        if inner is not estimator:
            names, shift, scale = _units_of(estimator, names)
            means, deviations = shift + scale * means, scale * deviations
        drawn = ~np.isnan(means[0, 0])
        if not drawn.any():
            raise ValueError("no cell was missing in the fit, so there are no chains.")
        names = [str(name) for name, has in zip(names, drawn, strict=True) if has]
        chains = means[..., drawn], deviations[..., drawn]
        return cls(*chains, names, n_iter=inner.n_iter_).plot(**params)

    def plot(
        self, *, ax: Any = None, columns: str | Sequence[str] | None = None
    ) -> ConvergenceDisplay:
        """Draw two panels for each column, with a line for each chain.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of them, default=None
            Axes of the mean and of the deviation of each column in turn; as many Axes
            as columns show the means alone. None makes a figure.
        columns : str or sequence of str, default=None
            Names of the columns to draw. None draws the four whose chains agree the
            least.

        Returns
        -------
        ConvergenceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If a column has no chains, or if the number of Axes is neither the number of
            columns nor twice that number.
        """
        names = list(self.feature_names)
        reductions = [scale_reduction(self.means[..., [k]]) for k in range(len(names))]
        if columns is None:
            worst = np.argsort(-np.nan_to_num(reductions), kind="stable")
            places = sorted(worst[:MAX_COLUMNS].tolist())
        else:
            columns = listed(columns)
            unknown = [name for name in columns if name not in names]
            if unknown or not columns:
                raise ValueError(f"columns must be of {names}, got {unknown}.")
            places = [names.index(name) for name in columns]
        both = ax is None or np.size(ax) != len(places)
        self.figure_, self.axes_ = axes_for(
            ax, (1 + both) * len(places), 3.6, 0.55, per_row=2
        )
        self.lines_: dict[str, Any] = {}
        for k, axis in zip(places, self.axes_[:: 1 + both], strict=True):
            self.lines_[names[k]] = self._plot_chains(axis, self.means[..., k])
            title = f"{names[k]}: R-hat {reductions[k]:.2f}"
            axis.set_title(title, fontsize="medium", parse_math=False)
            axis.set_ylabel("mean")
        if both:
            for k, axis in zip(places, self.axes_[1::2], strict=True):
                self._plot_chains(axis, self.deviations[..., k])
                axis.set_ylabel("std. deviation")
        for axis in self.axes_[-1 - both :]:
            axis.set_xlabel("sweep")
        return self

    def _plot_chains(self, axis: Any, chains: ArrayLike) -> list[Any]:
        steps = np.arange(1, len(self.means) + 1)
        lines: list[Any] = axis.plot(steps, chains, linewidth=1)
        if self.n_iter is not None:
            axis.axvline(self.n_iter + 0.5, color="0.5", linestyle=":", linewidth=1)
        axis.locator_params(axis="x", integer=True)
        return lines


def _units_of(mixed: Any, names: Sequence[Any]) -> tuple[list[Any], Any, Any]:
    """Names, means and deviations of the columns of the matrix of a table."""
    units: list[tuple[Any, float, float]] = []
    for k, column in mixed._table.used:
        if isinstance(column, Categorical):
            pairs = zip(column.levels, column.shares, strict=True)
            units += [(f"{names[k]} = {v}", p, column.deviation) for v, p in pairs]
        else:
            units.append((names[k], column.mean, column.deviation))
    labels, shift, scale = zip(*units, strict=True)
    return list(labels), np.array(shift), np.array(scale)
