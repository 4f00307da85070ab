"""Fitted attributes and warnings of a fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from skmc.cells import Observed, Priors, SparseObserved
from skmc.exceptions import (
    CompletionWarning,
    EmptyColumnsWarning,
    EmptyRowsWarning,
    UnitsWarning,
)
from skmc.loop import Solution, Status

# Packages whose frames are skipped to find the user's line.
SKIPPED_PACKAGES = {"skmc", "sklearn", "joblib", "contextlib", "pandas", "polars"}
# Functions that fit parts of the data. The fit to all of them warns for itself.
FOLDS = {
    ("sklearn.model_selection._validation", "_fit_and_score"),
    ("skmc.model_selection.grid", "_prepared"),
}
MAX_NAMES = 5  # columns that a warning names


def record(solution: Solution) -> dict[str, Any]:
    """Return ``n_iter_``, ``status_`` and ``history_`` of the solution of one fit."""
    return {
        "n_iter_": max(1, int(solution.n_iter)),
        "status_": solution.status[0].value,
        "history_": {
            name: values.cpu().numpy() for name, values in solution.history.items()
        },
    }


def diverged(solution: Solution, remedy: str) -> str | None:
    """Make the warning about a fit that diverged."""
    if solution.status[0] is not Status.DIVERGED:
        return None
    return (
        "diverged; the finite iterate with the lowest objective is kept. To do: "
        f"{remedy}."
    )


def unfinished(solution: Solution, tol: float) -> str | None:
    """Make the warning about a fit that reached ``max_iter``."""
    if solution.status[0] is not Status.MAX_ITER:
        return None
    return (
        f"stopped after {max(1, int(solution.n_iter))} iterations with residual > "
        f"tol={tol:g}; raise max_iter or tol."
    )


def out_of_time(
    solution: Solution, max_time: float | None, hurried: bool
) -> str | None:
    """Make the warning about a fit, or its choice, that ``max_time`` has ended."""
    limit, said = limit_of(max_time), []
    if hurried:
        said.append(f"cut its choice of hyper-parameters short at half of {limit}")
    if solution.status[0] is Status.MAX_TIME:
        n_iter = max(1, int(solution.n_iter))
        said.append(f"stopped after {n_iter} iteration{'s' * (n_iter > 1)}, at {limit}")
    if not said:
        return None
    remedy = "raise max_time, or set them" if hurried else "raise max_time"
    return f"{' and '.join(said)}; {remedy}."


def limit_of(max_time: float | None) -> str:
    """Name the time limit of a fit, which may be that of an outer one."""
    return "the time limit" if max_time is None else f"max_time={max_time:g} s"


def warn_user(
    message: str | Warning, category: type[Warning] = CompletionWarning
) -> None:
    """Warn at the innermost line outside of skmc and of libraries that call it.

    In the folds of a cross-validation, a `CompletionWarning` is left out.
    """
    level, frame = 2, sys._getframe(1)
    kind = type(message) if isinstance(message, Warning) else category
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".")[0] not in SKIPPED_PACKAGES:
            break
        in_fold = (module, frame.f_code.co_name) in FOLDS
        if in_fold and issubclass(kind, CompletionWarning):
            return
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def listed(positions: np.ndarray, names: Sequence[str] | None = None) -> str:
    """List some columns: "Columns 2, 5 and 7", "Column 'age'"."""
    items = [str(k) if names is None else repr(names[k]) for k in positions[:MAX_NAMES]]
    if (more := len(positions) - len(items)) > 0:
        items.append(f"{more} other{'s' * (more > 1)}")
    text = items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
    return f"Column{'s' * (len(positions) > 1)} {text}"


class KeepsEmpty(Protocol):
    """An estimator with the parameter ``keep_empty_features``."""

    keep_empty_features: bool


# Ratio of deviations of columns above which their units may differ: between dark and
# bright columns of a photograph it can be 40.
UNLIKE = 100
IMPOSSIBLE = 1000  # in a picture
ENOUGH = 5  # cells of a column, whose deviation is not small by chance


def ratio_of_units(data: Observed | SparseObserved) -> float:
    """Largest over smallest standard deviation of the columns, 1 without any."""
    deviations = data.scaling_of("columns").scale
    count = data.sums(torch.ones_like(data.values), by_column=True)
    deviations = deviations[(count >= ENOUGH) & (deviations > 0)]
    return float(deviations.max() / deviations.min()) if len(deviations) else 1.0


def warn_of_units(completer: object, data: Observed | SparseObserved) -> None:
    """Warn if columns that are treated as having one unit seem to have several."""
    if ratio_of_units(data) > UNLIKE:
        warn_user(
            f"{_differ(completer, UNLIKE)} If their units differ, pass "
            "scaling='columns'; otherwise, scaling='global' says so.",
            UnitsWarning,
        )


def check_picture(completer: object, data: Observed | SparseObserved) -> None:
    """Warn or raise an error if the columns of a picture have different units."""
    for_scaling = "pass scaling='columns', or " if hasattr(completer, "scaling") else ""
    remedy = (
        "This is a method for pictures. If the units differ, use MixedCompleter or "
        f"GaussianCompleter, {for_scaling}standardize the columns first."
    )
    ratio = ratio_of_units(data)
    if ratio > IMPOSSIBLE:
        raise ValueError(f"{_differ(completer, IMPOSSIBLE)} {remedy}")
    if ratio > UNLIKE:
        warn_user(f"{_differ(completer, UNLIKE)} {remedy}", UnitsWarning)


def _differ(completer: object, ratio: int) -> str:
    return (
        f"{type(completer).__name__} takes all columns as having one unit, but their "
        f"standard deviations differ by a factor above {ratio}."
    )


def warn_of_empty(completer: Any, statistics: Priors) -> None:
    """Warn about empty rows and columns of a fit, and say how they are filled."""
    if completer.completer_tags.pictures and completer.keep_empty_features:
        return
    names = getattr(completer, "feature_names_in_", None)
    empty = np.flatnonzero(statistics.empty_cols)
    kept = "filled with the row means"
    if not statistics.one_unit:
        kept = (
            "filled with 0, because columns may have different units; set "
            "keep_empty_features=False to drop them"
        )
    warn_of_empty_columns(completer, empty, names, kept)
    if not completer.completer_tags.pictures:
        warn_of_empty_rows(np.flatnonzero(statistics.empty_rows))


def warn_of_empty_columns(
    completer: KeepsEmpty,
    empty: np.ndarray,
    names: Sequence[str] | None,
    kept: str,
) -> None:
    """Warn about columns without an observed cell, if there are any."""
    if not len(empty):
        return
    action = kept if completer.keep_empty_features else "dropped"
    have, are = ("has", "is") if len(empty) == 1 else ("have", "are")
    place = listed(empty, names)
    text = f"{place} of X {have} no observed cell and {are} {action}."
    places = empty.tolist() if names is None else [names[k] for k in empty]
    warn_user(EmptyColumnsWarning(text, places=places))


def warn_of_empty_rows(empty: np.ndarray) -> None:
    """Warn about rows without an observed cell, if there are any."""
    if len(empty):
        rows = "1 row of X has" if len(empty) == 1 else f"{len(empty)} rows of X have"
        text = f"{rows} no observed cell; the column means fill such rows."
        warn_user(EmptyRowsWarning(text, places=empty.tolist()))
