"""Effects of a treatment by the time since it started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmc.plot.panels import axes_for


@dataclass(eq=False, repr=False)
class EventStudyDisplay:
    """Effects of a treatment by the time since it started, an event-study plot.

    Parameters
    ----------
    since : int ndarray of shape (n,)
        Times since the first treatment; 0 is the first treated time.
    gaps : ndarray of shape (n,)
        Mean observed minus predicted outcomes.
    intervals : ndarray of shape (2, n)
        Lower and upper ends; infinite ones are not drawn.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, ndarray of one matplotlib Axes
        Figure and Axes of the plot.
    line_, bars_ : matplotlib Line2D, matplotlib LineCollection
        The gaps, and their intervals.

    See Also
    --------
    skmc.panel.effect : Estimates the effect.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc.panel import effect
    >>> from skmc.plot import EventStudyDisplay
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(20, 1) + 0.1 * rng.randn(20, 15)
    >>> treated = np.zeros(X.shape, bool)
    >>> treated[0, 10:] = True
    >>> found = effect(X + 2 * treated, treated, weights="averaged")
    >>> display = EventStudyDisplay.from_effect(found)
    >>> int(display.since[0]), int(display.since[-1])
    (-10, 4)
    """

    since: np.ndarray
    gaps: np.ndarray
    intervals: np.ndarray

    @classmethod
    def from_effect(cls, effect: Any, **params: Any) -> EventStudyDisplay:
        """Draw an estimated effect.

        Units are aligned at their own first treated times. Intervals come from the
        placebo units. Before the treatment, gaps far from zero say that the units
        differ in a way that the method does not follow. A completer is fitted to these
        outcomes, so its gaps there are smaller than its errors.

        Parameters
        ----------
        effect : PanelEffect
            The effect.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        EventStudyDisplay
            The display, drawn.

        Raises
        ------
        TypeError
            If it is not a `PanelEffect`.
        """
        if not hasattr(effect, "by_event"):
            raise TypeError(
                "effect must be a result of skmc.panel.effect, got "
                f"{type(effect).__name__}."
            )
        return cls(*effect.by_event).plot(**params)

    def plot(self, *, ax: Any = None) -> EventStudyDisplay:
        """Draw the gaps with their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        EventStudyDisplay
            The display itself.
        """
        self.figure_, self.axes_ = axes_for(ax, 1, 5.5, 0.65)
        (axis,) = self.axes_
        axis.axhline(0, color="0.5", lw=0.8)
        axis.axvline(-0.5, color="0.3", ls=":", lw=1)
        ends = np.where(np.isfinite(self.intervals), self.intervals, np.nan)
        self.bars_ = axis.vlines(self.since, *ends, color="0.6")
        (self.line_,) = axis.plot(self.since, self.gaps, "o", color="black", ms=4)
        axis.locator_params(axis="x", integer=True)
        axis.set(xlabel="time since the first treatment", ylabel="gap")
        return self
