"""Ratings: observed cells plus factors, and never a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, low_rank, make

from skmc import Entries, Observed, SparseObserved, patterns
from skmc.cells import Scaling
from skmc.completers.factorization.als import half_step
from skmc.linalg import LowRank, RowModel
from skmc.solvers import solved
from skmc.solvers.row_systems import Systems, gradient, improved, panels_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FACTORED = [cls for cls in COMPLETERS if SparseObserved in cls.accepts]
factored = pytest.mark.parametrize("cls", FACTORED)


@pytest.fixture
def both():
    """The same cells, dense and sparse."""
    rng = np.random.RandomState(0)
    mask = rng.rand(9, 7) < 0.5
    values = torch.tensor(rng.randn(9, 7))
    rows, cols = np.nonzero(mask)
    order = rng.permutation(len(rows))
    data = SparseObserved.of(
        rows[order], cols[order], values[rows, cols][order], (9, 7)
    )
    return Observed(values, torch.from_numpy(mask)), data


def test_sparse_and_dense_observations_agree(both):
    dense, sparse = both
    X = LowRank(torch.randn(9, 2).double(), torch.randn(7, 2).double())
    whole = X.dense()
    torch.testing.assert_close(sparse.matrix(sparse.values).to_dense(), dense.values)
    torch.testing.assert_close(sparse.T.T.values, sparse.values)
    torch.testing.assert_close(
        sparse.residual(X), dense.residual(whole)[sparse.rows, sparse.cols]
    )
    torch.testing.assert_close(sparse.misfit(X), dense.misfit(whole))
    torch.testing.assert_close(sparse.fill(X).dense(), dense.fill(whole))
    assert sparse.energy == pytest.approx(float(dense.energy))
    assert sparse.n_observed == dense.n_observed
    chosen = torch.arange(len(sparse.values)) % 3 == 0
    parts = sparse.only(chosen).misfit(X) + sparse.only(~chosen).misfit(X)
    torch.testing.assert_close(parts, sparse.misfit(X))
    assert float(sparse.misfit(sparse.zero())) == pytest.approx(float(sparse.energy))


@pytest.mark.parametrize("how", ["columns", "global", None])
@pytest.mark.parametrize("centre", [True, False])
def test_sparse_and_dense_scaling_agree(how, centre, both):
    dense, sparse = both
    ours = Scaling.of(sparse, how, centre=centre)
    theirs = Scaling.of(dense, how, centre=centre)
    torch.testing.assert_close(ours.shift, theirs.shift)
    torch.testing.assert_close(ours.scale, theirs.scale)
    scaled = sparse.scaled(ours)
    torch.testing.assert_close(
        scaled.matrix(scaled.values).to_dense(), dense.scaled(theirs).values
    )


@pytest.fixture
def ratings():
    truth = low_rank(50, 30) + 3
    hidden = patterns.random(truth, 0.8, spare=True, random_state=0)
    rows, cols = np.nonzero(~hidden)
    return sp.coo_array((truth[rows, cols], (rows, cols)), shape=truth.shape)


@factored
def test_ratings_never_become_dense(cls, ratings, monkeypatch):
    """Neither fit nor predict calls a function that makes a dense matrix."""
    expected = make(cls).fit(ratings).predict_entries([3, 40], [7, 0])

    def refuse(*args, **kwargs):
        raise AssertionError("made dense")

    for where in ("skmc.base.reading.to_cells", "skmc.base.completer.to_cells"):
        monkeypatch.setattr(where, refuse, raising=True)
    monkeypatch.setattr(Entries, "to_cells", refuse)
    monkeypatch.setattr(LowRank, "dense", refuse)
    monkeypatch.setattr(torch.Tensor, "to_dense", refuse)
    for X in (ratings, ratings.tocsr(), Entries(ratings)):
        completer = make(cls).fit(X)
        np.testing.assert_allclose(completer.predict_entries([3, 40], [7, 0]), expected)
        assert completer.score(Entries(ratings)) < 0


@factored
def test_new_users_are_folded_in_from_their_ratings(cls, ratings):
    completer = make(cls).fit(ratings)
    rows = ratings.tocsr()
    few = rows[[3]]
    np.testing.assert_allclose(
        completer.transform(few)[0], completer.transform(ratings)[3], rtol=1e-6
    )
    other = sp.csr_array(([5.0, 1.0], ([0, 0], [2, 9])), shape=(1, 30))
    answer = completer.transform(other)[0]
    assert (answer[2], answer[9]) == (5.0, 1.0)
    stranger = sp.csr_array((1, 30))
    nothing = completer.transform(stranger)[0]
    known = ratings.toarray()
    means = known.sum(0) / (known != 0).sum(0)
    np.testing.assert_allclose(nothing, means)


@factored
def test_users_and_films_without_ratings(cls, ratings):
    X = ratings.tocsr().tolil()
    X[4], X[:, 2] = 0, 0
    X = X.tocsr()
    X.eliminate_zeros()
    with pytest.warns(UserWarning, match="no observed cell"):
        completer = make(cls).fit(X)
    whole = completer.reconstruction_
    known = X.toarray()
    user, film = known[7], known[:, 5]
    assert whole[7, 2] == pytest.approx(user[user != 0].mean())
    assert whole[4, 5] == pytest.approx(film[film != 0].mean())
    rows, cols = [7, 4, 4, 9], [2, 5, 2, 9]
    np.testing.assert_allclose(
        completer.predict_entries(rows, cols), whole[rows, cols], rtol=1e-9
    )


@factored
def test_bad_sparse_input(cls, ratings):
    with pytest.raises(ValueError, match="X stores some cells more than once"):
        make(cls).fit(sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)))
    bad = ratings.copy()
    bad.data[5] = np.inf
    place = f"infinity at row {bad.row[5]}, column {bad.col[5]}"
    with pytest.raises(ValueError, match=place):
        make(cls).fit(bad)
    with pytest.raises(ValueError, match="no observed cell"):
        make(cls).fit(sp.csr_array((4, 3)))
    completer = make(cls).fit(ratings)
    with pytest.raises(ValueError, match="X has 29 features"):
        completer.transform(ratings.tocsr()[:, :29])
    twice = Entries.from_triplets([0, 0, 1], [1, 1, 0], [2, 4, 5], duplicates="mean")
    assert np.isfinite(make(cls).fit(twice).reconstruction_).all()


@factored
def test_duplicate_cells_count_once(cls, ratings):
    E = Entries(ratings)
    order = np.arange(len(E))
    once = make(cls).fit(E[order])
    twice = make(cls).fit(E[np.concatenate([order, order[:50]])])
    np.testing.assert_allclose(twice.reconstruction_, once.reconstruction_)


@factored
@pytest.mark.parametrize("scaling", ["auto", "global", None])
def test_constant_columns_are_completed_by_their_constant(cls, scaling):
    X = np.ma.masked_array(np.outer(np.ones(30), [1.0, 2.0, 4.0, 9.0]))
    X[0, 0] = X[3, 2] = np.ma.masked
    completed = make(cls, scaling=scaling, max_iter=500).fit_transform(X)
    np.testing.assert_allclose(completed, X.data, atol=0.2)
    flat = np.ma.masked_array(np.full((20, 10), 3.0))
    flat[2, 1] = np.ma.masked
    completed = make(cls, scaling=scaling, max_iter=500).fit_transform(flat)
    np.testing.assert_allclose(completed, 3.0, atol=0.2)


@factored
def test_users_without_ratings_change_nothing(cls):
    """A matrix of few rows is embedded in a large empty one."""
    truth = low_rank(14, 60, rank=2)
    rng = np.random.RandomState(0)
    seen = rng.rand(14, 60) < 0.6
    rows, cols = np.nonzero(seen)
    small = Entries.from_triplets(rows, cols, truth[rows, cols], (14, 60))
    large = Entries.from_triplets(rows, cols, truth[rows, cols], (90, 60))
    params = {"lambda_nuclear": 0.02, "rank": 2, "max_iter": 500, "n_draws": 60}
    answers = [make(cls, **params).fit(small).reconstruction_]
    with pytest.warns(UserWarning, match="rows? of X ha(s|ve) no observed cell"):
        answers.append(make(cls, **params).fit(large).reconstruction_[:14])
    errors = [np.sqrt(np.mean((a - truth)[~seen] ** 2)) for a in answers]
    assert max(errors) < 0.3 * truth.std()


@factored
def test_a_single_observed_cell(cls):
    with pytest.warns(UserWarning, match="no observed cell"):
        completer = make(cls).fit(Entries.from_triplets([1], [2], [7.0], (3, 4)))
    np.testing.assert_allclose(completer.reconstruction_, 7.0)


@pytest.mark.parametrize(
    "cls", [c for c in COMPLETERS if {"rank", "max_rank"} & set(c().get_params())]
)
def test_rank_above_the_size_is_an_error(cls):
    name = "rank" if "rank" in cls().get_params() else "max_rank"
    with pytest.raises(ValueError, match=rf"{name}=9 is above min\(.*\)=4"):
        make(cls, **{name: 9}).fit(low_rank(6, 4))


def weighted_rows(m, n, rank):
    """A row model, and cells with weights; dense and sparse."""
    rng = torch.Generator().manual_seed(0)
    mask = torch.rand(m, n, generator=rng) < 0.8
    values, weights = torch.randn(2, m, n, generator=rng, dtype=torch.float64)
    weights = mask * weights.square()
    places = mask.nonzero().T
    data = SparseObserved.of(*places, values[mask], (m, n), weights[mask])
    F = torch.randn(n, rank, generator=rng, dtype=torch.float64)
    offset, mean = F @ torch.ones(rank).double(), torch.arange(rank).double()
    model = RowModel(F, offset, torch.eye(rank).double() + 0.5, mean)
    W = torch.randn(m, rank, generator=rng, dtype=torch.float64)
    return data, model, W, values, weights


@pytest.mark.parametrize("cached", [2**20, 400], ids=["whole", "panels"])
def test_slopes_of_rows_are_derivatives(cached, monkeypatch):
    monkeypatch.setattr("skmc.solvers.row_systems.CACHED", cached)
    rank = 3
    data, model, W, values, weights = weighted_rows(8, 60, rank)
    systems = Systems(model, rank, torch.float64, judge=True)
    columns = systems.columns(torch.float64)
    assert len(panels_of(data, columns)) == (1 if cached > 400 else 5)

    W.requires_grad_()
    off = W @ model.F.T + model.offset - values
    misfit = (weights * off**2).sum()
    prior = ((W - model.mean) @ model.precision * (W - model.mean)).sum()
    (misfit + prior).backward()

    slope, found = gradient(data, W.detach(), systems)
    torch.testing.assert_close(slope, W.grad / 2)
    torch.testing.assert_close(found, misfit.detach())
    # As many steps as unknowns of a row, in single precision.
    improvement, _ = improved(data, W.detach(), slope, systems)
    torch.testing.assert_close(improvement, solved(data, model), rtol=0, atol=1e-4)


@pytest.mark.parametrize("steps", [None, 0, 3])
@pytest.mark.parametrize("chunk", [1, 70, 300])
def test_a_half_step_sums_over_chunks_of_rows(chunk, steps, monkeypatch):
    """Its sums are those over all rows, also if some rows have no cells."""
    data, model, W, *_ = weighted_rows(20, 30, 3)
    data = data.only((data.rows != 0) & (data.rows != 7) & (data.rows < 18))
    known = torch.linspace(-1, 1, W.numel(), dtype=torch.float64).view_as(W)
    systems = Systems(model, steps, torch.float64, judge=True)
    whole = half_step(data, (W, known), systems)
    monkeypatch.setattr("skmc.cells.sparse_values.CHUNK", chunk)
    parts = list(data.map(half_step, (W, known), systems))
    assert len(parts) >= len(data.values) // (chunk + 30)
    factors, *sums = zip(*parts, strict=True)
    near = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(torch.cat(factors), whole.factors, **near)
    for found, expected in zip(sums, whole[1:], strict=True):
        torch.testing.assert_close(torch.stack(found).sum(), expected, **near)


def test_values_at_cells_are_differentiable(both):
    dense, sparse = both
    left = torch.arange(18.0).double().reshape(9, 2).requires_grad_()
    right = torch.arange(14.0).double().reshape(7, 2)
    (slope,) = torch.autograd.grad(sparse.at(LowRank(left, right)).sum(), left)
    torch.testing.assert_close(slope, dense.mask.double() @ right)
