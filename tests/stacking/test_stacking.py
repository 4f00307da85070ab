"""Weights of candidates: convex, by column, of numbers and of categories."""

from __future__ import annotations

import numpy as np
import pytest

from skmc.stacking import HeldOutCategory, Spread, Stacking
from skmc.stacking._mixtures import mixture
from skmc.stacking._weights import PRIOR_CELLS, simplex_minimum
from skmc.tables import Categorical


@pytest.fixture
def held_out():
    """Residuals of four candidates on held-out cells: rows, columns, residuals."""
    rng = np.random.RandomState(0)
    rows, cols = rng.randint(60, size=400), rng.randint(5, size=400)
    noise = rng.randn(400, 1)
    own = rng.randn(400, 4) * (1 + (cols[:, None] + np.arange(4)) % 4)
    return rows, cols, noise + own


def squares(residuals, cols):
    return np.bincount(cols, residuals**2)


def test_the_minimum_on_the_simplex():
    rng = np.random.RandomState(0)
    R = rng.randn(200, 3) + np.array([1, 0, 3])
    G = R.T @ R
    w = simplex_minimum(G)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    others = np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 500)])
    values = np.einsum("ip,pq,iq->i", others, G, others)
    assert w @ G @ w <= values.min() * (1 + 1e-8)
    # Two candidates: a quadratic in one weight.
    (a, b), (_, c) = G[:2, :2]
    best = np.clip((c - b) / (a + c - 2 * b), 0, 1)
    np.testing.assert_allclose(simplex_minimum(G[:2, :2]), [best, 1 - best], atol=1e-6)
    G[:, 1] = G[1] = 0  # without error
    np.testing.assert_allclose(simplex_minimum(G), [0, 1, 0], atol=1e-4)
    np.testing.assert_allclose(simplex_minimum(np.zeros((2, 2))), 0.5)


@pytest.mark.parametrize("prior", PRIOR_CELLS)
def test_a_stack_is_not_worse_than_its_members(held_out, prior):
    """This holds on its own cells for every shrinkage, as the docstring derives."""
    rows, cols, R = held_out
    found = Stacking.of(R, rows, cols, 5, [[prior]])
    own = squares(found.own_residuals, cols)
    common = squares(R @ found.common, cols)
    assert (own <= common * (1 + 1e-8)).all()
    singles = np.square(R).sum(0)
    assert own.sum() <= common.sum() * (1 + 1e-8) <= singles.min() * (1 + 1e-7)
    np.testing.assert_allclose(
        found.own_residuals, (found.columns[cols] * R).sum(1), atol=1e-12
    )


def test_shrinkage_goes_from_the_column_to_the_common_weights(held_out):
    rows, cols, R = held_out
    grams = [R[cols == j].T @ R[cols == j] for j in range(5)]
    alone = [simplex_minimum(G) for G in grams]
    common = simplex_minimum(np.sum(grams, 0))
    distance = []
    for prior in (1e-9, 10, 100, 1000, 1e9):
        columns = Stacking.of(R, rows, cols, 6, [[prior]]).columns
        distance.append(np.abs(columns[:5] - common).sum())
        np.testing.assert_allclose(columns[5], common)  # no held-out cell
        if prior < 1:
            np.testing.assert_allclose(columns[:5], alone, atol=1e-6)
    assert distance[0] > 1 > 1e-5 > distance[-1]
    assert distance == sorted(distance, reverse=True)
    # Columns differ, so the common weights do worse on rows that were left out.
    assert Stacking.of(R, rows, cols, 5).prior_cells[0] < 1000
    # Where they are alike, each column alone knows too little.
    alike = np.random.RandomState(1).randn(400, 4) + held_out[2][:, :1]
    assert Stacking.of(alike, rows, cols, 5).prior_cells[0] >= 100


def test_residuals_are_those_of_weights_from_other_rows(held_out):
    rows, cols, R = held_out
    found = Stacking.of(R, rows, cols, 5, [[np.inf]])
    for row in range(3):
        out = rows == row
        weights, *_ = np.linalg.lstsq(R[out], found.residuals[out], rcond=None)
        again = Stacking.of(R[~out], rows[~out], cols[~out], 5, [[np.inf]])
        assert np.abs(again.common - found.common).max() < 0.05
        if out.sum() >= 4:
            assert weights.sum() == pytest.approx(1)
    assert np.square(found.residuals).sum() > np.square(found.own_residuals).sum()


def test_a_mixture_has_the_highest_log_score():
    rng = np.random.RandomState(0)
    P, prior = rng.rand(60, 4) * [1, 1, 0.9, 0.01], np.array([1.0, 0.0, 2.0, 0.0])

    def score(w):
        with np.errstate(divide="ignore"):
            return np.log(P @ w).sum() + np.log(w[prior > 0]) @ prior[prior > 0]

    w = mixture(P, prior)
    assert w.min() >= 0 and w.sum() == pytest.approx(1)
    assert score(w) >= max(score(v) for v in rng.dirichlet(np.ones(4), 2000))
    counts = rng.randint(4, size=60)
    copies = mixture(P.repeat(counts, 0), prior)
    np.testing.assert_allclose(mixture(P, prior, counts), copies, atol=1e-6)
    assert mixture(P[:0], np.ones(4)) == pytest.approx(0.25)


def test_candidates_that_explain_no_cell_have_no_share():
    """They have a weight, because nothing is impossible, but leave the stack."""
    rng = np.random.RandomState(0)
    true, good = rng.randint(3, size=60), np.full((60, 3), 0.1)
    good[np.arange(60), true] = 0.8
    bad = np.tile([[0.5, 0.25, 0.25]], (60, 1))[:, rng.permutation(3)]
    proba = np.stack([good, bad], 2)
    shares = np.bincount(true) / 60
    category = Categorical(("a", "b", "c"), shares, 1.0)
    place = np.arange(180).reshape(60, 3)
    held_out = HeldOutCategory(np.arange(3), place, proba, true, category)
    rows, cols = np.divmod(np.arange(180), 3)
    stacking = Stacking.of(
        np.zeros((180, 2)),
        rows,
        cols,
        3,
        numbers=np.empty(0, int),
        categories=[held_out],
    )
    assert 0.02 < stacking.columns[0, 1] < 0.04
    assert stacking.shares[1] < 0.015
    assert stacking.columns.sum(1) == pytest.approx(1)
    # Right with probability 1, where .8 was predicted.
    assert stacking.calibrations[0].power > 2


@pytest.mark.parametrize(("least", "n_cells"), [(1.0, 12), (1e-3, 30), (0.0, 5)])
def test_deviations_of_columns_are_those_of_their_errors(least, n_cells):
    """The fourth column may follow from the others; five cells are too few to tell."""
    rng, cols = np.random.RandomState(0), np.repeat(np.arange(5), n_cells)
    size = np.array([1, 1, 1, least, 1])
    residuals = size[cols] * rng.randn(len(cols))
    parts = np.zeros(len(cols)), np.arange(len(cols)), cols, 6
    *found, other = Spread.of(residuals, *parts).std
    assert other == pytest.approx(np.square(residuals).mean() ** 0.5)  # has no cell
    if least == 0:
        size[3] = 0.5
    assert (found > 0.6 * size).all() and (found < 4 * size).all()
