"""Every completer is as accurate as it was, on the problems that it is for.

`accuracy.csv` holds the reference values. A better method is a change as well, so a
lower error fails until ``python -m pytest tests/library/test_accuracy.py
--update`` has written it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import skmc
from skmc import Entries, patterns
from skmc.checks import all_completers
from skmc.checks.problems import low_rank
from skmc.datasets import load_photo
from skmc.metrics import auc

pytestmark = pytest.mark.filterwarnings("ignore")

FILE = Path(__file__).with_name("accuracy.csv")
TOLERANCE = 1.02  # of rows of the file that have none of their own
IMPROVED = 0.95
SEEDS = (0, 1)

# The defaults of these take long, and a clock decides about candidates.
FEW = {"candidates": ["mean", "knn", "svd", "gaussian"], "max_time": None}
PARAMS: dict[str, dict[str, Any]] = {
    "AutoCompleter": FEW,
    "MixedCompleter": {"completer": skmc.GaussianCompleter(random_state=0)},
}


@dataclass
class Problem:
    """Cells to complete.

    ``error`` compares a completion of ``X``, or whatever ``answer`` asks of a fitted
    completer, with the truth.
    """

    X: Any
    error: Callable[[Any], float]
    answer: Callable[[Any, Any], Any] = lambda completer, X: completer.fit_transform(X)
    params: dict[str, Any] = field(default_factory=dict)


def of_columns(truth: np.ndarray, hidden: np.ndarray) -> Callable[[Any], float]:
    """Compare columns in their own deviations; the mean and the worst count equally."""
    deviations = truth.std(0)

    def error(completed: Any) -> float:
        misfit = (np.asarray(completed, float) - truth) / deviations
        squares = np.where(hidden, misfit**2, 0).sum(0) / hidden.sum(0)
        return float(np.sqrt(squares.mean()) + np.sqrt(squares.max())) / 2

    return error


def of_cells(truth: np.ndarray, hidden: np.ndarray) -> Callable[[Any], float]:
    """Compare cells of one unit, in deviations of all cells."""

    def error(completed: Any) -> float:
        misfit = (np.asarray(completed, float) - truth)[hidden]
        return float(np.sqrt(np.mean(misfit**2)) / truth.std())

    return error


def table(truth: np.ndarray, hidden: np.ndarray, **options: Any) -> Problem:
    return Problem(
        np.where(hidden, np.nan, truth), of_columns(truth, hidden), **options
    )


def one_unit(truth: np.ndarray, hidden: np.ndarray, **options: Any) -> Problem:
    return Problem(np.where(hidden, np.nan, truth), of_cells(truth, hidden), **options)


def wine() -> Problem:
    """Columns of a table in units that differ by factors up to a thousand."""
    truth = load_wine().data
    return table(truth, patterns.random(truth, 0.2, spare=True, random_state=0))


def wine_rows() -> Problem:
    """Rows that were not in the fit."""
    truth = load_wine().data[np.random.RandomState(0).permutation(178)]
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    X, new = np.where(hidden, np.nan, truth), slice(110, None)
    return Problem(
        X,
        of_columns(truth[new], hidden[new]),
        lambda completer, X: completer.fit(X[:110]).transform(X[new]),
    )


def skewed() -> Problem:
    """Skewed columns, one of which has a tiny unit."""
    rng = np.random.RandomState(0)
    z = rng.randn(150, 2) @ rng.randn(2, 7) + 0.3 * rng.randn(150, 7)
    truth = np.exp(0.7 * z)
    truth[:, 3] *= 1e-4
    return table(truth, patterns.random(truth, 0.25, spare=True, random_state=0))


def mixed() -> Problem:
    """A table with categories; a wrong category counts as one deviation."""
    data = load_wine()
    frame = pd.DataFrame(data.data[:, :6], columns=list("abcdef"))
    frame["kind"] = np.array(["red", "rosé", "white"])[data.target]
    hidden = patterns.random(frame.iloc[:, :6], 0.2, random_state=0)
    hidden = np.column_stack([hidden, np.arange(178) % 4 == 0])
    numbers = of_columns(data.data[:, :6], hidden[:, :6])

    def error(completed: pd.DataFrame) -> float:
        wrong = (completed["kind"] != frame["kind"])[hidden[:, 6]].mean()
        return numbers(completed.iloc[:, :6]) + wrong

    return Problem(frame.mask(hidden), error)


def photo() -> np.ndarray:
    return load_photo("china")[140:172, 60:92]


def scattered() -> Problem:
    """A crop of a picture without 40 % of its cells."""
    truth = photo()
    return one_unit(truth, patterns.random(truth, 0.4, random_state=0))


def block() -> Problem:
    """A crop of a picture with a hole."""
    truth = photo()
    hidden = np.zeros(truth.shape, bool)
    hidden[10:17, 13:20] = True
    return one_unit(truth, hidden)


def low_rank_with_noise() -> Problem:
    """Rank 3 with noise, half of it hidden."""
    truth = low_rank(60, 40, rank=3)
    noisy = truth + 0.3 * np.random.RandomState(1).randn(60, 40)
    hidden = patterns.random(truth, 0.5, random_state=0)
    return Problem(np.where(hidden, np.nan, noisy), of_cells(truth, hidden))


def few_cells() -> Problem:
    """Rank 3 without noise, from twice as many cells as degrees of freedom."""
    truth = low_rank(60, 40, rank=3)
    hidden = patterns.random(
        truth, 1 - 2 * 3 * (60 + 40 - 3) / truth.size, random_state=0
    )
    error = of_cells(truth, hidden)
    # Rounding errors are not compared.
    return Problem(
        np.where(hidden, np.nan, truth), lambda found: max(1e-8, error(found))
    )


def exact() -> Problem:
    """Rank 3 without noise, half of it hidden."""
    truth = low_rank(60, 40, rank=3)
    hidden = patterns.random(truth, 0.5, random_state=0)
    error = of_cells(truth, hidden)
    return Problem(
        np.where(hidden, np.nan, truth), lambda found: max(1e-3, error(found))
    )


def smooth() -> Problem:
    """A surface without noise, half of it hidden."""
    i, j = np.mgrid[:40, :40]
    truth = np.sin(i / 9) * np.cos(j / 11)
    truth += np.exp(-((i - 25) ** 2 + (j - 30) ** 2) / 300)
    hidden = patterns.random(truth, 0.5, random_state=0)
    error = of_cells(truth, hidden)
    return Problem(
        np.where(hidden, np.nan, truth), lambda found: max(1e-3, error(found))
    )


def independent() -> Problem:
    """Columns that say nothing of each other: the means have an error of 1."""
    truth = np.random.RandomState(0).randn(150, 10)
    return table(truth, patterns.random(truth, 0.3, spare=True, random_state=0))


def weights() -> Problem:
    """Cells that are known well or badly, and weights that say so."""
    rng = np.random.RandomState(0)
    truth = low_rank(60, 30, rank=2) + 2
    bad = rng.rand(60, 30) < 0.4
    hidden = patterns.random(truth, 0.3, random_state=0)
    X = truth + np.where(bad, 2.0, 0.1) * rng.randn(60, 30)

    def answer(completer: Any, X: np.ndarray) -> np.ndarray:
        return completer.fit(X, cell_weight=np.where(bad, 0.0025, 1.0)).transform(X)

    return Problem(np.where(hidden, np.nan, X), of_cells(truth, hidden), answer)


def ratings() -> Problem:
    """Stars that users gave to a sixth of the films, as cells."""
    rng = np.random.RandomState(0)
    shape = (150, 60)
    truth = low_rank(*shape, rank=3, seed=1) * 0.5 + rng.randn(*shape[1:]) * 0.5
    truth = (3 + truth + 0.4 * rng.randn(shape[0], 1)).clip(1, 5)
    given, asked = (np.nonzero(part) for part in _parts(rng.rand(*shape)))
    stars = np.round(truth[given] + 0.3 * rng.randn(len(given[0]))).clip(1, 5)

    def error(found: np.ndarray) -> float:
        return float(np.sqrt(np.mean((found - truth[asked]) ** 2)))

    return Problem(
        Entries.from_triplets(*given, stars, shape),
        error,
        lambda completer, X: completer.fit(X).predict_entries(*asked),
    )


def _parts(chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return chance < 0.17, chance > 0.8


def counts() -> Problem:
    """Purchases; a random order of what users would buy next has an error of .5."""
    rng = np.random.RandomState(0)
    taste = np.exp(low_rank(120, 50, rank=3, seed=1))
    bought = rng.poisson(0.3 * taste)
    later = bought * (rng.rand(120, 50) < 0.3)
    before = bought - later
    rows, cols = np.nonzero(before)
    cells = Entries.from_triplets(rows, cols, before[rows, cols], before.shape)

    def error(found: np.ndarray) -> float:
        return 1 - auc(found, later, before == 0)

    return Problem(
        cells,
        error,
        lambda completer, X: completer.fit(X).reconstruction_,
        {"rank": 4, "lambda_ridge": 0.1, "alpha": 10.0},
    )


def weekly() -> Problem:
    """Days of eight weeks, of series with gaps of some days."""
    rng = np.random.RandomState(0)
    days = pd.date_range("2024-01-01", periods=56)
    week = rng.randn(7, 3)[np.arange(56) % 7]
    trend = np.cumsum(rng.randn(56, 3), 0) * 0.2
    truth = (week + trend) @ rng.randn(3, 3) * [1, 10, 0.1] + 20
    truth += 0.1 * truth.std(0) * rng.randn(56, 3)
    hidden = patterns.runs(truth, 5, 0.2, random_state=0)
    X = pd.DataFrame(np.where(hidden, np.nan, truth), days)
    return Problem(X, of_columns(truth, hidden))


def panel() -> Problem:
    """Units that are treated late, without their treated times."""
    rng = np.random.RandomState(0)
    truth = 5 * rng.randn(40, 1) + np.linspace(0, 4, 24)
    truth = truth + rng.randn(40, 2) @ np.cumsum(rng.randn(2, 24), 1) * 0.3
    hidden = np.zeros(truth.shape, bool)
    for unit, start in enumerate([14, 14, 16, 18, 18, 20]):
        hidden[unit, start:] = True
    X = np.where(hidden, np.nan, truth + 0.3 * rng.randn(*truth.shape))
    return Problem(X, of_cells(truth, hidden), params={"fixed_effects": "both"})


TABLES = """Auto Autoencoder BayesianFactorization Chained Factorization Gaussian IALM
    KNN Mean NCARL NSR SNN SVD SoftImpute TNNR Trees"""
PROBLEMS: dict[Callable[[], Problem], str] = {
    wine: f"{TABLES} AIR DMF SVT BiBNN",
    wine_rows: TABLES,
    skewed: "Auto Chained Gaussian KNN Mean NCARL NSR SVD SoftImpute Trees",
    mixed: "Mixed",
    scattered: "AIR Biharmonic DMF IALM NCARL Nonlocal PatchCNN SNN SVD TNNR",
    block: "AIR Biharmonic Nonlocal PatchCNN",
    low_rank_with_noise: """AIR BayesianFactorization BiBNN DMF Factorization Gaussian
        GradualNSR IALM LinkedFactorization LogDet NSR SNN SVD SVT SoftImpute TNNR""",
    weights: "AIR BayesianFactorization DMF Factorization Mean SNN SVD SoftImpute",
    ratings: "AIR BayesianFactorization Factorization KNN Mean SVD SoftImpute",
    counts: "Factorization",
    weekly: "Gaussian Series",
    panel: "SoftImpute",
    few_cells: "Factorization LogDet",
    # Kinds on which defaults are to hold that are for others.
    exact: """AIR Autoencoder BayesianFactorization BiBNN DMF Factorization Gaussian
        LinkedFactorization NCARL NSR SNN SVD""",
    smooth: "AIR Autoencoder BiBNN DMF Factorization Gaussian LinkedFactorization SVD",
    independent: """AIR Autoencoder BiBNN DMF Factorization Gaussian LinkedFactorization
        NCARL NSR SVD""",
}
# The other fits take less than a second.
LONG = """Auto BayesianFactorization BiBNN Chained GradualNSR LinkedFactorization NSR
    PatchCNN SNN Series Trees"""
CASES = [
    pytest.param(
        problem,
        f"{short}Completer",
        id=f"{short}-{problem.__name__}",
        marks=[pytest.mark.long] if short in LONG.split() else [],
    )
    for problem, names in PROBLEMS.items()
    for short in names.split()
]


def measured(make_problem: Callable[[], Problem], name: str) -> float:
    """Mean error over seeds; methods without any have one error."""
    problem = make_problem()
    cls = getattr(skmc, name)
    known = cls().get_params(deep=False)
    wanted = {"device": "cpu", **PARAMS.get(name, {}), **problem.params}
    params = {key: value for key, value in wanted.items() if key in known}
    seeds = SEEDS if "random_state" in known else SEEDS[:1]
    errors = []
    for seed in seeds:
        seeded = {"random_state": seed} if len(seeds) > 1 else {}
        completer = cls(**params, **seeded)
        errors.append(problem.error(problem.answer(completer, problem.X)))
    return float(np.mean(errors))


def references() -> dict[tuple[str, str], tuple[float, float]]:
    """Error and tolerance of each completer and problem."""
    with FILE.open(newline="") as file:
        return {
            (row["completer"], row["problem"]): (
                float(row["error"]),
                float(row["tolerance"] or TOLERANCE),
            )
            for row in csv.DictReader(file)
        }


def write(found: dict[tuple[str, str], tuple[float, float]]) -> None:
    with FILE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["completer", "problem", "error", "tolerance"])
        for (completer, problem), (error, tolerance) in sorted(found.items()):
            own = "" if tolerance == TOLERANCE else f"{tolerance:.4g}"
            rows.writerow([completer, problem, f"{error:.5g}", own])


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_accuracy(problem, name, request):
    error, known = measured(problem, name), references()
    key = name, problem.__name__
    reference, tolerance = known.get(key, (np.nan, TOLERANCE))
    if request.config.getoption("--update"):
        write({**known, key: (error, tolerance)})
        return
    says = f"{name} on {problem.__name__}: error {error:.4g}, reference {reference:.4g}"
    assert key in known, f"{says}: run with --update"
    assert error <= tolerance * reference, f"regressed: {says}"
    assert error >= min(IMPROVED, 1 / tolerance) * reference, (
        f"improved; run with --update: {says}"
    )


def test_every_completer_has_a_reference():
    """And every reference is a case, so that none is left over from an old problem."""
    cases = {(case.values[1], case.values[0].__name__) for case in CASES}
    assert references().keys() == cases
    tested = {name for name, _ in cases}
    assert {cls.__name__ for cls in all_completers()} <= tested
