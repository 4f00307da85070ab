"""Fits to Dask Arrays and DataFrames whose chunks are rows."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback

from skmc import GaussianCompleter, KNNCompleter, MeanCompleter, SVDCompleter
from skmc.completers.knn import knn

RNG = np.random.RandomState(0)
SHAPE = (240, 9)
X = RNG.randn(240, 2) @ RNG.randn(2, 9) * np.linspace(1, 5, 9) + np.arange(9)
X += 0.3 * RNG.randn(*SHAPE)
X[RNG.rand(*SHAPE) < 0.3] = np.nan
NAMES = [f"c{k}" for k in range(9)]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def arrays(chunk=50):
    return da.from_array(X, chunks=(chunk, 4))


def frames():
    """One partition is empty."""
    parts = [pd.DataFrame(X[i:j], columns=NAMES) for i, j in ((0, 90), (90, 90))]
    parts.append(pd.DataFrame(X[90:], columns=NAMES))
    return dd.from_map(lambda k: parts[k], range(3), meta=parts[0].iloc[:0])


@pytest.mark.parametrize("ridge", [2.0, "auto"])
@pytest.mark.parametrize("collection", [arrays, frames])
def test_the_gaussian_equals_that_of_a_fit_in_memory(ridge, collection):
    expected = GaussianCompleter(ridge, random_state=0).fit(X)
    found = GaussianCompleter(ridge, random_state=0).fit(collection())
    assert found.lambda_ridge_ == expected.lambda_ridge_
    scale = np.abs(expected.covariance_).max()
    np.testing.assert_allclose(
        found.covariance_, expected.covariance_, atol=1e-4 * scale
    )
    guess = np.asarray(found.transform(collection()).compute())
    np.testing.assert_allclose(guess, expected.transform(X), atol=1e-3)


@pytest.mark.parametrize("scaling", ["columns", "global", None])
def test_the_svd_reaches_the_objective_of_a_fit_in_memory(scaling):
    best = SVDCompleter(2, scaling=scaling, tol=1e-5, max_iter=5000).fit(X)
    options = {"scaling": scaling, "tol": 1e-3, "max_iter": 500}
    found = SVDCompleter(2, **options).fit(arrays(120))
    other = SVDCompleter(2, **options).fit(arrays(240))
    objective = found.history_["objective"]
    assert np.all(np.diff(objective) <= 1e-4 * objective[0])
    np.testing.assert_allclose(objective[-1], best.history_["objective"][-1], rtol=0.01)
    guess = found.transform(X)
    np.testing.assert_allclose(guess, other.transform(X), atol=1e-6)
    new = X + 1e-9  # rows that the fit in memory does not look up
    np.testing.assert_allclose(guess, best.transform(new), atol=0.2)


def test_the_rank_is_chosen_on_the_first_rows():
    assert SVDCompleter(random_state=0).fit(arrays()).rank_ == 2


def test_means():
    expected, found = MeanCompleter().fit(X), MeanCompleter().fit(frames())
    guess = found.transform(frames()).compute()
    np.testing.assert_allclose(guess, expected.transform(X))
    guess = found.predict_entries([0, 5], [1, 2])
    np.testing.assert_allclose(guess, expected.predict_entries([0, 5], [1, 2]))


def test_donors_are_a_sample(monkeypatch):
    expected = KNNCompleter().fit_transform(X)
    np.testing.assert_allclose(KNNCompleter().fit_transform(arrays()), expected)
    monkeypatch.setattr(knn, "DONORS", 60)
    with pytest.warns(UserWarning, match="uses 60 of the 240 rows of X as donors"):
        one = KNNCompleter().fit(arrays())
    with pytest.warns(UserWarning, match="donors"):
        other = KNNCompleter().fit(frames())
    donors = {row.tobytes() for row in X}
    assert all(row.tobytes() in donors for row in one._fitted.cells)
    np.testing.assert_array_equal(one._fitted.cells, other._fitted.cells)
    guess = one.transform(arrays())
    np.testing.assert_allclose(
        guess, KNNCompleter().fit(one._fitted.cells).transform(X)
    )


@pytest.mark.parametrize(
    "completer",
    [
        GaussianCompleter(2.0),
        SVDCompleter(2),
        KNNCompleter(),
        MeanCompleter(),
    ],
)
def test_nothing_is_computed_in_transform(completer):
    computed = []
    with Callback(pretask=lambda key, *_: computed.append(key)):
        completer.fit(arrays())
        assert computed  # the chunks are read in fit
        computed.clear()
        lazy = completer.transform(arrays())
        assert not computed and lazy.shape == SHAPE and lazy.chunks[0][0] == 50
        part = lazy.blocks[1].compute()
    assert computed and not np.isnan(part).any()


def test_single_precision_and_a_mark():
    marked = da.from_array(np.nan_to_num(X, nan=-99).astype(np.float32), chunks=(50, 9))
    found = GaussianCompleter(2.0, missing_values=-99).fit(marked)
    expected = GaussianCompleter(2.0).fit(X)
    np.testing.assert_allclose(
        found.covariance_, expected.covariance_, atol=1e-3, rtol=1e-3
    )
    assert found.transform(marked).dtype == np.float32


def test_unsupported_requests_are_refused():
    found = GaussianCompleter(2.0).fit(arrays())
    svd = SVDCompleter(2).fit(arrays())
    for call in (
        lambda: found.reconstruction_,
        lambda: found.predict_entries([0], [1]),
        lambda: found.partial_fit(X),
        lambda: svd.predict_entries([0], [1]),
        lambda: svd.partial_fit(X),
    ):
        with pytest.raises(AttributeError, match="were not in memory"):
            call()
    with pytest.raises(ValueError, match="marginals='normal' and rank=None"):
        GaussianCompleter(marginals="copula").fit(arrays())
    with pytest.raises(ValueError, match="has no observed cell"):
        MeanCompleter().fit(da.full((20, 3), np.nan, chunks=(10, 3)))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        MeanCompleter().fit(da.zeros(9, chunks=3))
    with pytest.raises(ValueError, match="infinity"):
        MeanCompleter().fit(da.full((20, 3), np.inf, chunks=(10, 3)))
