"""The plot of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from skmc.cells import Container
from skmc.model_selection.comparison import compare


class ComparisonDisplay:
    """Plot of a comparison: points with error bars per pattern and metric.

    Parameters
    ----------
    table : DataFrame
        Result of `compare`.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Figure with a panel for each pattern and metric.
    axes_ : ndarray of matplotlib Axes, shape (n_patterns, n_metrics)
        Axes of the panels.

    See Also
    --------
    compare : Makes the table to plot.
    """

    def __init__(self, table: Any):
        self.table = table

    @classmethod
    def from_completers(
        cls,
        completers: Mapping[str, Any] | Sequence[Any],
        X: Container,
        **params: Any,
    ) -> Self:
        """Compare completers and plot the result.

        Parameters
        ----------
        completers : mapping of str to estimator, or sequence of estimators
            Completers to compare, as in `compare`.
        X : matrix of any container, or `Entries`
            Observed cells, as in `compare`.
        **params : dict
            Further parameters of `compare`.

        Returns
        -------
        ComparisonDisplay
            The display, plotted.
        """
        return cls(compare(completers, X, **params)).plot()

    def plot(self) -> Self:
        """Plot the comparison.

        Points are hollow if the completer is significantly worse than the best one (p
        below 0.05).

        Returns
        -------
        ComparisonDisplay
            This display.
        """
        import matplotlib.pyplot as plt

        table = self.table
        patterns, metrics = table["pattern"].unique(), table["metric"].unique()
        titles = list(dict.fromkeys(table["completer"]))
        self.figure_, self.axes_ = plt.subplots(
            len(patterns),
            len(metrics),
            figsize=(4.5 * len(metrics), 1 + 0.35 * len(titles) * len(patterns)),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for row, pattern in zip(self.axes_, patterns, strict=True):
            for ax, metric in zip(row, metrics, strict=True):
                part = table[table["pattern"].eq(pattern) & table["metric"].eq(metric)]
                worse = part["p_value"].lt(0.05)
                for chosen, fill in ((~worse, "full"), (worse, "none")):
                    ax.errorbar(
                        part["mean"][chosen],
                        [titles.index(t) for t in part["completer"][chosen]],
                        xerr=part["std_error"][chosen],
                        fmt="o",
                        fillstyle=fill,
                        color="tab:blue",
                    )
                ax.set(title=f"{pattern}: {metric}", yticks=range(len(titles)))
                ax.set_yticklabels(titles)
                ax.grid(axis="x", alpha=0.3)
            row[0].set_ylim(len(titles) - 0.5, -0.5)
        return self
