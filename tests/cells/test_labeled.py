"""Matrices with labels of other libraries: AnnData, xarray, Arrow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from conftest import KINDS, make, small_problem

from skmc import (
    FactorizationCompleter,
    GroupedCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    SVDCompleter,
    metrics,
)

xr = pytest.importorskip("xarray", reason="xarray is not installed")
ad = pytest.importorskip("anndata", reason="anndata is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_kind = pytest.mark.parametrize("cls", KINDS)


@pytest.fixture
def matrix():
    return small_problem()[1].filled(np.nan)


def labeled(matrix, **more):
    n_rows, n_cols = matrix.shape
    coords = {
        "time": pd.date_range("2024-01-01", periods=n_rows),
        "station": [f"s{k}" for k in range(n_cols)],
        "height": ("station", np.arange(n_cols)),
        "run": 3,
    }
    dims = "time", "station"
    return xr.DataArray(matrix, coords, dims, "flow", {"units": "m3"}, **more)


def table_of(matrix):
    columns = np.ma.masked_invalid(matrix).T
    return pa.table({f"c{k}": pa.array(own.tolist()) for k, own in enumerate(columns)})


@every_kind
def test_data_arrays_are_completed_with_their_labels(cls, matrix):
    X = labeled(matrix)
    expected = make(cls).fit_transform(pd.DataFrame(matrix))
    completer = make(cls).fit(X)
    for found in (completer.transform(X), make(cls).fit_transform(X)):
        xr.testing.assert_identical(found, X.copy(data=expected))
    assert completer.feature_names_in_.tolist() == X["station"].values.tolist()
    assert completer.score(X, X.copy(data=expected)) <= 0


@every_kind
def test_arrow_tables_and_anndata_are_read(cls, matrix):
    expected = make(cls).fit_transform(pd.DataFrame(matrix))
    for X in (table_of(matrix), table_of(matrix).to_batches()[0], ad.AnnData(matrix)):
        found = make(cls).fit_transform(X)
        np.testing.assert_array_equal(found, expected)
        assert type(found) is np.ndarray


@every_kind
def test_sparse_anndata_equals_dense(cls, matrix):
    """Cells that are not stored are zeros, and missing for missing_values=0 alone."""
    filled = np.nan_to_num(matrix)
    counts, sparse = ad.AnnData(filled), ad.AnnData(sp.csr_array(filled))
    whole = make(cls).fit_transform(sparse)
    np.testing.assert_array_equal(whole, filled)
    zero = make(cls, missing_values=0)
    found, expected = zero.fit_transform(sparse), zero.fit_transform(counts)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(found, zero.transform(sparse))


def test_genes_are_compared_with_those_of_the_fit(matrix):
    X = ad.AnnData(matrix)
    X.var_names = [f"gene {k}" for k in range(X.n_vars)]
    for missing, cells in ((np.nan, matrix), (0, sp.csr_array(np.nan_to_num(matrix)))):
        X.X = cells
        completer = FactorizationCompleter(missing_values=missing, random_state=0)
        completer.fit(X)
        assert completer.feature_names_in_.tolist() == X.var_names.tolist()
        assert completer.transform(X[:3]).shape == (3, X.n_vars)
        with pytest.raises(ValueError, match="feature names"):
            completer.transform(X[:, ::-1])


def test_anndata_in_a_file(matrix, tmp_path):
    X = ad.AnnData(sp.csr_matrix(np.nan_to_num(matrix)))
    X.obs_names, X.var_names = X.obs_names.astype(object), X.var_names.astype(object)
    X.write_h5ad(tmp_path / "X.h5ad")
    backed = ad.read_h5ad(tmp_path / "X.h5ad", backed="r")
    completer = KNNCompleter(missing_values=0)
    expected = completer.fit_transform(X)
    np.testing.assert_array_equal(completer.fit_transform(backed), expected)
    backed.file.close()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_types_of_data_arrays(dtype):
    X = xr.DataArray(np.arange(12).reshape(4, 3).astype(dtype))
    found = SVDCompleter(1).fit_transform(X)
    assert found.dtype == (np.float32 if dtype == np.float32 else float)
    np.testing.assert_array_equal(found, X)


def test_cubes_are_completed_as_stacks(matrix):
    cube = xr.DataArray(matrix.reshape(len(matrix), 2, -1), dims=("time", "y", "x"))
    with pytest.raises(ValueError, match=r"stack\(column=\['y', 'x'\]\)") as caught:
        SVDCompleter().fit(cube)
    assert "unstack" in str(caught.value)
    flat = SVDCompleter(2).fit_transform(cube.stack(column=["y", "x"]))
    expected = SVDCompleter(2).fit_transform(matrix)
    np.testing.assert_allclose(flat.unstack("column"), expected.reshape(cube.shape))
    # A metric and a truth take any number of dimensions.
    assert metrics.mae(flat.unstack("column"), expected.reshape(cube.shape)) < 1e-9


def test_series_take_the_times_of_data_arrays():
    rng = np.random.RandomState(0)
    hours = pd.date_range("2024-01-01", periods=24 * 8, freq="h")
    values = 5 + np.sin(hours.hour.to_numpy() * np.pi / 12)[:, None] * [1, 2, 3]
    X = pd.DataFrame(values + 0.1 * rng.randn(*values.shape), hours, list("abc"))
    X.iloc[50:60, 0] = np.nan
    array = xr.DataArray(X, dims=("time", "sensor"), attrs={"units": "kW"})
    completer = SeriesCompleter(SVDCompleter(1), random_state=0)
    expected = completer.fit_transform(X)
    assert completer.periods_ == [24]
    found = completer.fit_transform(array)
    assert completer.periods_ == [24]
    xr.testing.assert_identical(found, array.copy(data=expected))
    with pytest.raises(ValueError, match=r"pass X\.T"):
        completer.fit(array.T)
    with pytest.raises(ValueError, match=r"pass X\.T"):
        completer.fit(X.T)


def test_tables_of_arrow_keep_their_types(matrix):
    rng = np.random.RandomState(0)
    words = rng.choice(["red", "blue"], 40)
    X = pa.table(
        {
            "n": pa.array(rng.randint(9, size=40)),
            "x": pa.array(rng.randn(40), pa.float32()),
            "color": pa.array(np.where(rng.rand(40) < 0.2, None, words).tolist()),
        }
    )
    gone = pa.array([None if k % 7 == 0 else k for k in range(40)], pa.int64())
    X = X.set_column(0, "n", gone).replace_schema_metadata({"source": "survey"})
    grouped = GroupedCompleter(MixedCompleter(MeanCompleter()), by="color")
    for completer in (MixedCompleter(KNNCompleter()), MixedCompleter(), grouped):
        found = completer.fit_transform(X)
        assert found.column_names == X.column_names
        assert set(found.schema.types[1:]) <= {pa.float32(), pa.string()}
        assert found.schema.metadata == X.schema.metadata
        assert found["n"].null_count == 0
        kept = X["n"].is_valid().to_numpy()
        np.testing.assert_array_equal(
            found["n"].to_numpy()[kept], X["n"].drop_null().to_numpy()
        )


def test_set_output_chooses_the_container(matrix):
    X = labeled(matrix)
    for completer in (SVDCompleter(1), MixedCompleter(MeanCompleter())):
        frame = completer.set_output(transform="pandas").fit_transform(X)
        assert isinstance(frame, pd.DataFrame)
        assert list(frame) == X["station"].values.tolist()
        frame = completer.set_output(transform="polars").fit_transform(table_of(matrix))
        assert isinstance(frame, pl.DataFrame)


@pytest.mark.parametrize("cls", [SVDCompleter, MixedCompleter, SeriesCompleter])
def test_errors_name_the_remedy(cls, matrix):
    X = labeled(matrix)
    with pytest.warns(UserWarning, match="not unique"):
        twice = ad.AnnData(matrix, var=pd.DataFrame(index=["g"] * matrix.shape[1]))
    for wrong, error, remedy in (
        (X[0], ValueError, r"X\.expand_dims\('column', axis=1\)"),
        (xr.Dataset({"flow": X}), TypeError, r"one of its variables \['flow'\]"),
        (pl.DataFrame(matrix).lazy(), TypeError, r"pass X\.collect\(\)"),
        (ad.AnnData(shape=(3, 2)), ValueError, "X of the AnnData is None"),
        (twice, ValueError, r"named 'g'; call adata\.var_names_make_unique"),
    ):
        with pytest.raises(error, match=remedy):
            cls().fit(wrong)


def test_columns_that_a_data_array_cannot_have(matrix):
    with pytest.raises(ValueError, match="add_indicator=False"):
        SVDCompleter(add_indicator=True).fit_transform(labeled(matrix))
    twice = labeled(matrix).assign_coords(station=["s"] * matrix.shape[1])
    with pytest.raises(ValueError, match="columns named 's'"):
        SVDCompleter().fit(twice)
