"""Completion of layers of AnnData."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import low_rank
from sklearn.impute import SimpleImputer
from sklearn.neighbors import kneighbors_graph

import skmc
from skmc import (
    AIRCompleter,
    FactorizationCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    omics,
    patterns,
)

ad = pytest.importorskip("anndata", reason="anndata is not installed")


@pytest.fixture
def adata():
    rng = np.random.RandomState(0)
    truth = low_rank(30, 12) + 3
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    X = ad.AnnData(np.where(hidden, np.nan, truth))
    X.layers["counts"] = sp.csr_matrix(rng.poisson(1.0, X.shape).astype(np.float32))
    X.obsm["spatial"] = rng.rand(30, 2)
    graph = kneighbors_graph(truth, 4)
    X.obsp["connectivities"] = graph.maximum(graph.T)
    # pandas writes strings of Arrow, which AnnData does not store in files.
    X.obs_names, X.var_names = X.obs_names.astype(object), X.var_names.astype(object)
    return X


def test_completes_X_and_leaves_it(adata):
    before = adata.X.copy()
    completer = SVDCompleter(3)
    fitted = omics.complete(adata, completer)
    np.testing.assert_array_equal(adata.X, before)
    expected = SVDCompleter(3).fit_transform(adata.X)
    np.testing.assert_array_equal(adata.layers["completed"], expected)
    assert fitted.feature_names_in_.tolist() == adata.var_names.tolist()
    assert not hasattr(completer, "n_features_in_"), "the completer is a clone"


def test_zeros_of_a_layer_are_missing_if_the_completer_says_so(adata):
    counts = adata.layers["counts"]
    with pytest.raises(ValueError, match=r"'counts' has no missing cell.*=0.*=False"):
        omics.complete(adata, KNNCompleter(), layer="counts")
    dense = counts.toarray()
    omics.complete(
        adata, MeanCompleter(missing_values=0), layer="counts", key_added="filled"
    )
    filled = adata.layers["filled"]
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(filled[dense > 0], dense[dense > 0])
    assert (filled[dense == 0] != 0).all()
    omics.complete(
        adata, MeanCompleter(keep_observed=False), layer="counts", key_added="smooth"
    )
    assert (adata.layers["smooth"] != dense).any()
    assert set(adata.uns["skmc"]) == {"filled", "smooth"}


def test_the_record_survives_a_file(adata, tmp_path):
    completer = FactorizationCompleter(2, random_state=0, max_iter=3, tol=0)
    with pytest.warns(Warning):
        omics.complete(adata, completer, row_graph="connectivities", key_added="als")
    adata.write_h5ad(tmp_path / "X.h5ad")
    record = ad.read_h5ad(tmp_path / "X.h5ad").uns["skmc"]["als"]
    assert record["completer"] == "FactorizationCompleter"
    assert (record["layer"], record["row_graph"]) == ("X", "connectivities")
    assert record["version"] == skmc.__version__
    params = record["params"]
    assert (params["rank"], params["tol"], params["max_iter"]) == (2, 0, 3)
    assert np.isnan(params["missing_values"]) and params["keep_observed"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_graphs_are_those_that_are_named(adata):
    X, found = adata.X, {}
    spots = kneighbors_graph(adata.obsm["spatial"], 6)
    graphs = {
        "connectivities": adata.obsp["connectivities"],
        "spatial": spots.maximum(spots.T),
    }
    completer = AIRCompleter(max_iter=5, random_state=0)
    for name, graph in graphs.items():
        omics.complete(adata, completer, row_graph=name)
        found[name] = adata.layers["completed"]
        expected = AIRCompleter(max_iter=5, random_state=0).fit(X, row_graph=graph)
        np.testing.assert_allclose(found[name], expected.transform(X), rtol=1e-6)
    assert (found["spatial"] != found["connectivities"]).any()
    omics.complete(adata, completer)  # uses none
    np.testing.assert_array_equal(adata.layers["completed"], completer.fit_transform(X))


def test_errors_of_graphs(adata):
    completer = FactorizationCompleter(2, random_state=0)
    with pytest.raises(ValueError, match="SVDCompleter takes no row_graph; use Factor"):
        omics.complete(adata, SVDCompleter(), row_graph="connectivities")
    with pytest.raises(ValueError, match=r"neither obsp nor obsm.*'connectivities'"):
        omics.complete(adata, completer, row_graph="distances")
    adata.obsm["connectivities"] = adata.obsm["spatial"]
    with pytest.raises(ValueError, match="both obsp and obsm"):
        omics.complete(adata, completer, row_graph="connectivities")
    adata.obsm["spatial"][7, 1] = np.nan
    with pytest.raises(ValueError, match=r"coordinate that is missing.* row 7"):
        omics.complete(adata, completer, row_graph="spatial")


def test_errors_name_the_remedy(adata):
    with pytest.raises(TypeError, match="must be AnnData, got ndarray"):
        omics.complete(adata.X, SVDCompleter())
    with pytest.raises(ValueError, match=r"layer='logs' .* layers are \['counts'\]"):
        omics.complete(adata, SVDCompleter(), layer="logs")
    with pytest.raises(ValueError, match="add_indicator=False"):
        omics.complete(adata, SVDCompleter(add_indicator=True))
    adata.X[:, 3] = np.nan
    with (
        pytest.raises(ValueError, match="keep_empty_features=True"),
        pytest.warns(UserWarning),
    ):
        omics.complete(adata, SVDCompleter(keep_empty_features=False))
    assert "completed" not in adata.layers and "skmc" not in adata.uns


def test_other_estimators(adata):
    omics.complete(adata, SimpleImputer(), key_added="means")
    expected = SimpleImputer().fit_transform(adata.X)
    np.testing.assert_allclose(adata.layers["means"], expected)
    omics.complete(adata, MixedCompleter(KNNCompleter()).set_output(transform="pandas"))
    assert not np.isnan(adata.layers["completed"]).any()


def test_odd_shapes():
    row = ad.AnnData(np.array([[1.0, np.nan, 3.0]]))
    row.obsm["spatial"] = np.zeros((1, 2))
    with pytest.warns(UserWarning):
        omics.complete(
            row, FactorizationCompleter(1, lambda_ridge=0.1), row_graph="spatial"
        )
    assert row.layers["completed"].shape == (1, 3)
    view = ad.AnnData(np.array([[1.0, np.nan], [2.0, 4.0], [3.0, 5.0]]))[1:]
    with pytest.raises(ValueError, match="X has no missing cell"):
        omics.complete(view, SVDCompleter())
    frame = pd.DataFrame([[1.0, np.nan], [2.0, 4.0], [3.0, 5.0]])
    whole = ad.AnnData(frame.to_numpy())
    part = whole[:2]
    with pytest.warns(ad.ImplicitModificationWarning):
        omics.complete(part, KNNCompleter())
    assert "completed" in part.layers and "completed" not in whole.layers
