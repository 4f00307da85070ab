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
from skmc.cells import Container, Entries
from skmc.completers import SoftImputeCompleter
from skmc.linalg import Seed
from skmc.metrics import check_level
from skmc.panel.outcomes import Panel
from skmc.panel.result import PanelEffect, event_gaps, least_placebos, mean_gaps
from skmc.panel.weights import (
    LEAST_BEFORE,
    WEIGHTINGS,
    WeightedPrediction,
    Weighting,
    leave_one_out,
)

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
    _check_parameters(completer, weights, level, n_placebos)
    panel = Panel.read(X, treated, unit, time, outcome, covariates)
    rng = check_random_state(random_state)
    if weights is not None:
        estimate = _by_weights(panel, weights)
    else:
        estimate = _by_completer(panel, completer, rng)
    cells, T = panel.cells, panel.treated
    placebos = [*placebo_units(estimate.predict, cells, T, n_placebos, rng)]
    gaps, events = zip(*placebos, strict=True) if placebos else ((), ())
    least = least_placebos(level)
    if 0 < len(gaps) < least:
        warn_user(
            f"{len(gaps)} placebos give no interval of {100 * level:g} %, which needs "
            f"{least}: it is infinite. Raise n_placebos, add never-treated units, or "
            "lower level."
        )
    untreated = estimate.untreated + panel.explained
    observed, like, n_times = panel.observed, panel.like, len(panel.times)
    result = PanelEffect(
        units=panel.units,
        times=panel.times,
        observed=like(observed),
        treated=T,
        counterfactual=like(untreated),
        effects=like(np.where(T, observed - untreated, np.nan)),
        placebo_gaps=np.reshape(gaps, (len(gaps), 2, n_times)),
        placebo_events=np.reshape(events, (len(events), 2 * n_times - 1)),
        time_placebo=_earlier(estimate.predict, cells, T, weights is not None),
        level=level,
        draws=estimate.draws,
    )
    if (weighted := estimate.weighted) is not None:
        result.unit_weights, result.time_weights = weighted.mean_weights()
        result.jackknife = leave_one_out(weighted.cells, T, weighted.cohorts)
    return result


def _check_parameters(
    completer: BaseCompleter | None,
    weights: Weighting | None,
    level: float,
    n_placebos: int | None,
) -> None:
    check_level(level)
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


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Outcomes without the treatment, and how those of other cells are predicted."""

    untreated: np.ndarray  # (n_units, n_times)
    predict: Predict
    draws: np.ndarray | None = None  # (n_draws,), of the average effect
    weighted: WeightedPrediction | None = None


def _by_weights(panel: Panel, weights: Weighting) -> _Estimate:
    panel.check_weighted()
    weighted = WeightedPrediction.of(panel.cells, panel.treated, weights)
    return _Estimate(weighted.whole, predictor(weights), weighted=weighted)


def _by_completer(
    panel: Panel, completer: BaseCompleter | None, rng: np.random.RandomState
) -> _Estimate:
    if completer is None:
        completer = SoftImputeCompleter(fixed_effects="both", random_state=0)
    refuse_parameters(completer, "panel.effect", OF_PANELS)
    cells, T, draws = panel.cells, panel.treated, None
    fitted, whole = _complete(completer, cells, T)
    if hasattr(fitted, "sample"):
        hidden = np.where(T, np.nan, cells)
        drawn = fitted.sample(hidden, N_DRAWS, random_state=rng)
        draws = np.array([(cells - draw)[T].mean() for draw in drawn])
    return _Estimate(whole, predictor(completer), draws)


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
            before = np.where(pattern & ~placebo, np.nan, gaps)
            yield mean_gaps(gaps, placebo), event_gaps(before, pattern)


def _earlier(
    predict: Predict, cells: np.ndarray, treated: np.ndarray, by_weights: bool
) -> np.ndarray:
    """Return the mean gap in the times to which the treatment is moved, (n_times,)."""
    ever = np.asarray(treated.any(1))
    first, times = treated.argmax(1), np.arange(treated.shape[1])
    by = first[ever].min() // EARLIER
    until = first[:, None] - times
    pretended = np.logical_and(until > 0, until <= by)
    untreated = ~treated & ~np.isnan(cells)
    pretended &= ever[:, None] & untreated & (untreated & ~pretended).any(0)
    rest = np.where(treated | pretended, np.nan, cells)
    short = by_weights and pretended[:, :LEAST_BEFORE].any()
    if short or not pretended.any() or np.isnan(rest[ever]).all(1).any():
        return np.full(len(times), np.nan)
    return mean_gaps(cells - predict(rest, pretended), pretended)[0]
