"""Features and graphs of rows and columns: linear priors on the factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from sklearn.model_selection import GridSearchCV, KFold

from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    SoftImputeCompleter,
)
from skmc.base.side_information import FeatureScaling, read_features, read_graph
from skmc.cells import Side, SparseObserved
from skmc.completers.bayesian.gibbs import draw_link
from skmc.completers.factorization.als import ALS
from skmc.linalg import Randomness, conjugate_gradients
from skmc.persistence import load, save
from skmc.solvers import solved

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* no observed cell:UserWarning"),
]
M, N = 40, 30
COLD_ROW, COLD_COL = 7, 3


def als(**params):
    given = {"lambda_ridge": 0.02, "lambda_side": 0.3, "scaling": "global"}
    given |= {"random_state": 0, "max_iter": 50}
    return FactorizationCompleter(2, **{**given, **params})


def bayesian(**params):
    given = {"n_draws": 20, "n_burn_in": 20, "scaling": "global", "random_state": 0}
    return BayesianFactorizationCompleter(2, **{**given, **params})


both = pytest.mark.parametrize("make", [als, bayesian])


@pytest.fixture
def problem():
    """A matrix whose factors are linear in features, with a cold row and column."""
    rng = np.random.RandomState(0)
    rows, cols = rng.randn(M, 4), rng.randn(N, 3)
    truth = 2 + rows @ rng.randn(4, 2) @ (cols @ rng.randn(3, 2)).T
    X = np.where(rng.rand(M, N) < 0.5, truth, np.nan)
    X[COLD_ROW], X[:, COLD_COL] = np.nan, np.nan
    return X, truth, {"row_features": rows, "col_features": cols}


def ring(n: int) -> sp.csr_array:
    """Each node has the next one as a neighbor."""
    forward = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)))
    return forward + forward.T


def small_data() -> SparseObserved:
    rng = np.random.RandomState(0)
    rows, cols = np.nonzero(rng.rand(8, 6) < 0.6)
    sides = []
    for n, name in ((8, "row"), (6, "col")):
        features = rng.randn(n, 3)
        graph = read_graph(ring(n), n, f"{name}_graph")
        sides.append((FeatureScaling.of(features).side(features), graph))
    values = torch.from_numpy(rng.randn(len(rows)))
    return SparseObserved(
        torch.from_numpy(rows),
        torch.from_numpy(cols),
        values,
        (8, 6),
        sides=tuple(sides),
    )


def dense(side: Side) -> tuple[torch.Tensor, torch.Tensor]:
    eye = torch.eye(side.size, dtype=torch.float64)
    return side.mean(eye), side.penalty(eye)


def test_graph_penalty_is_its_laplacian():
    weights = np.triu(np.random.RandomState(0).rand(5, 5), 1)
    weights = weights + weights.T
    side = read_graph(weights + 3 * np.eye(5), 5, "row_graph")
    degree = weights.sum(0)
    L = (np.diag(degree) - weights) / degree.mean()
    S, P = dense(side)
    np.testing.assert_allclose(P, L + 0.1 * np.eye(5))
    np.testing.assert_array_equal(S, np.eye(5))
    sparse = read_graph(sp.csr_array(weights), 5, "row_graph")
    np.testing.assert_allclose(dense(sparse)[1], P)


@pytest.mark.long
@pytest.mark.parametrize(("per_cell", "row_biases"), [(1.0, False), (0.5, True)])
def test_als_minimizes_the_stated_objective(per_cell, row_biases, monkeypatch):
    # In double precision from the start.
    monkeypatch.setattr("skmc.completers.factorization.als.FAR", torch.inf)
    data, rank, weight, link_weight = small_data(), 2, 0.3, 0.7
    solver = ALS(
        torch.randn(8, rank, dtype=torch.float64, generator=torch.manual_seed(0)),
        weight,
        row_biases=row_biases,
        col_biases=True,
        per_cell=per_cell,
        link_weight=link_weight,
    )
    state, objectives = solver.init(data), []
    for _ in range(600):
        state = solver.step(data, state)
        objectives.append(float(state.objective))
    assert np.all(np.diff(objectives) < 1e-9 * objectives[0])
    free = [state.rows, state.cols, *state.links[0], *state.links[1]]
    free = [tensor.clone().requires_grad_() for tensor in free]
    rows, cols, *links = free
    fit = rows[:, :-1] @ cols[:, :-1].mT + rows[:, -1:] + cols[:, -1]
    F = (fit[data.rows, data.cols] - data.values).square().sum()
    for axis, W, maps in ((0, rows, links[:2]), (1, cols, links[2:])):
        count = torch.bincount((data.rows, data.cols)[axis]).double()
        for side, B in zip(data.sides[axis], maps, strict=True):
            S, P = dense(side)
            W = W - S @ B
            F = F + link_weight * (B * (P @ B)).sum()
        F = F + weight * (count[:, None] ** per_cell * W.square()).sum()
    assert float(F.detach() / 2) == pytest.approx(float(state.objective))
    grads = torch.autograd.grad(F / 2, free)
    if not row_biases:
        grads[0][:, -1] = 0.0
    for grad in grads:
        assert float(grad.abs().max()) < 1e-5
    assert solver.residual(data, state, state) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("per_cell", [0.0, 0.5])
def test_counts_with_graphs_descend(per_cell):
    """The mean of a linear prior is not that of all cells being zero."""
    data, rank = small_data(), 2
    start = torch.randn(8, rank, dtype=torch.float64, generator=torch.manual_seed(0))
    options = {"row_biases": False, "col_biases": False, "implicit": True}
    solver = ALS(start, 0.3, per_cell=per_cell, **options)
    states = [solver.init(data)]
    for _ in range(200):
        states.append(solver.step(data, states[-1]))
    objective = torch.stack([state.objective for state in states[1:]])
    assert (objective.diff() <= 1e-9 * objective[0]).all()
    assert solver.residual(data, states[-2], states[-1]) < 1e-5
    # New rows have the same answer as those of the fit.
    model = solver.result(states[-1]).models[0]
    torch.testing.assert_close(
        solved(data, model), states[-1].rows[:, :rank], atol=1e-5, rtol=0
    )


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
def test_links_are_drawn_from_their_posterior(which):
    """Mean and covariance of ``B`` given the factors, in closed form."""
    side, p = small_data().sides[0][which], 0.5
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    W = torch.randn(8, 2, dtype=torch.float64, generator=torch.manual_seed(1))
    S, P = dense(side)
    cov = torch.linalg.inv(S.mT @ S + p * P)
    rng = Randomness.of([0], dtype=torch.float64)
    drawn = [torch.zeros(side.size, 2, dtype=torch.float64)]
    for _ in range(1510):
        drawn.append(draw_link(rng, side, W, precision, drawn[-1], p)[0])
    draws = torch.stack(drawn[11:])
    error = torch.kron(cov, torch.linalg.inv(precision))
    off = (draws.mean(0) - cov @ S.mT @ W).flatten()
    assert float((off.square() / error.diagonal()).max()) < 25 / 1500
    ratio = draws.flatten(1).T.cov().diagonal() / error.diagonal()
    assert float(ratio.min()) > 0.75 and float(ratio.max()) < 1.3


def test_conjugate_gradients_solve_a_system():
    rng = torch.manual_seed(0)
    A = torch.randn(5, 5, dtype=torch.float64, generator=rng)
    A, right = A @ A.mT + torch.eye(5), torch.ones(5, 2, dtype=torch.float64)
    found, _ = conjugate_gradients(lambda Z: A @ Z, right, torch.zeros_like(right), 5)
    torch.testing.assert_close(found, torch.linalg.solve(A, right))


@both
def test_cold_rows_and_columns_are_completed_from_features(make, problem):
    X, truth, features = problem
    completer = make().fit(X, **features)
    R, spread = completer.reconstruction_, truth.std()
    for off in ((R - truth)[COLD_ROW], (R - truth)[:, COLD_COL]):
        assert np.sqrt(np.square(off).mean()) < 0.25 * spread
    np.testing.assert_allclose(
        completer.predict_entries(COLD_ROW, range(N)), R[COLD_ROW], rtol=1e-6
    )
    np.testing.assert_allclose(completer.transform(X)[COLD_ROW], R[COLD_ROW])
    new = np.full((1, N), np.nan)
    row = features["row_features"][[COLD_ROW]]
    answer = completer.transform(new, row_features=row)[0]
    np.testing.assert_allclose(answer, R[COLD_ROW])
    # The features of another row, or none, give another answer.
    assert not np.allclose(completer.transform(new)[0], answer)


@both
def test_features_help_rows_with_few_cells(make, problem):
    X, truth, features = problem
    X = X.copy()
    X[20:, 4:] = np.nan
    hidden = np.isnan(X)
    error = [
        np.square(make().fit_transform(X, **given) - truth)[hidden].mean()
        for given in ({}, features)
    ]
    assert error[1] < 0.5 * error[0]


@both
def test_any_container_holds_features(make, problem):
    X, _, features = problem
    rows, cols = features.values()
    expected = make().fit_transform(X, **features)
    for container in (pd.DataFrame, torch.from_numpy):
        given = {"row_features": container(rows), "col_features": container(cols)}
        found = make().fit(Entries(X), **given).transform(X)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    sparse = np.where(np.abs(rows) > 1, rows, 0)
    scaled = [FeatureScaling.of(kind) for kind in (sparse, sp.csr_array(sparse))]
    size = np.sqrt(np.square(sparse).sum() / len(sparse))  # of a row
    assert np.all(scaled[1].shift == 0) and scaled[1].scale == pytest.approx(size)
    found = make().fit(X, row_features=sp.csr_array(sparse)).reconstruction_
    assert np.isfinite(found).all()


@both
def test_a_graph_completes_rows_from_their_neighbors(make):
    angle = 2 * np.pi * np.arange(M) / M
    truth = np.stack([np.sin(angle + k) for k in np.linspace(0, 3, N)], 1) + 2
    X = truth.copy()
    X[::4] = np.nan
    cold = np.isnan(X).all(1)
    completer = make(**({"lambda_side": 0.01} if make is als else {"n_draws": 120}))
    completer.fit(X, row_graph=ring(M))
    error = np.square(completer.reconstruction_ - truth)[cold].mean()
    means = np.square(np.nanmean(X, 0) - truth)[cold].mean()
    assert error < 0.1 * means


@both
def test_no_side_information_changes_nothing(make, problem):
    X, _, _ = problem
    X = X[np.arange(M) != COLD_ROW][:, np.arange(N) != COLD_COL]
    plain = make().fit(X)
    given = make().fit(X, row_features=None, col_graph=None)
    np.testing.assert_array_equal(plain.reconstruction_, given.reconstruction_)


@pytest.mark.long
def test_a_constant_feature_hardly_changes_the_answer(problem):
    X, _, _ = problem
    X = X[np.arange(M) != COLD_ROW][:, np.arange(N) != COLD_COL]
    exact = {"tol": 1e-12, "max_iter": 5000}
    constant = als(**exact).fit(X, row_features=np.ones((len(X), 1)))
    np.testing.assert_allclose(
        constant.reconstruction_, als(**exact).fit(X).reconstruction_, atol=1e-6
    )


@pytest.mark.long
def test_weight_is_chosen_on_held_out_cells(problem):
    X, _, features = problem
    completer = FactorizationCompleter(2, random_state=0).fit(X, **features)
    assert completer.lambda_side_ > 0
    assert not hasattr(completer.fit(X[:7, 4:]), "lambda_side_")


@both
def test_a_search_routes_features(make, problem):
    X, _, features = problem
    with sklearn.config_context(enable_metadata_routing=True):
        completer = make().set_fit_request(row_features=True, col_features=True)
        search = GridSearchCV(
            completer, {"rank": [1, 2]}, cv=KFold(4, shuffle=True, random_state=0)
        )
        search.fit(Entries(X), **features)
    assert search.best_params_ == {"rank": 2}
    assert search.best_estimator_.reconstruction_[COLD_ROW].std() > 0.1
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'row_feature'"):
        make().fit(X, row_feature=1)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'row_features'"):
        SoftImputeCompleter().fit(X, **features)


@both
def test_files_keep_side_information(make, problem, tmp_path):
    X, _, features = problem
    completer = make().fit(X, **features, row_graph=ring(M))
    save(completer, tmp_path / "file.skmc")
    again = load(tmp_path / "file.skmc")
    np.testing.assert_array_equal(again.transform(X), completer.transform(X))
    row = features["row_features"][:2]
    np.testing.assert_array_equal(
        again.transform(X[:2], row_features=row),
        completer.transform(X[:2], row_features=row),
    )


NEGATIVE = np.ones((M, M))
NEGATIVE[3, 5] = NEGATIVE[5, 3] = -1
BAD = {
    "row_features has 5 lines, but there are 40 rows": {
        "row_features": np.zeros((5, 2))
    },
    "col_features has 40 lines, but there are 30 columns": {
        "col_features": np.zeros((M, 2))
    },
    "missing values in line 2, 4; complete": {
        "row_features": np.where(np.isin(np.arange(M), [2, 4]), np.nan, 1.0)[:, None]
    },
    "must have a line for each item": {"row_features": np.zeros(M)},
    "row_features holds 'old' at row 0": {"row_features": [["old"]] * M},
    r"row_graph has shape \(3, 3\), but there are 40": {"row_graph": np.ones((3, 3))},
    r"row_graph holds -1.0 at \(3, 5\)": {"row_graph": NEGATIVE},
    "col_graph is not symmetric": {"col_graph": np.triu(np.ones((N, N)))},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input(message, problem):
    completer = als()
    with pytest.raises((ValueError, TypeError), match=message):
        completer.fit(problem[0], **BAD[message])
    assert not hasattr(completer, "n_iter_")


def test_features_at_transform_match_those_of_the_fit(problem):
    X, _, features = problem
    completer = als().fit(X, row_features=features["row_features"])
    with pytest.raises(ValueError, match="has 2 columns, but 4 in fit"):
        completer.transform(X[:5], row_features=np.zeros((5, 2)))
    with pytest.raises(ValueError, match="row_features is given, but fit had none"):
        als().fit(X[:, 4:]).transform(X[:5, 4:], row_features=np.zeros((5, 2)))
    sparse = sp.csr_array(([np.nan], ([1], [0])), shape=(3, 2))
    with pytest.raises(ValueError, match="missing values in line 1"):
        read_features(sparse, 3, "row_features")
