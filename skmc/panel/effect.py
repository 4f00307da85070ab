"""The effect of a treatment: observed cells minus a prediction without them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skmc.base import BOUNDS_AND_MARKS, BaseCompleter, refuse_parameters, warn_user
from skmc.cells import Container, Entries, to_cells
from skmc.completers import SoftImputeCompleter
from skmc.linalg import Seed
from skmc.panel.result import PanelEffect, event_gaps, least_placebos, mean_gaps
from skmc.panel.weights import (
    LEAST_BEFORE,
    WEIGHTINGS,
    WeightedPrediction,
    Weighting,
    leave_one_out,
)
from skmc.tables import as_dates

# Outcomes without treatment, of cells and of the hidden ones among them.
Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
# Parameters of the completer, whose model predicts what is left of the outcomes.
OF_PANELS = {
    **dict.fromkeys((*BOUNDS_AND_MARKS, "like_observed"), "leave it out"),
    "missing_values": "set such outcomes to NaN",
}
N_DRAWS = 200
EARLIER = 3  # the placebo in time takes the last third of the shortest history


def effect(
    X: Container,
    treated: Container | str,
    completer: BaseCompleter | None = None,
    *,
    weights: Weighting | None = None,
    covariates: Sequence[Any] = (),
    unit: Hashable = None,
    time: Hashable = None,
    outcome: Hashable = None,
    level: float = 0.9,
    n_placebos: int | None = None,
    random_state: Seed = None,
) -> PanelEffect:
    r"""Estimate the effect of a treatment in a panel of units and times.

    The treated cells are hidden, and the completion of the others is the outcome
    without the treatment, the *counterfactual*. The average effect on the treated is

    .. math::

        \text{ATT} = \frac{1}{|T|} \sum_{(i, t) \in T} (X_{it} - \hat{X}_{it})

    over the treated cells :math:`T`. Placebos show how large it is without an effect:

    - *placebo units*: without the treated units, never-treated units take their place
      and their times of treatment. With one treated unit, each of the others takes it
      once. With several, random groups of that size do, as often as there are
      never-treated units;
    - a *placebo in time*: the treatment is moved earlier, by a third of the shortest
      history of a treated unit.

    Parameters
    ----------
    X : DataFrame, array or other container of shape (n_units, n_times)
        Outcomes, with the times in order. Other cells than the treated ones may be
        missing. The names of the columns of a data frame are the times. With ``unit``
        and ``time``, a data frame with a row for each unit and time.
    treated : container of bool of shape (n_units, n_times), or column of ``X``
        True at the treated cells: a block, or cells that follow a staggered adoption.
        The name of a column of bools with ``unit`` and ``time``.
    completer : completer or None, default=None
        Completer, which is cloned. None means
        ``SoftImputeCompleter(fixed_effects="both", random_state=0)``, which is MC-NNM.
        If it has `sample`, its draws of the counterfactual give a second interval.
    weights : {"synthetic", "averaged"} or None, default=None
        Weights of never-treated units and of times before the treatment, instead of a
        completer; they need at least two times before it. "synthetic" is synthetic
        difference in differences. "averaged" is the mean of these weights and those of
        random walks with noise around a common path; some can be negative. Its errors
        are smaller in most benchmarks. Units that are treated at the same times share
        weights, and all are compared with the never-treated units (staggered
        adoption). None means a completer.
    covariates : sequence of containers of shape (n_units, n_times), or columns of ``X``
        Variables that the treatment does not change. The method sees the outcomes minus
        their linear effect, which least squares with effects of units and times
        estimates once, from the untreated cells. Names of columns with ``unit`` and
        ``time``.
    unit, time : column of ``X`` or None, default=None
        Columns of the units and of the times of a long table. Outcomes of units and
        times without a row are missing. The results have a row for each unit and a
        column for each time, both sorted. Times are numbers, dates, texts of dates in
        one format, or ordered categories of pandas.
    outcome : column of ``X`` or None, default=None
        Column of the outcomes of a long table. None means the only other column.
    level : float in (0, 1), default=0.9
        Probability of the intervals.
    n_placebos : int >= 0 or None, default=None
        Number of placebos in place of the treated units, each of which is a fit. None
        means the number of never-treated units, which is the largest for one treated
        unit.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of placebos, and of draws.

    Returns
    -------
    PanelEffect

    Raises
    ------
    ValueError
        ``treated`` has another shape, other labels or other values than bools, or no
        treated cell; a treated cell is missing; a unit has no untreated observed cell,
        or a time with treated cells has none; times that are numbers or dates do not
        increase; a long table lacks a column, has a unit twice at a time, or times that
        are texts but no dates; ``level`` or ``n_placebos`` is out of range; ``weights``
        has another value, a completer beside it, no never-treated unit, or a unit that
        is treated before the third time; a covariate has another shape, is missing at
        an observed outcome, or is a sum of effects of units and times and of the
        covariates before it.
    TypeError
        ``completer`` or ``n_placebos`` is another object.

    See Also
    --------
    skmc.SoftImputeCompleter : The default model of the untreated outcome.
    skmc.SeriesCompleter : Completes series without a treatment.

    Notes
    -----
    The interval and the p-value assume that, without the treatment, the errors of the
    treated units would be distributed like those of the others. Without enough
    never-treated units there are no placebos, and a warning says so. The interval of
    draws assumes that units are independent, and is too short if they are not.

    References
    ----------
    Athey, Bayati, Doudchenko, Imbens, Khosravi. Matrix completion methods for causal
    panel data models. Journal of the American Statistical Association 116 (2021).
    Weights: Arkhangelsky, Athey, Hirshberg, Imbens, Wager. Synthetic difference-in-
    differences. American Economic Review 111 (2021). Its ridge and variances are those
    of "synthetic".
    Placebos: Abadie, Diamond, Hainmueller. Synthetic control methods for comparative
    case studies. Journal of the American Statistical Association 105 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.panel import effect
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(20, 1) + np.linspace(0, 3, 15) + 0.1 * rng.randn(20, 15)
    >>> treated = np.zeros(X.shape, bool)
    >>> treated[0, 10:] = True
    >>> X[treated] += 2
    >>> found = effect(X, treated)
    >>> print(round(found.att, 1), round(found.p_value, 2))
    1.9 0.05
    >>> round(effect(X, treated, weights="averaged").att, 1)
    1.9
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}.")
    if not isinstance(n_placebos, Integral | None):
        raise TypeError(f"n_placebos must be an integer or None, got {n_placebos!r}.")
    if n_placebos is not None and n_placebos < 0:
        raise ValueError(f"n_placebos must be at least 0, got {n_placebos}.")
    if weights is not None and completer is not None:
        raise ValueError(
            f"weights={weights!r} takes the place of a completer; pass one of them."
        )
    if weights is not None and not is_weighting(weights):
        raise ValueError(f"weights must be None or of {WEIGHTINGS}, got {weights!r}.")
    if not isinstance(completer, BaseCompleter | None):
        raise TypeError(
            f"completer must be a completer of skmc or None, got {completer!r}."
        )
    panel = Panel.read(X, treated, unit, time, outcome, covariates)
    cells, T, times = panel.cells, panel.treated, panel.times
    rng = check_random_state(random_state)

    draws = weighted = None
    if weights is not None:
        panel.check_weighted()
        weighted = WeightedPrediction.of(cells, T, weights)
        whole, predict = weighted.whole, predictor(weights)
    else:
        if completer is None:
            completer = SoftImputeCompleter(fixed_effects="both", random_state=0)
        refuse_parameters(completer, "panel.effect", OF_PANELS)
        fitted, whole = _complete(completer, cells, T)
        if hasattr(fitted, "sample"):
            hidden = np.where(T, np.nan, cells)
            drawn = fitted.sample(hidden, N_DRAWS, random_state=rng)
            draws = np.array([(cells - draw)[T].mean() for draw in drawn])
        predict = predictor(completer)
    placebos = [*placebo_units(predict, cells, T, n_placebos, rng)]
    gaps, events = zip(*placebos, strict=True) if placebos else ((), ())
    least = least_placebos(level)
    if 0 < len(gaps) < least:
        warn_user(
            f"{len(gaps)} placebos give no interval of {100 * level:g} %, which needs "
            f"{least}: it is infinite. Raise n_placebos, add never-treated units, or "
            "lower level."
        )
    whole = whole + panel.explained
    observed, like = panel.observed, panel.like
    found = PanelEffect(
        units=panel.units,
        times=times,
        observed=like(observed),
        treated=T,
        counterfactual=like(whole),
        effects=like(np.where(T, observed - whole, np.nan)),
        placebo_gaps=np.reshape(gaps, (len(gaps), 2, len(times))),
        placebo_events=np.reshape(events, (len(events), 2 * len(times) - 1)),
        time_placebo=_earlier(predict, cells, T, weights is not None),
        level=level,
        draws=draws,
    )
    if weighted is not None:
        found.unit_weights, found.time_weights = weighted.mean_weights()
        found.jackknife = leave_one_out(weighted.cells, T, weighted.cohorts)
    return found


@dataclass(frozen=True)
class Panel:
    """A panel and its treated cells, read and checked.

    Parameters
    ----------
    X : container
        The outcomes as they were given, or the wide table of a long one.
    observed : ndarray of shape (n_units, n_times)
        Outcomes.
    explained : ndarray of shape (n_units, n_times)
        The linear effect of the covariates.
    treated : bool ndarray of shape (n_units, n_times)
        The treated cells.
    units, times : ndarray
        Labels.
    """

    X: Any
    observed: np.ndarray
    explained: np.ndarray
    treated: np.ndarray
    units: np.ndarray
    times: np.ndarray

    @classmethod
    def read(
        cls,
        X: Any,  # (n_units, n_times)
        treated: Any,
        unit: Hashable,
        time: Hashable,
        outcome: Hashable,
        covariates: Sequence[Any],
    ) -> Panel:
        """Read the parameters of the same names of `effect`."""
        if isinstance(covariates, str):
            covariates = [covariates]
        if hasattr(covariates, "columns"):
            raise ValueError(
                "covariates must be a list, such as [covariate], also of one, got "
                f"{type(covariates).__name__}."
            )
        if unit is not None or time is not None:
            X, treated, covariates = _wide(X, treated, unit, time, outcome, covariates)
        cells = to_cells(X).astype(float)
        units, times = _labels(X, cells)
        T = _read_treated(treated, X, cells)
        _check_untreated(cells, T, units, times)
        explained = _explained(covariates, X, cells, T, units, times)
        return cls(X, cells, explained, T, units, times)

    @property
    def cells(self) -> np.ndarray:
        """Outcomes minus the effect of the covariates."""
        found: np.ndarray = self.observed - self.explained
        return found

    def check_weighted(self) -> None:
        """Require never-treated units, and two times before each treatment."""
        if (self.treated.any(1) | np.isnan(self.cells).all(1)).all():
            raise ValueError(
                "Weights compare with never-treated units, and X has none with "
                "observed cells; add some, or use a completer."
            )
        early = self.treated[:, :LEAST_BEFORE].any(1)
        if early.any():
            i = early.argmax()
            start = self.times[self.treated[i].argmax()]
            raise ValueError(
                f"Unit {self.units[i]} is treated at time {start}, but weights need "
                f"{LEAST_BEFORE} times before; add earlier times, leave the unit out, "
                "or use a completer."
            )

    def like(
        self,
        values: np.ndarray,  # (n_units, n_times)
    ) -> Any:  # (n_units, n_times)
        """Give values the labels of a data frame."""
        X = self.X
        if hasattr(X, "columns") and hasattr(X, "index"):
            return type(X)(values, index=X.index, columns=X.columns)
        return values


def _wide(
    X: Any,
    treated: Any,
    unit: Hashable,
    time: Hashable,
    outcome: Hashable,
    covariates: Sequence[Any],
) -> tuple[Any, Any, list[Any]]:
    """Outcomes, treated cells and covariates, as tables of units and times."""
    if not hasattr(X, "columns"):
        raise TypeError(
            f"unit= and time= name columns of a data frame, got {type(X).__name__}."
        )
    names = list(X.columns)
    given = {"unit": unit, "time": time, "treated": treated}
    known = {f"covariates[{k}]": name for k, name in enumerate(covariates)}
    for parameter, name in (given | known).items():
        if not isinstance(name, Hashable) or name not in names:
            got = f", got {name!r}" if isinstance(name, Hashable) else ""
            raise ValueError(f"{parameter} must be a column of X, one of {names}{got}.")
    if outcome is None:
        others = [
            name for name in names if name not in (unit, time, treated, *covariates)
        ]
        if len(others) != 1:
            raise ValueError(f"Name the outcome, one of {others}, by outcome=.")
        (outcome,) = others
    if outcome not in names:
        raise ValueError(
            f"outcome must be a column of X, one of {names}, got {outcome!r}."
        )
    once = [unit, time, treated, outcome, *covariates]
    if twice := [name for k, name in enumerate(once) if name in once[:k]]:
        raise ValueError(
            f"{twice[0]!r} is named twice; unit, time, treated, outcome and covariates "
            "must be different columns."
        )
    frame = X if hasattr(X, "pivot_table") else X.to_pandas()
    for parameter, name in given.items():
        if (gone := frame[name].isna().to_numpy()).any():
            raise ValueError(
                f"{parameter} is missing in row {gone.argmax()} of X; drop the row, or "
                "fill it."
            )
    if (again := frame.duplicated([unit, time]).to_numpy()).any():
        row = frame.iloc[again.argmax()]
        raise ValueError(
            f"X has the unit {row[unit]} twice at the time {row[time]}; keep one "
            "row of them."
        )
    values = [outcome, treated, *covariates]
    wide = frame.pivot(index=unit, columns=time, values=values)
    ordered = getattr(frame[time].dtype, "ordered", False)  # of pandas
    if not ordered and (dates := _dates_of(wide[outcome].columns)) is not None:
        if not all(dates):
            raise ValueError(
                f"time={time!r} has texts such as {frame[time].iloc[0]!r}, which are "
                "not dates in one format, so their order is unknown; convert them to "
                "numbers or dates, or to ordered categories of pandas."
            )
        order = np.argsort(np.array(dates, "M8[us]"), kind="stable")
        wide = {name: wide[name].iloc[:, order] for name in values}
    cells = wide[treated]
    others = [wide[name] for name in covariates]
    return wide[outcome], cells.where(cells.notna(), False), others


def _complete(
    completer: BaseCompleter, cells: np.ndarray, hidden: np.ndarray
) -> tuple[BaseCompleter, np.ndarray]:
    rest = np.where(hidden, np.nan, cells)
    # All cells have the unit of the outcome.
    fitted = clone(completer).fit(Entries.of_matrix(rest, one_unit=True))
    return fitted, np.asarray(fitted.reconstruction_, float)


def is_weighting(weights: object) -> bool:
    """Whether this is a value of ``weights``."""
    return isinstance(weights, str) and weights in WEIGHTINGS


def predictor(estimator: BaseCompleter | Weighting) -> Predict:
    """Make a function that predicts the hidden cells of a panel."""
    if isinstance(estimator, BaseCompleter):
        return lambda cells, hidden: _complete(estimator, cells, hidden)[1]
    return lambda cells, hidden: WeightedPrediction.of(cells, hidden, estimator).whole


def placebo_units(
    predict: Predict,
    cells: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
    n_placebos: int | None,
    rng: np.random.RandomState,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Let groups of never-treated units take the place of the treated ones."""
    ever = treated.any(1)
    patterns, rest = treated[ever], cells[~ever & ~np.isnan(cells).all(1)]
    observed, during = ~np.isnan(rest), patterns.any(0)
    able = (observed & during).any(1) & (observed & ~during).any(1)
    candidates, size = np.flatnonzero(able), len(patterns)
    if n_placebos == 0:
        return
    if len(rest) <= size or len(candidates) < size:
        warn_user(
            f"{len(candidates)} never-treated units with observed cells cannot take "
            f"the place of {size} treated ones, so there are no placebo units, no "
            "interval and no p-value. Add never-treated units."
        )
        return
    n_groups, n_placebos = len(candidates) // size, n_placebos or len(candidates)
    # Single units that take the place again would be the same placebos, and the
    # p-value would be too small.
    for k in range(n_placebos if size > 1 else min(n_placebos, len(candidates))):
        if k % n_groups == 0:
            order = rng.permutation(candidates)
        group = order[k % n_groups * size :][:size]
        placebo = np.zeros(rest.shape, bool)
        placebo[group] = patterns
        pattern = placebo.copy()
        placebo &= observed & (observed & ~placebo).any(0)
        if placebo.any():
            gaps = rest - predict(rest, placebo)
            known = np.where(pattern & ~placebo, np.nan, gaps)
            yield mean_gaps(gaps, placebo), event_gaps(known, pattern)


def _earlier(
    predict: Predict, cells: np.ndarray, treated: np.ndarray, by_weights: bool
) -> np.ndarray:
    """Return the mean gap in the times to which the treatment is moved, (n_times,)."""
    ever = np.asarray(treated.any(1))
    first, times = treated.argmax(1), np.arange(treated.shape[1])
    by = first[ever].min() // EARLIER
    until = first[:, None] - times
    pretended = np.logical_and(until > 0, until <= by)
    known = ~treated & ~np.isnan(cells)
    pretended &= ever[:, None] & known & (known & ~pretended).any(0)
    rest = np.where(treated | pretended, np.nan, cells)
    short = by_weights and pretended[:, :LEAST_BEFORE].any()
    if short or not pretended.any() or np.isnan(rest[ever]).all(1).any():
        return np.full(len(times), np.nan)
    return mean_gaps(cells - predict(rest, pretended), pretended)[0]


def _explained(
    covariates: Sequence[Any],
    X: Any,
    cells: np.ndarray,
    treated: np.ndarray,
    units: np.ndarray,
    times: np.ndarray,
) -> np.ndarray:
    """Return the linear effect of the covariates, zero without any."""
    found = np.zeros(cells.shape)
    if len(covariates) == 0:
        return found
    known = ~np.isnan(cells)
    used = known & ~treated
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for k, covariate in enumerate(covariates):
        name = f"covariates[{k}]"
        Z = to_cells(covariate, name=name).astype(float)
        _check_like(name, covariate, Z, X, cells)
        lost = np.argwhere(known & np.isnan(Z))
        if len(lost):
            i, t = lost[0]
            raise ValueError(
                f"{name} is missing for unit {units[i]} at time {times[t]}, whose "
                "outcome is observed; fill it, or leave it out."
            )
        own = _without_effects(Z, used)
        left = own
        if columns:
            A = np.array(columns).T
            left = own - A @ np.linalg.lstsq(A, own)[0]
        if not abs(left).max() > 1e-8 * abs(Z[used] - Z[used].mean()).max():
            raise ValueError(
                f"{name} is a sum of effects of units and times and of the covariates "
                "before it, so its effect is unknown; leave it out."
            )
        columns.append(own)
        values.append(np.where(known, Z, 0))
    y = _without_effects(cells, used)
    coefficients = np.linalg.lstsq(np.array(columns).T, y)[0]
    return np.asarray(np.tensordot(coefficients, np.array(values), 1))


def _without_effects(cells: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the residuals of effects of units and times, at the cells that are used.

    Alternating means of the rows and of the columns converge to least squares.
    """
    left = np.where(used, cells, 0)
    rows, cols = (np.maximum(used.sum(axis), 1) for axis in (1, 0))
    size = abs(left).max()
    for _ in range(10_000):
        of_rows = left.sum(1) / rows
        left = np.where(used, left - of_rows[:, None], 0)
        of_cols = left.sum(0) / cols
        left = np.where(used, left - of_cols, 0)
        if max(abs(of_rows).max(), abs(of_cols).max()) <= 1e-12 * size:
            break
    return left[used]


def _labels(X: Any, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if cells.ndim != 2:
        raise ValueError(
            f"X must have two axes, units and times, got shape {cells.shape}; of a "
            "long table, name the columns by unit= and time=."
        )
    index, columns = _names(X)
    units = np.arange(cells.shape[0]) if index is None else np.asarray(index)
    times = np.arange(cells.shape[1]) if columns is None else np.asarray(columns)
    dates = _dates_of(times)
    read = times if not dates or not all(dates) else np.array(dates, "M8[us]")
    if read.dtype.kind in "iufM":
        back = read[1:] <= read[:-1]
        if back.any():
            t = back.argmax()
            raise ValueError(
                f"The times in the columns of X must increase, got {times[t + 1]} "
                f"after {times[t]}; sort X by them, or pass an array in that order."
            )
    return units, times


def _dates_of(labels: Any) -> list[Any] | None:
    """Dates that texts denote, None for other texts; None if a label is no text."""
    words = list(labels)
    if not all(isinstance(word, str) for word in words):
        return None
    return [None if isinstance(date, str) else date for date in as_dates(words)]


def _names(X: Any) -> tuple[Any, Any]:
    """Labels of the rows and columns of a data frame, or None; polars has no index."""
    if not hasattr(X, "columns"):
        return None, None
    return getattr(X, "index", None), X.columns


def _read_treated(treated: Any, X: Any, cells: np.ndarray) -> np.ndarray:
    T = to_cells(treated, name="treated")
    _check_like("treated", treated, T, X, cells)
    if not np.isin(T, (0, 1)).all():
        raise ValueError(
            "treated must hold bools, none of which is missing: True at the treated "
            "cells."
        )
    if not T.any():
        raise ValueError("treated has no treated cell; set it to True at some cells.")
    return T.astype(bool)


def _check_like(
    name: str, given: Any, Z: np.ndarray, X: Any, cells: np.ndarray
) -> None:
    """Require the shape and the labels of ``X``."""
    if Z.shape != cells.shape:
        raise ValueError(
            f"{name} has shape {Z.shape}, X has {cells.shape}; pass one value for each "
            "cell of X."
        )
    names = zip(("index", "columns"), _names(X), _names(given), strict=True)
    for axis, ours, theirs in names:
        if ours is not None and theirs is not None and list(ours) != list(theirs):
            raise ValueError(
                f"{name} and X have different labels in their {axis}; reindex {name} "
                "like X."
            )


def _check_untreated(
    cells: np.ndarray, treated: np.ndarray, units: np.ndarray, times: np.ndarray
) -> None:
    lost = np.argwhere(treated & np.isnan(cells))
    if len(lost):
        i, t = lost[0]
        raise ValueError(
            f"The treated cell of unit {units[i]} at time {times[t]} is missing in X "
            f"(and {len(lost) - 1} others), so its effect is unknown; set treated to "
            "False there."
        )
    known = ~treated & ~np.isnan(cells)
    alone = treated.any(1) & ~known.any(1)
    if alone.any():
        raise ValueError(
            f"Unit {units[alone.argmax()]} has no observed cell without treatment, so "
            "nothing predicts its outcomes; leave it out."
        )
    alone = treated.any(0) & ~known.any(0)
    if alone.any():
        raise ValueError(
            f"At time {times[alone.argmax()]}, no untreated unit is observed, so "
            "nothing predicts the outcomes of this time; leave it out, or add units."
        )
