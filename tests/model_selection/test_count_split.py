"""Splits of counts into molecules of training and molecules held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.model_selection import GridSearchCV

from skmc import (
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
)
from skmc.model_selection import (
    BatchedGridSearchCV,
    CountSplit,
    ErrorScorer,
    compare,
)


@pytest.fixture
def means():
    """Expected counts of rank 2."""
    rng = np.random.RandomState(0)
    return rng.gamma(2.0, 1.0, (80, 2)) @ rng.gamma(1.0, 2.0, (2, 30))


@pytest.fixture
def counts(means):
    return np.random.RandomState(1).poisson(means)


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_parts_sum_to_the_counts(fraction, counts):
    split = CountSplit(fraction, n_splits=3, random_state=0)
    stacked = split.thin(counts)
    splits = list(split.split(stacked))
    assert len(splits) == split.get_n_splits() == 3
    drawn = []
    for train, test in splits:
        kept = stacked[train].to_cells()
        held_out = stacked[test].to_cells() * fraction / (1 - fraction)
        np.testing.assert_allclose(kept + held_out, counts, rtol=0, atol=1e-9)
        assert (kept == np.rint(kept)).all() and (kept >= 0).all()
        drawn.append(held_out)
    assert (drawn[0] != drawn[1]).any()
    np.testing.assert_array_equal(stacked.to_cells(), counts)


def test_parts_of_poisson_counts_are_independent():
    rng = np.random.RandomState(0)
    cells = Entries(rng.poisson(4.0, (300, 100)))
    split = CountSplit(0.3, n_splits=1, random_state=1)
    stacked = split.thin(cells)
    [(train, test)] = split.split(stacked)
    kept, held_out = stacked.values[train], stacked.values[test]
    # Standard errors of 30 000 cells.
    assert abs(np.corrcoef(kept, held_out)[0, 1]) < 4 / 30000**0.5
    assert abs(kept.mean() - 4 * 0.7) < 4 * (4 * 0.7 / 30000) ** 0.5
    assert abs(held_out.mean() - 4 * 0.7) < 4 * (4 * 0.7**2 / 0.3 / 30000) ** 0.5


def test_ranks_completers_as_the_expected_counts_do(means, counts):
    completers = {
        **{f"rank {k}": SVDCompleter(k) for k in (1, 2, 10)},
        "counts": KNNCompleter(),  # whose model is the matrix itself
        "means": MeanCompleter(),
    }
    split = CountSplit(0.2, n_splits=4, random_state=0)
    table = compare(completers, counts, patterns=[split], metrics=["rmse"])
    errors = {}
    for name, completer in completers.items():
        kept = split.thin(counts)[: counts.size].to_cells()
        fitted = completer.fit(kept)
        errors[name] = np.square(fitted.reconstruction_ - 0.8 * means).mean() ** 0.5
    assert table["completer"].tolist() == sorted(errors, key=errors.get)
    assert table["completer"].iloc[0] == "rank 2"
    assert (table["pattern"] == "CountSplit").all()
    assert table["p_value"].iloc[-1] < 0.05


def test_the_test_of_significance_knows_the_share_of_molecules(counts):
    q = 0.25
    split = CountSplit(q, n_splits=4, random_state=0)
    completers, stacked = [SVDCompleter(1), SVDCompleter(2)], split.thin(counts)
    errors = [
        [-ErrorScorer("rmse")(c.fit(stacked[train]), stacked[test]) for c in completers]
        for train, test in split.split(stacked)
    ]
    table = compare(completers, counts, patterns=[split], metrics=["rmse"])
    np.testing.assert_allclose(table["mean"], sorted(np.mean(errors, 0)))
    gap = np.subtract(*np.transpose(errors))
    t = gap.mean() / np.sqrt((1 / 4 + q / (1 - q)) * gap.var(ddof=1))
    assert table["p_value"].iloc[-1] == pytest.approx(2 * stats.t.sf(abs(t), 3))


@pytest.mark.parametrize("search", [GridSearchCV, BatchedGridSearchCV])
@pytest.mark.parametrize(
    "completer",
    [SVDCompleter(), FactorizationCompleter(lambda_ridge=0.1, random_state=0)],
)
@pytest.mark.filterwarnings("ignore:.*outside of a batch")
def test_searches_choose_the_rank_and_refit_the_counts(search, completer, counts):
    split = CountSplit(0.2, n_splits=2, random_state=0)
    found = search(
        completer, {"rank": [1, 2, 8]}, cv=split, scoring=ErrorScorer("rmse")
    ).fit(split.thin(counts))
    assert found.best_params_ == {"rank": 2}
    best = found.best_estimator_
    expected = completer.set_params(rank=2).fit(Entries(counts))
    np.testing.assert_allclose(best.reconstruction_, expected.reconstruction_)


def test_weights_and_identifiers_stay_with_their_cells(counts):
    rows, cols = np.indices(counts.shape).reshape(2, -1)
    frame = pd.DataFrame(
        {"cell": rows, "gene": cols, "n": counts.ravel(), "w": 1.0 + (rows % 3)}
    )
    cells = Entries.from_frame(frame, "cell", "gene", "n", "w")
    split = CountSplit(0.2, n_splits=2, random_state=0)
    stacked = split.thin(cells)
    completer = FactorizationCompleter(2, lambda_ridge=0.1, random_state=0)
    expected = completer.fit(cells).reconstruction_
    np.testing.assert_allclose(completer.fit(stacked).reconstruction_, expected)
    train, _ = next(split.split(stacked))
    np.testing.assert_array_equal(stacked[train].weights, cells.weights)


def test_zeros_are_counts_in_anndata(counts):
    ad = pytest.importorskip("anndata", reason="anndata is not installed")
    X = ad.AnnData(sp.csr_matrix(counts.astype(np.float32)))
    cells = CountSplit(n_splits=1, random_state=0).thin(X)
    assert len(cells) == 3 * counts.size
    expected = CountSplit(n_splits=1, random_state=0).thin(counts)
    np.testing.assert_allclose(cells.values, expected.values, rtol=1e-6)
    table = compare(
        [SVDCompleter(2, missing_values=0), SVDCompleter(2)],
        X,
        patterns=[CountSplit(n_splits=2, random_state=0)],
        metrics=["rmse", "relative_error"],
    )
    assert table["error"].isna().all()


def test_errors(counts):
    split = CountSplit(random_state=0)
    for wrong in (counts + 0.5, -1 - counts):
        with pytest.raises(ValueError, match="row 0, column 0, which is not a count"):
            split.thin(wrong)
    for params in ({"fraction": 0.0}, {"fraction": np.nan}, {"n_splits": 0}):
        with pytest.raises(ValueError, match="fraction must lie"):
            CountSplit(**params).thin(counts)
    for cells in (counts, split.thin(counts)[:-1], CountSplit(n_splits=2).thin(counts)):
        with pytest.raises(ValueError, match=r"fit the search to split\.thin\(X\)"):
            next(split.split(cells))
    for more in ({}, {"metrics": ["rmse", "mae"]}, {"metrics": ["crps"], "draws": 2}):
        with pytest.raises(ValueError, match="needs metrics among"):
            compare([GaussianCompleter()], counts, patterns=[split], **more)
