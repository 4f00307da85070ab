"""Panels as they are passed by users: outcomes, treated cells, covariates, labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from skmc.cells import to_cells
from skmc.panel.weights import LEAST_BEFORE
from skmc.tables import as_dates

ROUNDING = 1e-15  # of least squares
MAX_STEPS = 10_000


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
        cells: np.ndarray = self.observed - self.explained
        return cells

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
    of_covariates = {f"covariates[{k}]": name for k, name in enumerate(covariates)}
    for parameter, name in (given | of_covariates).items():
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
    observed = ~np.isnan(cells)
    used = observed & ~treated
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for k, covariate in enumerate(covariates):
        name = f"covariates[{k}]"
        Z = to_cells(covariate, name=name).astype(float)
        _check_like(name, covariate, Z, X, cells)
        lost = np.argwhere(observed & np.isnan(Z))
        if len(lost):
            i, t = lost[0]
            raise ValueError(
                f"{name} is missing for unit {units[i]} at time {times[t]}, whose "
                "outcome is observed; fill it, or leave it out."
            )
        residuals = _without_effects(Z, used)
        left = residuals
        if columns:
            A = np.array(columns).T
            left = residuals - A @ np.linalg.lstsq(A, residuals)[0]
        if not abs(left).max() > 1e-8 * abs(Z[used] - Z[used].mean()).max():
            raise ValueError(
                f"{name} is a sum of effects of units and times and of the covariates "
                "before it, so its effect is unknown; leave it out."
            )
        columns.append(residuals)
        values.append(np.where(observed, Z, 0))
    y = _without_effects(cells, used)
    coefficients = np.linalg.lstsq(np.array(columns).T, y)[0]
    return np.asarray(np.tensordot(coefficients, np.array(values), 1))


def _without_effects(cells: np.ndarray, used: np.ndarray) -> np.ndarray:  # (n_cells,)
    """Return the residuals of effects of units and times at the used cells."""
    rows, cols = np.nonzero(used)
    place = np.stack([rows, len(cells) + cols], 1).ravel()
    starts, n_effects = np.arange(0, len(place) + 1, 2), sum(cells.shape)
    dummies = sp.csr_array((np.ones(len(place)), place, starts), (len(rows), n_effects))
    scale = sp.diags_array(1 / np.sqrt(np.maximum(dummies.sum(0), 1)))
    design, y = dummies @ scale, cells[used]
    exact = {"atol": ROUNDING, "btol": ROUNDING, "conlim": 0, "maxiter": MAX_STEPS}
    left: np.ndarray = y - design @ lsmr(design, y, **exact)[0]
    return left


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
    untreated = ~treated & ~np.isnan(cells)
    alone = treated.any(1) & ~untreated.any(1)
    if alone.any():
        raise ValueError(
            f"Unit {units[alone.argmax()]} has no observed cell without treatment, so "
            "nothing predicts its outcomes; leave it out."
        )
    alone = treated.any(0) & ~untreated.any(0)
    if alone.any():
        raise ValueError(
            f"At time {times[alone.argmax()]}, no untreated unit is observed, so "
            "nothing predicts the outcomes of this time; leave it out, or add units."
        )
