"""The contributions that add up to a completed value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.base import Explanation
from skmc.plot.panels import axes_for

COLORS = {True: "tab:red", False: "tab:blue"}  # of an increase, of a decrease
ROW_HEIGHT = 0.32  # inches


@dataclass(eq=False, repr=False)
class ExplanationDisplay:
    """The contributions to a completed value, one after the other.

    The first bar begins at the base, each other one where the one above it ends, and
    the last one ends at the value.

    Parameters
    ----------
    explanation : Explanation
        Result of the method ``explain`` of a completer.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The Axes of the bars.
    bars_ : matplotlib BarContainer
        A bar for each contribution.

    See Also
    --------
    skmc.Explanation : What is drawn.
    CompletionDisplay : All cells at once.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import GaussianCompleter
    >>> from skmc.plot import ExplanationDisplay
    >>> X = np.random.RandomState(0).randn(50, 3) + np.arange(50)[:, None]
    >>> X[4, 1] = np.nan
    >>> gaussian = GaussianCompleter().fit(X)
    >>> display = ExplanationDisplay.from_estimator(gaussian, X, 4, 1)
    >>> len(display.bars_)
    2
    """

    explanation: Explanation

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, row: Any, column: Any, **params: Any
    ) -> ExplanationDisplay:
        """Explain a missing cell and draw the contributions.

        Parameters
        ----------
        estimator : fitted completer
            Completer with the method ``explain``.
        X : container as in ``fit``, of shape (n_rows, n_cols)
            Rows of the fitted matrix or new rows.
        row, column : int or label
            The cell, as for ``explain``.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        ExplanationDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator cannot explain its values, or as by ``explain``.
        """
        if not hasattr(estimator, "explain"):
            raise ValueError(
                f"{type(estimator).__name__} has no method explain; pass a "
                "KNNCompleter, a GaussianCompleter or another completer that has it."
            )
        return cls(estimator.explain(X, row, column)).plot(**params)

    def plot(self, *, ax: Any = None, n: int = 10) -> ExplanationDisplay:
        """Draw the contributions.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.
        n : int >= 1, default=10
            Number of rows, columns or completers that have a bar; the others share one.

        Returns
        -------
        ExplanationDisplay
            The display itself.

        Raises
        ------
        ValueError
            If ``n`` is less than 1.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        explanation = self.explanation
        contributions = explanation.summarized(n)
        amounts = np.array([c.amount for c in contributions])
        starts = explanation.base + np.concatenate([[0.0], np.cumsum(amounts)])
        height = ROW_HEIGHT * (len(contributions) + 2)
        self.figure_, (self.ax_,) = axes_for(ax, 1, 5.0, height / 5.0, below=0.5)
        self.bars_ = self.ax_.barh(
            range(len(contributions)),
            amounts,
            left=starts[:-1],
            color=[COLORS[bool(amount > 0)] for amount in amounts],
        )
        self.ax_.bar_label(self.bars_, [f"{amount:+.3g}" for amount in amounts])
        # Each line connects the end of a bar with the beginning of the next one.
        for k, end in enumerate(starts[1:]):
            self.ax_.plot([end, end], [k, k + 1], color="0.5", lw=0.8)
        self.ax_.axvline(explanation.base, color="0.5", lw=0.8, ls=":")
        names = [
            explanation.name_of(c) + ("" if np.isnan(c.cell) else f" ({c.cell:.3g})")
            for c in contributions
        ]
        self.ax_.set_yticks(
            range(len(contributions) + 1),
            [*names, f"value {explanation.value:.4g}"],
            parse_math=False,
        )
        self.ax_.set_ylim(len(contributions) + 0.6, -0.6)
        margin = 0.2 * (np.ptp(starts) or abs(explanation.base) or 1.0)  # of labels
        self.ax_.set_xlim(starts.min() - margin, starts.max() + margin)
        self.ax_.set_xlabel(f"from the base {explanation.base:.4g} to the value")
        self.ax_.set_title(explanation.title, fontsize="medium", parse_math=False)
        return self
