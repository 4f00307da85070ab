"""Reference values from outside the package, with their origin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import low_rank, make
from scipy.linalg import solve_sylvester
from sklearn.datasets import load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.utils._param_validation import InvalidParameterError

from skmc import (
    AIRCompleter,
    DMFCompleter,
    KNNCompleter,
    LogDetCompleter,
    MeanCompleter,
    SVDCompleter,
    patterns,
)
from skmc.completers.knn import donors
from skmc.datasets import load_photo
from skmc.linalg import squared_distances
from skmc.metrics import nmae


def holes(X, fraction=0.3, seed=0):
    hidden = patterns.random(X, fraction, spare=True, random_state=seed)
    return np.where(hidden, np.nan, X)


TABLES = {
    "random": lambda: holes(np.random.RandomState(0).randn(80, 7)),
    "few cells": lambda: holes(np.random.RandomState(1).randn(60, 9), 0.6),
    "wine": lambda: holes(load_wine().data, 0.2),
    "wide": lambda: holes(np.random.RandomState(2).randn(9, 40)),
    "very few cells": lambda: holes(np.random.RandomState(4).randn(150, 120), 0.94),
    "equal rows": lambda: holes(
        np.tile(np.random.RandomState(3).randn(10, 6), (3, 1)), 0.1
    ),
}


@pytest.mark.filterwarnings("ignore:.*of X ha(s|ve) no observed cell")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n_neighbors", [1, 5, 70])
def test_knn_is_scikit_learns(table, weights, n_neighbors):
    """`sklearn.impute.KNNImputer`, on fitted rows and on new ones."""
    X = TABLES[table]()
    half = len(X) // 2
    params = {"n_neighbors": n_neighbors, "weights": weights}
    for train, test in [(X, X), (X[:half], X[half:])]:
        theirs = (
            KNNImputer(keep_empty_features=True, **params).fit(train).transform(test)
        )
        ours = KNNCompleter(**params, scaling=None, device="cpu")
        ours = ours.fit(train).transform(test)
        known = ~np.isnan(train).all(0)
        np.testing.assert_allclose(
            ours[:, known], theirs[:, known], atol=1e-6, rtol=1e-9
        )


def test_knn_is_accurate_despite_an_offset():
    """Distances from a few products cancel; columns are centred first."""
    X = TABLES["random"]()
    np.testing.assert_allclose(
        KNNCompleter(scaling=None, device="cpu").fit_transform(X + 1e6) - 1e6,
        KNNImputer().fit_transform(X),
        atol=1e-6,
    )


@pytest.mark.parametrize("block, chunk", [(500, 2**12), (2**24, 40), (500, 7)])
def test_knn_in_blocks_equals_knn_at_once(block, chunk, monkeypatch):
    X = TABLES["random"]()
    whole = KNNCompleter(device="cpu").fit_transform(X)
    monkeypatch.setattr(donors, "BLOCK", block)
    monkeypatch.setattr(donors, "CHUNK", chunk)
    np.testing.assert_allclose(KNNCompleter(device="cpu").fit_transform(X), whole)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_knn_by_column_equals_knn_by_row(table, weights, monkeypatch):
    """The same donors, in the same order where some are equally near."""
    X = TABLES[table]()
    found = []
    for per_column in (-np.inf, np.inf):  # always, never
        monkeypatch.setattr(donors, "PER_COLUMN", per_column)
        completer = KNNCompleter(weights=weights, device="cpu").fit(X)
        found.append([completer.transform(X), completer.reconstruction_])
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


def test_knn_of_numbers_beyond_single_precision():
    X, unit = TABLES["random"](), 2.0**90
    completer = KNNCompleter(scaling=None, device="cpu")
    whole = completer.fit_transform(X)
    np.testing.assert_array_equal(completer.fit_transform(unit * X), unit * whole)


def test_knn_in_clusters():
    """All clusters contain all rows; fewer find at least the requested share."""
    rng = np.random.RandomState(0)
    X = rng.randn(900, 3) @ rng.randn(3, 8) + 0.1 * rng.randn(900, 8)
    X[rng.random_sample(X.shape) < 0.2] = np.nan
    X[3:, 7] = np.nan  # its donors are in other clusters
    exact = KNNCompleter(device="cpu").fit(X)
    every = KNNCompleter(recall=1 - 1e-9, device="cpu").fit(X)
    fitted = every._fitted
    fitted.clusters = replace(fitted.clusters, near=torch.arange(30).expand(30, -1))
    np.testing.assert_allclose(every.transform(X), exact.transform(X), rtol=1e-12)
    np.testing.assert_allclose(
        every.reconstruction_, exact.reconstruction_, rtol=1e-9, atol=1e-12
    )
    part = KNNCompleter(recall=0.7, device="cpu").fit(X)
    assert 0.7 <= part.recall_ < 1
    assert part._fitted.clusters.near.shape[1] < 15
    same = np.isclose(part.transform(X), exact.transform(X))[np.isnan(X)]
    assert same.mean() > 0.3
    np.testing.assert_array_equal(part.transform(X)[:, 7], exact.transform(X)[:, 7])
    with pytest.raises(InvalidParameterError, match="recall"):
        KNNCompleter(recall=0.0).fit(X)


def test_knn_in_clusters_completes_each_row_by_itself():
    """Also if other rows of its cluster need columns that few donors have."""
    rng = np.random.RandomState(0)
    X = rng.randn(40, 2) @ rng.randn(2, 5) + 0.3 * rng.randn(40, 5)
    X[rng.uniform(size=X.shape) < 0.25] = np.nan
    completer = KNNCompleter(3, recall=0.6).fit(X)
    alone = np.concatenate([completer.transform(row[None]) for row in X])
    np.testing.assert_allclose(completer.transform(X), alone)


def test_knn_reconstruction_leaves_each_row_out():
    X = TABLES["random"]()
    completer = KNNCompleter(device="cpu").fit(X)
    others = KNNCompleter(device="cpu").fit(np.delete(X, 3, 0))
    hidden = X[[3]].copy()
    hidden[0, np.flatnonzero(~np.isnan(X[3]))[0]] = np.nan
    column = np.flatnonzero(np.isnan(X[3]))
    np.testing.assert_allclose(
        completer.reconstruction_[3, column], others.transform(X[[3]])[0, column]
    )


def test_distances_are_scikit_learns():
    X = TABLES["few cells"]()
    seen = torch.tensor(~np.isnan(X))
    values = torch.tensor(np.nan_to_num(X))
    ours = squared_distances(values, seen, values, seen).sqrt().numpy()
    theirs = nan_euclidean_distances(X)
    np.testing.assert_allclose(ours, np.nan_to_num(theirs, nan=np.inf), atol=1e-7)


def test_means_are_scikit_learns():
    X = TABLES["wine"]()
    np.testing.assert_allclose(
        MeanCompleter().fit_transform(X), SimpleImputer().fit_transform(X)
    )


@pytest.mark.parametrize(
    "completer",
    [
        SVDCompleter(rank=2, scaling=None, device="cpu"),
        DMFCompleter(
            width=2,
            depth=2,
            scaling=None,
            early_stopping=False,
            random_state=0,
            lr=0.03,
            device="cpu",
        ),
    ],
)
def test_eckart_young(completer):
    """All cells seen: the best rank-2 approximation is the truncated SVD."""
    M = low_rank(20, 15, rank=5)
    U, s, Vh = np.linalg.svd(M)
    best = (U[:, :2] * s[:2]) @ Vh[:2]
    np.testing.assert_allclose(completer.fit(M).reconstruction_, best, atol=2e-3)


def test_dirichlet_energy_alone_solves_a_sylvester_equation():
    """Depth 1, all cells seen: (I + 2 a L_r) X + X 2 b L_c = M, by SciPy."""
    M = low_rank(9, 7, rank=3)
    rng = np.random.RandomState(0)
    graphs, laplacians = [], []
    for k in M.shape:
        A = rng.rand(k, k)
        A = (A + A.T) * (1 - np.eye(k))
        graphs.append(A)
        A = A * k / A.sum()
        laplacians.append(np.diag(A.sum(0)) - A)
    exact = solve_sylvester(
        np.eye(9) + 2 * 0.3 * laplacians[0], 2 * 0.7 * laplacians[1], M
    )
    completer = DMFCompleter(
        "dirichlet",
        0.3,
        0.7,
        depth=1,
        lr=0.03,
        scaling=None,
        early_stopping=False,
        random_state=0,
        device="cpu",
    ).fit(M, row_graph=graphs[0], col_graph=graphs[1])
    np.testing.assert_allclose(completer.reconstruction_, exact, atol=1e-3)
    assert completer.history_["residual"][-1] < 1e-3


def test_air_beats_the_papers_baselines():
    """Table 1 of the AIR paper: on a picture AIR is better than DMF, KNN and SVD.

    The picture is scikit-learn's, a 100 x 100 part of it, 30 % random as there.
    """
    photo = load_photo("flower")[60:160, 100:200].astype(np.float32)
    hidden = patterns.random(photo, 0.3, random_state=0)
    X = np.ma.masked_array(photo, hidden)
    full = {"max_iter": AIRCompleter().max_iter}
    air = nmae(make(AIRCompleter, **full).fit_transform(X), photo, hidden)
    for cls in (DMFCompleter, KNNCompleter, SVDCompleter, MeanCompleter):
        params = {"max_iter": cls().max_iter} if hasattr(cls(), "max_iter") else {}
        assert air < nmae(make(cls, **params).fit_transform(X), photo, hidden)


@pytest.mark.parametrize("condition", [10.0, 1e5])
def test_log_det_needs_no_more_cells_than_published(condition):
    """MatrixIRLS and R2RILS, told the rank, need 1.5 to 3 cells per freedom.

    These are the smallest ratios with a median error below 1e-4 at rank 5, condition
    numbers of 10 and 1e5, as published by Kuemmerle and Mayrink Verdun (ICML 2021) for
    MatrixIRLS and by Bauch, Nadler and Zilber (SIMODS 2021) for R2RILS.
    """
    rng = np.random.RandomState(0)
    U, V = (np.linalg.qr(rng.randn(n, 5))[0] for n in (150, 150))
    truth = 150 * U * np.logspace(0, -np.log10(condition), 5) @ V.T
    hidden = np.ones(truth.size, bool)
    hidden[rng.permutation(truth.size)[: int(1.5 * 5 * 295)]] = False
    X = np.where(hidden.reshape(truth.shape), np.nan, truth)
    completer = LogDetCompleter(device="cpu").fit(X)
    sure = np.ix_(completer.exact_, completer.exact_columns_)
    assert sure[0].size > 130 and sure[1].size > 130
    np.testing.assert_allclose(completer.reconstruction_[sure], truth[sure], atol=1e-5)
