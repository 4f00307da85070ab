"""An estimated effect, with placebos, intervals, a plot and a report."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from skmc.plot import axes_for

N_UNITS = 5  # whose weights the report has
N_TICKS = 5  # of times that are names


def mean_gaps(
    gaps: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
) -> np.ndarray:  # (2, n_times)
    """Mean gaps of treated cells, and of all cells of units that are ever treated."""
    ever = treated.any(1, keepdims=True) & ~np.isnan(gaps)
    means = []
    for cells in (treated & ~np.isnan(gaps), ever):
        count = cells.sum(0)
        sums = np.where(cells, gaps, 0).sum(0)
        means.append(np.where(count > 0, sums / np.maximum(count, 1), np.nan))
    return np.array(means)


def event_gaps(
    gaps: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
) -> np.ndarray:  # (2 * n_times - 1,)
    """Mean gaps of treated units by the time since their first treatment."""
    n_times = gaps.shape[1]
    first = treated.argmax(1)[:, None]
    since = np.arange(n_times) - first
    used = treated.any(1, keepdims=True) & ((since < 0) | treated) & ~np.isnan(gaps)
    at = since[used] + n_times - 1
    count = np.bincount(at, minlength=2 * n_times - 1)
    sums = np.bincount(at, gaps[used], minlength=2 * n_times - 1)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


@dataclass(eq=False, repr=False, kw_only=True)
class PanelEffect:
    """An estimated effect of a treatment, see `effect`.

    Parameters
    ----------
    units : ndarray of shape (n_units,)
        Labels of the units.
    times : ndarray of shape (n_times,)
        Labels of the times.
    observed : ndarray or DataFrame of shape (n_units, n_times)
        The observed outcomes.
    treated : bool ndarray of shape (n_units, n_times)
        The treated cells.
    counterfactual : ndarray or DataFrame of shape (n_units, n_times)
        The model's value of every cell, as if there were no treatment. With weights,
        NaN for never-treated units.
    effects : ndarray or DataFrame of shape (n_units, n_times)
        Observed minus counterfactual at the treated cells, NaN elsewhere.
    placebo_gaps : ndarray of shape (n_placebos, 2, n_times)
        Mean gaps of groups of never-treated units: of the cells with the placebo
        treatment, and of all times.
    placebo_events : ndarray of shape (n_placebos, 2 * n_times - 1)
        Mean gaps of these groups by the time since the first treatment, from
        ``1 - n_times`` to ``n_times - 1``.
    time_placebo : ndarray of shape (n_times,)
        Mean gap if the treatment is moved earlier, NaN at other times.
    level : float
        Probability of the intervals.
    draws : ndarray of shape (n_draws,) or None
        Average effects for draws of the counterfactual.
    unit_weights : ndarray of shape (n_units,) or None
        Weights of the never-treated units, the mean over the treated units. The sum is
        one. None without weights.
    time_weights : ndarray of shape (n_times,) or None
        Weights of the times before the treatment, the mean over the treated units.
    jackknife : ndarray of shape (n_members,) or None
        Average effects without each unit in turn, with the weights kept. None without
        weights, or if a unit is the only one that is treated at its times.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, ndarray of two matplotlib Axes
        Figure and Axes of the last `plot`.

    See Also
    --------
    effect : Makes it.
    skmc.plot.EventStudyDisplay : Effects by the time since the treatment.
    """

    units: np.ndarray
    times: np.ndarray
    observed: Any
    treated: np.ndarray
    counterfactual: Any
    effects: Any
    placebo_gaps: np.ndarray
    placebo_events: np.ndarray
    time_placebo: np.ndarray
    level: float
    draws: np.ndarray | None = None
    unit_weights: np.ndarray | None = None
    time_weights: np.ndarray | None = None
    jackknife: np.ndarray | None = None

    @property
    def att(self) -> float:
        """Mean effect on the treated cells."""
        return float(np.nanmean(np.asarray(self.effects)))

    @property
    def by_period(self) -> np.ndarray:
        """Mean effect on the units treated at each time, NaN without any."""
        return self._gaps[0]

    @property
    def placebo_att(self) -> np.ndarray:
        """Mean over the times of each placebo, weighted as in `att`."""
        count = self.treated.sum(0)
        gaps = self.placebo_gaps[:, 0]
        weights = np.where(np.isnan(gaps), 0, count)
        averages: np.ndarray = (np.nan_to_num(gaps) * weights).sum(1) / weights.sum(1)
        return averages

    @property
    def p_value(self) -> float:
        """Share of placebos, and the estimate itself, that are as large as it."""
        placebos = np.abs(self.placebo_att)
        if not len(placebos):
            return math.nan
        return float((1 + (placebos >= abs(self.att)).sum()) / (1 + len(placebos)))

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of `att`: the estimate plus or minus a quantile of the placebos.

        The quantile is the ``ceil(level (n + 1))``-th smallest absolute value of ``n``
        placebos. If treated and other units are exchangeable, the interval holds the
        effect with at least this probability. It is infinite for few placebos.
        """
        half = half_width(self.placebo_att, self.level)
        return self.att - half, self.att + half

    @property
    def period_intervals(self) -> np.ndarray:
        """Intervals of the means in `by_period`, (2, n_times)."""
        gaps = self.placebo_gaps[:, 0].T
        half = np.array([half_width(g[~np.isnan(g)], self.level) for g in gaps])
        return np.array([self.by_period - half, self.by_period + half])

    @property
    def interval_by_draws(self) -> tuple[float, float] | None:
        """Central interval of `draws`, None without draws."""
        if self.draws is None:
            return None
        tail = (1 - self.level) / 2
        low, high = np.quantile(self.draws, (tail, 1 - tail))
        return float(low), float(high)

    @property
    def standard_error(self) -> float:
        """Standard deviation of `placebo_att`, NaN for fewer than two placebos."""
        placebos = self.placebo_att
        return float(placebos.std()) if len(placebos) > 1 else math.nan

    @property
    def standard_error_by_jackknife(self) -> float | None:
        """Standard error by the jackknife over units, None without it.

        It is ``sqrt((n - 1) / n * sum((jackknife - jackknife.mean())**2))``.
        """
        if self.jackknife is None:
            return None
        return float(np.sqrt(len(self.jackknife) - 1) * self.jackknife.std())

    @property
    def interval_by_jackknife(self) -> tuple[float, float] | None:
        """Normal interval of `att`, None without the jackknife."""
        error = self.standard_error_by_jackknife
        if error is None:
            return None
        half = error * NormalDist().inv_cdf((1 + self.level) / 2)
        return self.att - half, self.att + half

    @property
    def by_event(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean gaps by the time since the first treatment, with intervals.

        Times since it (0 is the first treated one), mean gaps of the units that have
        such a time, and their intervals from placebos, (2, n).
        """
        gaps = np.asarray(self.observed) - np.asarray(self.counterfactual)
        means = event_gaps(gaps, self.treated)
        seen = ~np.isnan(means)
        placebos = self.placebo_events.T[seen]
        half = np.array([half_width(p[~np.isnan(p)], self.level) for p in placebos])
        since = np.arange(1 - len(self.times), len(self.times))[seen]
        return since, means[seen], np.array([means[seen] - half, means[seen] + half])

    @property
    def coverage(self) -> float:
        """Share of placebos whose interval, from the other placebos, contains zero."""
        placebos = self.placebo_att
        if not len(placebos):
            return math.nan
        inside = [
            abs(placebo) <= half_width(np.delete(placebos, k), self.level)
            for k, placebo in enumerate(placebos)
        ]
        return float(np.mean(inside))

    @property
    def _gaps(self) -> np.ndarray:
        gaps = np.asarray(self.observed) - np.asarray(self.counterfactual)
        return mean_gaps(gaps, self.treated)

    def summary(self) -> str:
        """Report the effect, its interval and the placebos.

        Returns
        -------
        str
            Text of several lines.
        """
        level, n = f"{100 * self.level:g} %", len(self.placebo_gaps)
        ever = self.treated.any(1).sum()
        lines = [
            f"Average effect on the treated: {self.att:.4g} "
            f"({self.treated.sum()} cells of {ever} of {len(self.units)} units)"
        ]
        if n:
            low, high = self.interval
            lines += [
                f"Placebo units: {level} interval [{low:.4g}, {high:.4g}], "
                f"p = {self.p_value:.3f}, {n} placebos, "
                f"standard error {self.standard_error:.4g}",
            ]
        if self.interval_by_jackknife:
            low, high = self.interval_by_jackknife
            lines.append(
                f"Jackknife: {level} interval [{low:.4g}, {high:.4g}], "
                f"standard error {self.standard_error_by_jackknife:.4g}"
            )
        if self.interval_by_draws:
            low, high = self.interval_by_draws
            lines.append(f"Draws: {level} interval [{low:.4g}, {high:.4g}]")
        if self.unit_weights is not None:
            most = np.argsort(-abs(self.unit_weights), kind="stable")[:N_UNITS]
            some = (f"{_text(self.units[i])} {self.unit_weights[i]:.2f}" for i in most)
            lines.append(f"Largest weights of units: {', '.join(some)}")
        pretended = self.times[~np.isnan(self.time_placebo)]
        if len(pretended):
            lines.append(
                f"Placebo in time, {_text(pretended[0])} to {_text(pretended[-1])}: "
                f"mean gap {np.nanmean(self.time_placebo):.4g}"
            )
        lines.append(f"{'time':>12} {'effect':>10} {'low':>10} {'high':>10}")
        table = zip(self.times, self.by_period, *self.period_intervals, strict=True)
        lines += [
            f"{_text(time):>12} {mean:10.4g} {low:10.4g} {high:10.4g}"
            for time, mean, low, high in table
            if not math.isnan(mean)
        ]
        return "\n".join(lines)

    __str__ = summary

    def __repr__(self) -> str:
        return f"<PanelEffect: att={self.att:.4g}, {len(self.placebo_gaps)} placebos>"

    def plot(self, *, ax: Any = None) -> PanelEffect:
        """Draw the outcomes and the gaps, each the mean over the treated units.

        The first panel shows the observed outcome and the counterfactual. The second
        one shows their difference, with the placebo units in gray. A dotted line marks
        the first treatment.

        Parameters
        ----------
        ax : array-like of two matplotlib Axes, default=None
            Axes of the panels; None makes a figure.

        Returns
        -------
        PanelEffect
            The effect itself, with ``figure_`` and ``axes_``.
        """
        self.figure_, self.axes_ = axes_for(ax, 2, 4.6, 0.75)
        outcomes, gaps = self.axes_
        numeric = self.times.dtype.kind in "iufM"
        times = self.times if numeric else np.arange(len(self.times))
        cells = np.asarray(self.observed)
        observed = mean_gaps(cells, self.treated)[1]
        seen = np.where(np.isnan(cells), np.nan, np.asarray(self.counterfactual))
        counterfactual = mean_gaps(seen, self.treated)[1]  # of the same cells
        outcomes.plot(times, observed, color="black", label="observed")
        outcomes.plot(
            times, counterfactual, color="C3", ls="--", label="counterfactual"
        )
        for k, placebo in enumerate(self.placebo_gaps):
            label = "placebo units" if k == 0 else None
            gaps.plot(times, placebo[1], color="0.8", lw=0.8, label=label)
        gaps.plot(times, self._gaps[1], color="black", label="treated")
        gaps.axhline(0, color="0.5", lw=0.8)
        start = times[self.treated.any(0).argmax()]
        for axis, label in ((outcomes, "outcome"), (gaps, "gap")):
            axis.axvline(start, color="0.3", ls=":", lw=1)
            if not numeric:
                some = times[:: math.ceil(len(times) / N_TICKS)]
                axis.set_xticks(some, [_text(self.times[t]) for t in some])
            elif times.dtype.kind in "iu":
                axis.locator_params(axis="x", integer=True)
            axis.set(xlabel="time", ylabel=label)
            axis.legend(fontsize="small")
        return self


def _text(time: Any) -> str:
    """Write a time; dates at midnight have no time of day."""
    return re.sub(r"[T ]00:00:00(\.0+)?$", "", str(time))


def least_placebos(level: float) -> int:
    """Return the smallest number of placebos with a finite interval."""
    n = 1
    while _rank(n, level) > n:
        n += 1
    return n


def _rank(n: int, level: float) -> int:
    return math.ceil(level * (n + 1))


def half_width(
    errors: np.ndarray,  # (n,)
    level: float,
) -> float:
    """Half the width of an interval of placebos, see `PanelEffect.interval`."""
    rank = _rank(len(errors), level)
    return float(np.sort(np.abs(errors))[rank - 1]) if rank <= len(errors) else math.inf
