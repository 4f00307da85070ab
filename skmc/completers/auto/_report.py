"""Reports of `AutoCompleter` about its candidates."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from skmc.completers.auto._race import Race, Trial
from skmc.completers.mean import MeanCompleter
from skmc.stacking import Stacking, rms


def leaderboard(race: Race, stacking: Stacking) -> list[dict[str, Any]]:
    """One row for each candidate; those that have predicted a part come first."""
    names = [t.name for t in race.members]
    shares = dict(zip(names, stacking.columns.mean(0), strict=True))
    rows = [
        {
            "candidate": trial.name,
            "status": "in the stack" if trial.name in shares else trial.status,
            "error": rms(trial.first(1)),
            "cells": sum(map(len, trial.residuals)),
            "weight": float(shares.get(trial.name, 0.0)),
            "seconds": trial.seconds,
            "warnings": trial.n_warnings,
        }
        for trial in race.trials
    ]
    return sorted(rows, key=lambda row: np.nan_to_num(row["error"], nan=np.inf))


def as_frame(rows: list[dict[str, Any]]) -> Any:
    """The leaderboard as a DataFrame."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("leaderboard_ needs pandas: pip install pandas.") from error
    return pandas.DataFrame(rows)


def verdict(race: Race, stacking: Stacking) -> str:
    """Summarize the stack, its error, and the skipped candidates in a few sentences."""
    judged, shares = race.judged, stacking.columns.mean(0)
    order = np.argsort(-shares, kind="stable")
    names = [race.members[k].name for k in order]
    if not len(stacking.residuals):
        return f"Too few cells to hold any out: the error of {names[0]} is unknown."
    said = f"{names[0]} alone"
    if len(names) > 1:
        parts = [f"{shares[k]:.0%} {n}" for k, n in zip(order, names, strict=True)]
        said = f"A stack of {_listed(parts)}"
    said += f", of {len(judged)} candidate{'s' * (len(judged) > 1)}"

    def ratio(trial: Trial) -> float:
        """Ratio of the stack's error to the trial's, on cells that both predicted."""
        own = trial.first(race.n_parts)
        return rms(stacking.residuals[: len(own)]) / (rms(own) or np.nan)

    means = [t for t in judged if isinstance(t.candidate.estimator, MeanCompleter)]
    best = max(judged, key=lambda t: np.nan_to_num(ratio(t)))
    compared = [
        f"{ratio(t):.1%} of that of {'column means' if t in means else t.name}"
        for t in ([best] if best in means else [best, *means])
        if names != [t.name]
    ]
    if compared:
        said += f": the error on held-out cells is {_listed(compared)}"
    for status in ("not tried", "failed"):
        those = [t for t in race.trials if t.status.startswith(status)]
        if those:
            why = (f"{t.name} ({t.status.partition(': ')[2]})" for t in those)
            said += f". {status.capitalize()}: {', '.join(why)}"
    return said + "."


def _listed(items: list[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last
