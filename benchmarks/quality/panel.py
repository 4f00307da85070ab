"""Effects of policies: ``python -m benchmarks.quality.panel [page | FOLDER | FILE]``.

Estimates the effects in three panels, and errors where there is no effect: each
untreated unit takes the place of the treated one. It measures what is not in
``docs/reproduction/records/panel.json`` yet and writes ``panel.md``. FILE is
``prop99.npz``, with ``sales`` (states x years), ``years`` and ``state_ids``. FOLDER has
this file, and ``germany.csv`` and ``basque.csv`` of the folder ``data`` of
https://github.com/sdfordham/pysyncon. Without an argument, it is ``panel`` in the
folder ``SKMC_DATA``.

Other programs are measured where they are installed: causaltensor (0.1.12), diff-diff,
mlsynth and pysyncon.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.shared.pages import chart, table, write_page
from benchmarks.shared.results import Results
from skmc import GaussianCompleter, SoftImputeCompleter
from skmc.panel import effect

# The outcomes of one unit from those of all, without its own since a time.
Predict = Callable[[np.ndarray, int, int], np.ndarray]
LEVELS = (0.9, 0.95)


class Panel(NamedTuple):
    """Outcomes of (n_units, n_times), the treated row and its first treated column."""

    X: np.ndarray
    unit: int
    start: int


def proposition_99(folder: Path) -> Panel:
    with np.load(folder / "prop99.npz") as file:
        unit = int(np.flatnonzero(file["state_ids"] == CALIFORNIA)[0])
        start = int(np.flatnonzero(file["years"] == 1989)[0])
        return Panel(file["sales"].astype(float), unit, start)


CALIFORNIA = 3  # its number in this file


def read(path: Path, names: str, outcome: str, treated: str, first: int) -> Panel:
    pd = importlib.import_module("pandas")

    wide = pd.read_csv(path).pivot(index=names, columns="year", values=outcome)
    wide = wide.drop(index="Spain (Espana)", errors="ignore")  # all regions together
    unit, start = wide.index.get_loc(treated), wide.columns.get_loc(first)
    return Panel(wide.to_numpy(float), int(unit), int(start))


PANELS: dict[str, tuple[str, str, Callable[[Path], Panel]]] = {
    "prop99": ("Proposition 99", "prop99.npz", proposition_99),
    "germany": (
        "German reunification",
        "germany.csv",
        lambda folder: read(
            folder / "germany.csv", "country", "gdp", "West Germany", 1990
        ),
    ),
    "basque": (
        "Terrorism in the Basque Country",
        "basque.csv",
        lambda folder: read(
            folder / "basque.csv",
            "regionname",
            "gdpcap",
            "Basque Country (Pais Vasco)",
            1970,
        ),
    ),
}


def completed(completer) -> Predict:
    def predict(X: np.ndarray, unit: int, start: int) -> np.ndarray:
        X = X.copy()
        X[unit, start:] = np.nan
        return clone(completer).fit(X).reconstruction_[unit]

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
OURS = '`SoftImputeCompleter(fixed_effects="both")`, the default'
GAUSSIAN = "`GaussianCompleter()`"
METHODS: dict[str, tuple[Predict, str | None]] = {
    OURS: (completed(DEFAULT), None),
    "`SoftImputeCompleter()`": (completed(SoftImputeCompleter(random_state=0)), None),
    GAUSSIAN: (completed(GaussianCompleter(random_state=0)), None),
    "difference in differences": (differences, None),
    "synthetic control of pysyncon": (synthetic_control, "pysyncon"),
    "synthetic DiD of diff-diff": (synthetic_differences, "diff-diff"),
    "MC-NNM of causaltensor": (causaltensor, "causaltensor"),
    "MC-NNM of mlsynth": (mlsynth, "mlsynth"),
}


def scores(predict: Predict, panel: Panel) -> dict[str, float]:
    X, unit, start = panel
    rest = np.delete(X, unit, 0)
    effects = (X[unit] - predict(X, unit, start))[start:]
    placebos = [(rest[k] - predict(rest, k, start))[start:] for k in range(len(rest))]
    return {
        "att": float(effects.mean()),
        "rmse": float(np.mean([np.sqrt(np.mean(gaps**2)) for gaps in placebos])),
        "fits": len(X),
    }


def coverage(completer, panel: Panel) -> dict[str, float | None]:
    """How often intervals contain zero if an untreated unit counts as treated.

    Each interval is of the placebos of the units that remain, which are fitted anew.
    None is an interval that is infinite, because the placebos are too few.
    """
    rest = np.delete(panel.X, panel.unit, 0)
    inside: dict[str, list[bool]] = {}
    bounded: dict[str, bool] = {}
    for k in range(len(rest)):
        treated = np.zeros(rest.shape, bool)
        treated[k, panel.start :] = True
        found = effect(rest, treated, completer, random_state=0)
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
        key: float(np.mean(some)) if bounded[key] else None
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
    X, unit, start = panel
    found = []
    for seed in range(10):
        predict = completed(clone(completer).set_params(random_state=seed))
        found.append(float((X[unit] - predict(X, unit, start))[start:].mean()))
    return {"smallest": min(found), "largest": max(found)}


def run(results: Results, folder: Path) -> None:
    for name, (_, file, load) in PANELS.items():
        if not (folder / file).is_file():
            print(f"{folder / file} does not exist, skipped", flush=True)
            continue
        panel = load(folder)
        for method, (predict, package) in METHODS.items():
            key = f"{name}/{method}/0"
            try:
                release = {"version": version(package)} if package else {}
            except PackageNotFoundError:
                if "att" not in results.records.get(key, {}):
                    results.keep(key, {"skipped": f"{package} is not installed"})
                continue
            if "skipped" in results.records.get(key, {}):
                del results.records[key]

            def score(_: object, given=(predict, panel), release=release) -> dict:
                return {**scores(*given), **release}

            results.measure(key, None, score, None)
        for method, completer in (
            (OURS, DEFAULT),
            (GAUSSIAN, GaussianCompleter(random_state=0)),
        ):
            results.measure(
                f"coverage, {name}/{method}/0",
                completer,
                lambda own, panel=panel: coverage(own, panel),
                None,
            )
            results.measure(
                f"seeds, {name}/{method}/0",
                completer,
                lambda own, panel=panel: by_seed(own, panel),
            )
        results.measure(
            f"effect, {name}/{OURS}/0", None, lambda _, p=panel: before(p), None
        )


def digits(value: float) -> str:
    """Four digits, or all of those before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:#.4g}"


def estimates(results: Results, name: str) -> str:
    rows = []
    for method in METHODS:
        record = results.records.get(f"{name}/{method}/0", {})
        if "att" in record:
            release = f" {record['version']}" if "version" in record else ""
            numbers = [digits(record[key]) for key in ("att", "rmse")]
            rows.append([method + release, *numbers, f"{record['seconds']:.1f}"])
    rows.sort(key=lambda row: float(row[2]))
    return table(["method", "ATT", "placebo RMSE", "seconds"], rows)


def intervals(results: Results) -> str:
    rows = []
    for name, (title, *_) in PANELS.items():
        for method in (OURS, GAUSSIAN):
            record = results.records.get(f"coverage, {name}/{method}/0", {})
            for kind in ("placebos", "draws"):
                keys = [f"{kind}, {100 * level:.0f} %" for level in LEVELS]
                if keys[0] in record:
                    found = [record[key] for key in keys]
                    shown = ["infinite" if f is None else f"{f:.2f}" for f in found]
                    rows.append([title, method, kind, *shown])
    return table(["panel", "completer", "interval of", "90 %", "95 %"], rows)


def relative(results: Results) -> dict[str, float]:
    """Geometric means of the placebo errors over the lowest one of the panel."""
    errors = {
        method: found
        for method in METHODS
        if None
        not in (found := [results.mean(f"{name}/{method}", "rmse") for name in PANELS])
    }
    lowest = np.min([*errors.values()], axis=0)
    return {m: geometric_mean(np.divide(e, lowest)) for m, e in errors.items()}


def page(results: Results) -> None:
    means = relative(results)
    best, own_mean = min(means, key=means.__getitem__), means[OURS]
    named = {OURS: "effect() of skmc, the default"}
    drawn = {named.get(method, method): mean for method, mean in means.items()}
    fields: dict[str, object] = {"coverage": intervals(results)}
    for name in PANELS:
        fields[name] = estimates(results, name)
    own = results.records[f"effect, prop99/{OURS}/0"]
    low, high = (own["att"] + sign * own["half width"] for sign in (-1, 1))
    fields |= {"interval": f"[{low:.1f}, {high:.1f}]", "p": f"{own['p']:.3f}"}
    for field, method in (("own_seeds", OURS), ("gaussian_seeds", GAUSSIAN)):
        seeds = results.records[f"seeds, prop99/{method}/0"]
        fields[field] = f"{seeds['smallest']:.1f} and {seeds['largest']:.1f}"
    fields["earlier"] = f"{own['earlier']:.1f}"
    fields |= {
        "best": best,
        "best_mean": f"{means[best]:.2f}",
        "own_mean": f"{own_mean:.2f}",
        "chart": chart("panel", "Placebo error / lowest of the panel", drawn),
    }
    write_page("panel", fields)


def main() -> None:
    warnings.simplefilter("ignore")
    results = Results("panel")
    given = sys.argv[1] if len(sys.argv) > 1 else None
    if given != "page":
        home = os.environ.get("SKMC_DATA") or "~/skmc_data"
        path = Path(given or Path(home, "panel")).expanduser()
        if not path.exists():
            sys.exit(f"{path} does not exist; pass the folder of prop99.npz.")
        run(results, path.parent if path.is_file() else path)
    page(results)


if __name__ == "__main__":
    main()
