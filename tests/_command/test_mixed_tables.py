"""The command completes a table as `MixedCompleter` does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    KNNCompleter,
    MixedCompleter,
    TreesCompleter,
)
from skmc._command.main import main
from skmc.uncertainty import MultipleCompletion

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CANDIDATES = ["mean", "knn", "gaussian", "chained"]
QUICK = {"lambda_ridge": 1.0, "max_iter": 8}
METHODS = {
    "knn": (KNNCompleter(), {}),
    "gaussian": (GaussianCompleter(random_state=0), QUICK),
    "chained": (ChainedCompleter(random_state=0), {"n_draws": 4}),
    "trees": (TreesCompleter(random_state=0), {"n_estimators": 4}),
    "auto": (AutoCompleter(random_state=0), {"candidates": CANDIDATES}),
}
LEVELS = ["low", "mid", "high", "top"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A file with every kind of column."""
    rng, n = np.random.RandomState(0), 50
    z = rng.randn(n)

    def follow(noise=0.4):
        return z + noise * rng.randn(n)

    day = pd.Timestamp("2020-03-01") + pd.to_timedelta(np.rint(30 * follow()), "D")
    table = pd.DataFrame(
        {
            "number": follow(),
            "integer": np.rint(10 * follow()).astype(int).astype(str),
            "decimal": [f"{x:.2f}" for x in follow()],
            "level": np.array(LEVELS)[np.digitize(follow(), [-1, 0, 1])],
            "category": np.array(["a", "b", "c"])[np.digitize(follow(1), [-0.5, 0.5])],
            "flag": (follow(1) > 0).astype(str),
            "day": day.strftime("%d.%m.%Y"),
            "time": [f"{int(12 + 3 * x) % 24:02d}:30" for x in follow()],
            "name": [f"no. {k}" for k in range(n)],
        }
    )
    hidden = rng.rand(*table.shape) < 0.15
    hidden[:, -1] = rng.rand(n) < 0.1
    path = tmp_path_factory.mktemp("tables") / "in.csv"
    table.mask(hidden).to_csv(path, index=False)
    return path


def mixed(method):
    completer, params = METHODS[method]
    return MixedCompleter(completer.set_params(**params), ordinal={"level": LEVELS})


def completed_by_command(method, source, folder, *options):
    """The completed file, and the table of the file, as pandas reads them."""
    target = folder / "out.csv"
    sets = [f"--set={k}={v}" for k, v in METHODS[method][1].items()]
    levels = "--ordinal", f"level={','.join(LEVELS)}"
    options = "--method", method, "--quiet", *sets, *levels, *options
    assert main(["complete", str(source), str(target), *options]) == 0
    return pd.read_csv(target), pd.read_csv(source)


@pytest.mark.parametrize("method", METHODS)
def test_the_command_equals_the_completer_of_tables(method, source, tmp_path):
    found, table = completed_by_command(method, source, tmp_path)
    expected = mixed(method).fit_transform(table)
    assert not expected.drop(columns="name").isna().any(axis=None)
    same = expected.astype(found.dtypes).astype(str)
    pd.testing.assert_frame_equal(found.astype(str), same)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_the_command_equal_those_of_the_completer(
    method, source, tmp_path
):
    options = "--intervals", "0.8"
    found, table = completed_by_command(method, source, tmp_path, *options)
    completer = mixed(method).fit(table)
    expected = completer.transform(table)
    if hasattr(completer, "predict_interval"):
        ends = completer.predict_interval(table, 0.8)
    else:
        many = MultipleCompletion(mixed(method), random_state=0).fit(table)
        ends = many.interval(0.8)
    for end, name, around in zip(
        ends, ("lower", "upper"), (np.minimum, np.maximum), strict=True
    ):
        for column in ("number", "integer", "decimal"):
            gone = table[column].isna()
            own = around(end[column], expected[column])[gone]
            np.testing.assert_allclose(found[f"{column} {name}"][gone], own)
            assert found[f"{column} {name}"][~gone].isna().all()
