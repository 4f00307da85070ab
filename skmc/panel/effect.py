"""The effect of a treatment: observed cells minus a completion without them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skmc.base import BaseCompleter, warn_user
from skmc.cells import Container, Entries, to_cells
from skmc.completers import SoftImputeCompleter
from skmc.linalg import Seed
from skmc.panel.result import PanelEffect, least_placebos, mean_gaps

N_DRAWS = 200
EARLIER = 3  # the placebo in time takes the last third of the shortest history


def effect(
    X: Container,
    treated: Container | str,
    completer: BaseCompleter | None = None,
    *,
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
    unit, time : column of ``X`` or None, default=None
        Columns of the units and of the times of a long table. Outcomes of units and
        times without a row are missing. The results have a row for each unit and a
        column for each time, both sorted.
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
        increase; a long table lacks a column, or has a unit twice at a time; ``level``
        or ``n_placebos`` is out of range.
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
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}.")
    if not isinstance(n_placebos, Integral | None):
        raise TypeError(f"n_placebos must be an integer or None, got {n_placebos!r}.")
    if n_placebos is not None and n_placebos < 0:
        raise ValueError(f"n_placebos must be at least 0, got {n_placebos}.")
    if not isinstance(completer, BaseCompleter | None):
        raise TypeError(
            f"completer must be a completer of skmc or None, got {completer!r}."
        )
    if unit is not None or time is not None:
        X, treated = _wide(X, treated, unit, time, outcome)
    cells = to_cells(X).astype(float)
    units, times = _labels(X, cells)
    T = _read_treated(treated, X, cells)
    _check_untreated(cells, T, units, times)
    if completer is None:
        completer = SoftImputeCompleter(fixed_effects="both", random_state=0)
    rng = check_random_state(random_state)

    fitted, whole = _complete(completer, cells, T)
    draws = None
    if hasattr(fitted, "sample"):
        hidden = np.where(T, np.nan, cells)
        drawn = fitted.sample(hidden, N_DRAWS, random_state=rng)
        draws = np.array([(cells - draw)[T].mean() for draw in drawn])
    gaps = [*_placebos(completer, cells, T, n_placebos, rng)]
    least = least_placebos(level)
    if 0 < len(gaps) < least:
        warn_user(
            f"{len(gaps)} placebos give no interval of {100 * level:g} %, which needs "
            f"{least}: it is infinite. Raise n_placebos, add never-treated units, or "
            "lower level."
        )
    return PanelEffect(
        units=units,
        times=times,
        observed=_like(X, cells),
        treated=T,
        counterfactual=_like(X, whole),
        effects=_like(X, np.where(T, cells - whole, np.nan)),
        placebo_gaps=np.reshape(gaps, (len(gaps), 2, len(times))),
        time_placebo=_earlier(completer, cells, T),
        level=level,
        draws=draws,
    )


def _wide(
    X: Any, treated: Any, unit: Hashable, time: Hashable, outcome: Hashable
) -> tuple[Any, Any]:
    """Outcomes and treated cells of a long table, as tables of units and times."""
    if not hasattr(X, "columns"):
        raise TypeError(
            f"unit= and time= name columns of a data frame, got {type(X).__name__}."
        )
    names = list(X.columns)
    given = {"unit": unit, "time": time, "treated": treated}
    for parameter, name in given.items():
        if not isinstance(name, Hashable) or name not in names:
            got = f", got {name!r}" if isinstance(name, Hashable) else ""
            raise ValueError(f"{parameter} must be a column of X, one of {names}{got}.")
    if outcome is None:
        others = [name for name in names if name not in (unit, time, treated)]
        if len(others) != 1:
            raise ValueError(f"Name the outcome, one of {others}, by outcome=.")
        (outcome,) = others
    if outcome not in names:
        raise ValueError(
            f"outcome must be a column of X, one of {names}, got {outcome!r}."
        )
    frame = X if hasattr(X, "pivot_table") else X.to_pandas()
    for parameter, name in given.items():
        if (gone := frame[name].isna().to_numpy()).any():
            raise ValueError(
                f"{parameter} is missing in row {gone.argmax()} of X; drop the row, or "
                "fill it."
            )
    if (twice := frame.duplicated([unit, time]).to_numpy()).any():
        row = frame.iloc[twice.argmax()]
        raise ValueError(
            f"X has the unit {row[unit]} twice at the time {row[time]}; keep one "
            "row of them."
        )
    wide = frame.pivot(index=unit, columns=time, values=[outcome, treated])
    cells = wide[treated]
    return wide[outcome], cells.where(cells.notna(), False)


def _complete(
    completer: BaseCompleter, cells: np.ndarray, hidden: np.ndarray
) -> tuple[BaseCompleter, np.ndarray]:
    rest = np.where(hidden, np.nan, cells)
    # All cells have the unit of the outcome.
    fitted = clone(completer).fit(Entries.of_matrix(rest, one_unit=True))
    return fitted, np.asarray(fitted.reconstruction_, float)


def _placebos(
    completer: BaseCompleter,
    cells: np.ndarray,
    treated: np.ndarray,
    n_placebos: int | None,
    rng: np.random.RandomState,
) -> Iterator[np.ndarray]:
    """Yield the mean gaps of groups of never-treated units, (2, n_times) each."""
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
        placebo &= observed & (observed & ~placebo).any(0)
        if placebo.any():
            _, whole = _complete(completer, rest, placebo)
            yield mean_gaps(rest - whole, placebo)


def _earlier(
    completer: BaseCompleter, cells: np.ndarray, treated: np.ndarray
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
    if not pretended.any() or np.isnan(rest[ever]).all(1).any():
        return np.full(len(times), np.nan)
    _, whole = _complete(completer, rest, pretended)
    return mean_gaps(cells - whole, pretended)[0]


def _labels(X: Any, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if cells.ndim != 2:
        raise ValueError(
            f"X must have two axes, units and times, got shape {cells.shape}; of a "
            "long table, name the columns by unit= and time=."
        )
    index, columns = _names(X)
    units = np.arange(cells.shape[0]) if index is None else np.asarray(index)
    times = np.arange(cells.shape[1]) if columns is None else np.asarray(columns)
    if times.dtype.kind in "iufM":
        back = times[1:] <= times[:-1]
        if back.any():
            t = back.argmax()
            raise ValueError(
                f"The times in the columns of X must increase, got {times[t + 1]} "
                f"after {times[t]}; sort X by them, or pass an array in that order."
            )
    return units, times


def _names(X: Any) -> tuple[Any, Any]:
    """Labels of the rows and columns of a data frame, or None; polars has no index."""
    if not hasattr(X, "columns"):
        return None, None
    return getattr(X, "index", None), X.columns


def _like(X: Any, values: np.ndarray) -> Any:
    """Give values the labels of a data frame."""
    if hasattr(X, "columns") and hasattr(X, "index"):
        return type(X)(values, index=X.index, columns=X.columns)
    return values


def _read_treated(treated: Any, X: Any, cells: np.ndarray) -> np.ndarray:
    T = to_cells(treated, name="treated")
    if T.shape != cells.shape:
        raise ValueError(
            f"treated has shape {T.shape}, X has {cells.shape}; pass one bool for each "
            "cell of X."
        )
    names = zip(("index", "columns"), _names(X), _names(treated), strict=True)
    for axis, ours, theirs in names:
        if ours is not None and theirs is not None and list(ours) != list(theirs):
            raise ValueError(
                f"treated and X have different labels in their {axis}; reindex treated "
                "like X."
            )
    if not np.isin(T, (0, 1)).all():
        raise ValueError(
            "treated must hold bools, none of which is missing: True at the treated "
            "cells."
        )
    if not T.any():
        raise ValueError("treated has no treated cell; set it to True at some cells.")
    return T.astype(bool)


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
