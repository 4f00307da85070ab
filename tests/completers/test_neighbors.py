"""AIR on a sparse graph: equal to all pairs for complete graphs, else close."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from skmc import AIRCompleter, Observed, patterns, persistence
from skmc.completers.air import fill_low_rank
from skmc.datasets import load_photo
from skmc.linalg import Randomness, directions_of, nearest
from skmc.metrics import relative_error
from skmc.model_selection import fit_batch
from skmc.models import FactorProduct
from skmc.plot import LaplacianDisplay
from skmc.solvers import Descent
from skmc.terms import (
    AdaptiveDirichletEnergy,
    DirichletEnergy,
    NeighborDirichletEnergy,
    Rows,
    SparseDirichletEnergy,
    SquaredError,
)


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def pair(items, adjacency, every):
    """The same energy for all pairs and for a graph with all edges."""
    k = len(items)
    edges = nearest(items, k - 1, items[:0]).flip(0)
    own, W = edges[:, 0], draw(k, k, seed=1)
    dense = AdaptiveDirichletEnergy(W.clone(), Rows(), 0.5, adjacency, every)
    sparse = NeighborDirichletEnergy(
        W[own].gather(1, edges), edges, Rows(), 0.5, adjacency, every
    )
    return dense, sparse


@pytest.mark.parametrize("adjacency", ["row", "global"])
def test_a_complete_graph_equals_all_pairs(adjacency):
    X = draw(9, 4)
    dense, sparse = pair(X, adjacency, 2)
    data = Observed(X, draw(9, 4, seed=3) > -0.7)
    rng = Randomness.of([0], (), torch.float64)
    model = FactorProduct.random((9, 4), 2, 4, 0.1, rng)
    solvers = [
        Descent(model, [SquaredError(data), term], lr=0.05, horizon=30)
        for term in (dense, sparse)
    ]
    states = [solver.init(data) for solver in solvers]
    for _ in range(30):
        states = [s.step(data, state) for s, state in zip(solvers, states, strict=True)]
    one, other = states
    torch.testing.assert_close(other.X, one.X)
    torch.testing.assert_close(other.objective, one.objective)
    edges = sparse.edges
    W = one.parameters[-1].detach()
    W = W[edges[:, 0]].gather(1, edges)
    torch.testing.assert_close(other.parameters[-1].detach(), W)


def test_neighbors_are_nearest():
    items = draw(60, 3)
    found = nearest(items, 5, items[:0]).numpy()
    expected = NearestNeighbors(n_neighbors=6).fit(items).kneighbors(items)[1]
    np.testing.assert_array_equal(found, expected)


def test_trees_find_most_neighbors_of_many_items():
    items = draw(5000, 3)
    directions = draw(directions_of(5000, 5), 3, seed=1)
    assert len(directions) > 0
    found = nearest(torch.stack([items, -items]), 5, directions.expand(2, -1, -1))[1]
    found = found[found[:, 0].argsort()].numpy()
    expected = NearestNeighbors(n_neighbors=6).fit(items).kneighbors(items)[1]
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, expected, strict=True)]
    assert np.mean(shared) > 0.9 * 6
    assert all(len(set(row)) == 6 for row in found.tolist())


def test_the_graph_is_recomputed():
    X, others = draw(12, 3), draw(12, 3, seed=1)
    wrong = nearest(others, 2, others[:0])
    term = NeighborDirichletEnergy(
        draw(12, 3, seed=2), wrong, every=2, directions=X[:0], refresh=(3,)
    )
    for _ in range(4):
        term.value_and_grad(X)
    assert torch.equal(term.edges, wrong)
    term.value_and_grad(X)  # the first call from 3 on that learns
    assert torch.equal(term.edges, nearest(X, 2, X[:0]))
    assert not term.W.detach().any()
    fresh = NeighborDirichletEnergy(torch.zeros(12, 3).double(), term.edges)
    torch.testing.assert_close(term.value_and_grad(X), fresh.value_and_grad(X))


def test_the_start_recovers_low_rank():
    truth = draw(80, 3) @ draw(3, 20, seed=1)
    mask = draw(80, 20, seed=2) > -1.0
    filled = fill_low_rank(truth * mask, mask, 3)
    assert torch.equal(filled[mask], truth[mask])
    missed = (filled - truth)[~mask].norm() / truth[~mask].norm()
    assert missed < 0.1
    wide = fill_low_rank((truth * mask).mT, mask.mT, 3).mT
    torch.testing.assert_close(wide, filled)


def test_sparse_and_dense_laplacians_agree():
    X = draw(2, 6, 4)
    A = torch.relu(draw(6, 6, seed=1))
    L = torch.diag((A + A.mT).sum(0)) - A - A.mT
    csr = sp.csr_array(L.numpy())
    starts, cols = (torch.as_tensor(p).long() for p in (csr.indptr, csr.indices))
    sparse = SparseDirichletEnergy(starts, cols, torch.as_tensor(csr.data))
    for ours, theirs in zip(
        sparse.value_and_grad(X), DirichletEnergy(L).value_and_grad(X), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.fixture(scope="module")
def picture():
    truth = load_photo("flower")[60:160, 100:170].astype(float)
    hidden = patterns.random(truth, 0.4, random_state=0)
    return truth, np.ma.masked_array(truth, hidden)


def test_neighbors_are_as_accurate_as_all_pairs(picture, tmp_path):
    truth, X = picture
    errors = {}
    for neighbors in (None, 10):
        air = AIRCompleter(neighbors=neighbors, random_state=0, device="cpu")
        completed = air.fit_transform(X)
        errors[neighbors] = relative_error(completed, truth, X.mask)
    assert errors[10] < 1.1 * errors[None]
    for k, name in ((100, "rows"), (70, "columns")):
        L = air.laplacians_[name]
        assert sp.issparse(L)
        assert L.shape == (k, k)
        assert L.nnz <= k * 21
        assert abs(L - L.T).max() < 1e-12
        np.testing.assert_allclose(L.sum(0), 0, atol=1e-12)
        assert np.linalg.eigvalsh(L.toarray())[0] > -1e-10
    persistence.save(air, tmp_path / "air")
    again = persistence.load(tmp_path / "air")
    assert abs(again.laplacians_["rows"] - air.laplacians_["rows"]).max() == 0
    A = LaplacianDisplay.from_estimator(air).images_["rows"].get_array()
    L = air.laplacians_["rows"].toarray()
    np.testing.assert_allclose(A, np.diag(L.diagonal()) - L)
    with pytest.raises(ValueError, match=r"of 9999 rows is sparse and too large"):
        LaplacianDisplay({"rows": sp.csr_array((9999, 9999))}).plot()
    # Sparse Laplacians can be given to another fit, as dense ones can.
    settings = {"max_iter": 30, "random_state": 0, "device": "cpu"}
    sparse = AIRCompleter(fixed_laplacians=air.laplacians_, **settings).fit(X)
    dense = {name: L.toarray() for name, L in air.laplacians_.items()}
    dense = AIRCompleter(fixed_laplacians=dense, **settings).fit(X)
    np.testing.assert_allclose(sparse.reconstruction_, dense.reconstruction_)
    assert sparse.laplacians_["rows"] is air.laplacians_["rows"]
    with pytest.raises(ValueError, match=r"diagonally dominant of shape \(100, 100\)"):
        AIRCompleter(fixed_laplacians={"rows": sp.eye_array(99)}, **settings).fit(X)


def test_many_items_have_neighbors(picture, monkeypatch):
    monkeypatch.setattr("skmc.completers.air.MANY", 80)
    air = AIRCompleter(max_iter=5, random_state=0, device="cpu").fit(picture[1])
    assert sp.issparse(air.laplacians_["rows"])
    assert isinstance(air.laplacians_["columns"], np.ndarray)
    air.set_params(neighbors=99).fit(picture[1])  # all others
    assert isinstance(air.laplacians_["rows"], np.ndarray)


def test_batched_fits_equal_separate_fits(picture):
    completers = [
        AIRCompleter(
            weight, 0.25, neighbors=5, max_iter=24, early_stopping=True
        ).set_params(device="cpu", random_state=seed)
        for seed, weight in enumerate((0.1, 0.0, 0.5))
    ]
    alone = [clone(completer).fit(picture[1]) for completer in completers]
    together = fit_batch(completers, [picture[1]] * 3)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(
            other.reconstruction_, one.reconstruction_, rtol=1e-5, atol=1e-4
        )
        assert set(one.laplacians_) == set(other.laplacians_)
        assert sp.issparse(other.laplacians_["columns"])


def test_a_warm_start_keeps_the_graph(picture):
    X = picture[1]
    air = AIRCompleter(neighbors=5, max_iter=100, warm_start=True, random_state=0)
    air.set_params(device="cpu").fit(X)
    first, L = air.reconstruction_, air.laplacians_["rows"]
    air.set_params(max_iter=1, lr=1e-9).fit(X)
    np.testing.assert_allclose(air.reconstruction_, first, rtol=1e-5)
    assert abs(air.laplacians_["rows"] - L).max() < 1e-6
