"""Bounds of completed cells and of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    TreesCompleter,
)

rng = np.random.RandomState(0)
TRUTH = rng.randn(150, 1) + 0.5 * rng.randn(150, 3)
X = np.where(rng.rand(150, 3) < 0.3, np.nan, TRUTH)
X = np.where(np.isnan(X).all(1, keepdims=True), TRUTH, X)
SATURATED = np.where((TRUTH > 1) & [True, False, False], np.nan, TRUTH)

COMPLETERS: dict[str, Any] = {
    "mean": MeanCompleter(),
    "KNN": KNNCompleter(),
    "Gaussian": GaussianCompleter(random_state=0),
    "copula": GaussianCompleter(marginals="copula", random_state=0),
    "factors": GaussianCompleter(rank=1, random_state=0),
    "chained": ChainedCompleter(n_draws=4, random_state=0),
    "trees": TreesCompleter(n_estimators=10, random_state=0),
    "linear trees": TreesCompleter(n_estimators=10, linear=True, random_state=0),
    "auto": AutoCompleter(["mean", "gaussian"], random_state=0),
}
TABLES = {
    "array": lambda x: x,
    "masked": lambda x: np.ma.masked_invalid(x),
    "frame": lambda x: pd.DataFrame(x, columns=list("abc")),
    "words": lambda x: pd.DataFrame(x, columns=list("abc")).assign(w=["u", "v"] * 75),
}
BOUNDS = {
    "inside": (X, 0.0, 0.5),
    "above all observed values": (SATURATED, 1.0, None),
    "below all observed values": (-SATURATED, None, -1.0),
}
# Every two of a completer, a container and a bound meet.
PAIRS = [
    (name, kind, bound)
    for i, name in enumerate(COMPLETERS)
    for j, kind in enumerate(TABLES)
    for k, bound in enumerate(BOUNDS)
    if (i + j + k) % 3 == 0
]


def numbers(table: Any) -> np.ndarray:
    return np.asarray(table)[:, :3].astype(float)


@pytest.mark.filterwarnings("ignore", category=ConvergenceWarning)
@pytest.mark.parametrize(("name", "kind", "bound"), PAIRS)
def test_completions_and_draws_are_within_bounds(name, kind, bound):
    cells, low, high = BOUNDS[bound]
    completer, table = COMPLETERS[name], TABLES[kind](cells)
    bounds = {"min_value": low, "max_value": high}
    own = kind != "words"
    own = completer.set_params(**bounds) if own else MixedCompleter(completer, **bounds)
    try:
        own.fit(table)
        missing = np.isnan(cells)
        low, high = (np.nan_to_num(low or -np.inf), np.nan_to_num(high or np.inf))
        found = [own.transform(table)]
        if hasattr(own, "predict_interval"):
            found += own.predict_interval(table)
        for filled in map(numbers, found):
            assert ((low <= filled) & (filled <= high))[missing].all()
            np.testing.assert_array_equal(filled[~missing], cells[~missing])
        if hasattr(own, "sample"):
            draws = np.stack([numbers(d) for d in own.sample(table, 3, 0)])[:, missing]
            assert ((low <= draws) & (draws <= high)).all()
            # They are truncated, not clipped.
            assert np.isin(draws, [low, high]).mean() < 0.05
    finally:
        completer.set_params(min_value=None, max_value=None)


def test_truncated_draws_have_the_truncated_distribution():
    completer = GaussianCompleter(0.0, min_value=0.0, max_value=[np.inf, np.inf, 1.0])
    many = np.random.RandomState(1).randn(4000, 3) @ [
        [1, 0.6, 0.3],
        [0, 1, 0],
        [0, 0, 1],
    ]
    completer.fit(many)
    draws = completer.sample(np.tile([[np.nan, 0.5, np.nan]], (4000, 1)), 1, 0)[0]
    mean, cov = completer.location_, completer.covariance_
    free = np.random.RandomState(2).multivariate_normal(mean, cov, 400_000)
    free = free[np.abs(free[:, 1] - 0.5) < 0.05]
    inside = free[(free[:, 0] > 0) & (free[:, 2] > 0) & (free[:, 2] < 1)]
    for column in (0, 2):
        quantiles = [0.1, 0.5, 0.9]
        np.testing.assert_allclose(
            np.quantile(draws[:, column], quantiles),
            np.quantile(inside[:, column], quantiles),
            atol=0.06,
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda bounds: GaussianCompleter(**bounds),
        lambda bounds: KNNCompleter(**bounds),
        lambda bounds: AutoCompleter(["mean"], **bounds),
        lambda bounds: MixedCompleter(MeanCompleter(), **bounds),
    ],
)
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"min_value": 5, "max_value": 1}, r"min_value=5 of column 0 \('a'\) is above"),
        ({"min_value": {"c": 2}, "max_value": 1}, r"column 2 \('c'\)"),
        ({"max_value": [1.0, 2.0]}, r"max_value has shape \(2,\)"),
        ({"min_value": {"z": 0}}, "min_value.* names column 'z'"),
        (
            {"min_value": {"a": "low"}},
            "min_value.*(must have numbers|is a date or text)",
        ),
    ],
)
def test_bad_bounds_name_parameter_and_column(make, bounds, message):
    table = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(ValueError, match=message):
        make(bounds).fit(table)


def test_bounds_of_categories_and_of_the_matrix_are_errors():
    table = TABLES["words"](X)
    with pytest.raises(ValueError, match=r"'w'.*which has no numbers"):
        MixedCompleter(MeanCompleter(), min_value={"w": 0}).fit(table)
    with pytest.raises(ValueError, match="pass min_value to MixedCompleter"):
        MixedCompleter(MeanCompleter(min_value=0)).fit(table)


def test_rounded_completions_are_within_bounds_of_more_decimals():
    whole = np.array([[1.0, 2], [4, 8], [9, 18], [9, np.nan]])
    filled = MixedCompleter(MeanCompleter(), min_value={1: 9.5}).fit_transform(whole)
    assert filled[-1, 1] == 10.0
    between = MixedCompleter(MeanCompleter(), min_value=9.4, max_value=9.6)
    assert 9.4 <= between.fit_transform(whole)[-1, 1] <= 9.6


def test_bounds_by_name_reach_new_columns_of_partial_fit():
    completer = MeanCompleter(max_value=1.0).fit([[1.0, 5.0], [3.0, np.nan]])
    completer.partial_fit([[2.0, 4.0, 6.0]])
    assert completer.transform([[0.0, np.nan, np.nan]]).tolist() == [[0.0, 1.0, 1.0]]


def test_min_value_of_the_command_is_in_the_unit_of_the_file(tmp_path):
    from skmc._command.main import main

    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = [f"{1 - i % 2},{i % 2}.5,{'uv'[i % 2]}" for i in range(20)]
    source.write_text("\n".join(["a,b,c", *lines, "0,,v"]))
    setting = ["--method", "mean", "--set", "min_value=1.21"]
    assert main(["complete", str(source), str(target), *setting]) in (0, None)
    assert float(target.read_text().splitlines()[-1].split(",")[1]) == 1.3
