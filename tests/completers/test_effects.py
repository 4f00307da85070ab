"""Soft-Impute with unpenalized effects of rows and columns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import low_rank, make
from scipy import sparse

from skmc import SoftImputeCompleter, patterns
from skmc.cells import SparseObserved
from skmc.checks import check_completer
from skmc.completers.soft_impute import Effects, SoftImpute, lambda_max
from skmc.loop import solve
from skmc.metrics import rmse
from skmc.persistence import load, save

SIDES = ["both", "rows", "columns"]


@pytest.fixture(scope="module")
def panel():
    """30 x 20 of rank 2 with effects and noise, a third of it hidden."""
    rng = np.random.RandomState(0)
    effects = 3 * rng.randn(30, 1) + 3 * rng.randn(20)
    truth = low_rank(30, 20, rank=2) + effects
    M = truth + 0.5 * rng.randn(30, 20)
    return truth, M, patterns.random(M, 0.3, random_state=0)


def cells_of(M, hidden, weights=None):
    rows, cols = np.nonzero(~hidden)
    weights = None if weights is None else weights[rows, cols]
    return SparseObserved.of(rows, cols, M[rows, cols], M.shape, weights)


def without_effects(X, sides):
    """The part of a whole matrix that is orthogonal to the effects."""
    if sides in ("both", "rows"):
        X = X - X.mean(1, keepdims=True)
    if sides in ("both", "columns"):
        X = X - X.mean(0)
    return X


def proximal_gradient(M, W, weight, sides, n_iter=20000):
    """Minimize ``sum W (X - M)^2 / 2 + weight |J X J|_*`` by its proximal operator.

    The nuclear norm of ``X`` less effects is least where these are means, so this is
    the same problem in one matrix.
    """
    X = before = np.zeros_like(M)
    for k in range(n_iter):
        Y = X + k / (k + 3) * (X - before)
        Z = Y + W * (M - Y) / W.max()
        inner = without_effects(Z, sides)
        U, s, Vt = np.linalg.svd(inner, full_matrices=False)
        s = np.maximum(s - weight / W.max(), 0)
        before, X = X, Z - inner + (U * s) @ Vt
        if k > 50 and np.abs(X - before).max() < 1e-11:
            break
    penalty = np.linalg.svd(without_effects(X, sides), compute_uv=False).sum()
    return X, (W * np.square(M - X)).sum() / 2 + weight * penalty


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_the_solution_is_that_of_an_independent_method(sides, weighted, panel):
    _, M, hidden = panel
    W = ~hidden * 1.0
    if weighted:
        W *= np.random.RandomState(1).uniform(0.2, 3, M.shape)
    data = cells_of(M, hidden, W if weighted else None)
    weight = 0.2 * lambda_max(data, sides)
    found = solve(
        SoftImpute(weight, sides=sides), data, max_iter=5000, tol=1e-9, check_every=5
    )
    X, least = proximal_gradient(M, W, weight, sides)
    np.testing.assert_allclose(found.X.dense(), X, atol=1e-3)
    objective, gap = found.history["objective"], found.history["residual"]
    assert float(objective[-1]) == pytest.approx(least, rel=1e-7)
    # The gap bounds the distance from the minimum, and vanishes with it.
    above = (objective - least) / objective
    assert (above <= gap + 1e-7).all()
    assert above[0] > 1e-5 and gap[-1] < 1e-6


@pytest.mark.parametrize("sides", SIDES)
def test_the_largest_weight_leaves_only_effects(sides, panel):
    _, M, hidden = panel
    data = cells_of(M, hidden)
    largest = lambda_max(data, sides)
    ranks = []
    for share in (1.0, 0.99):
        solver = SoftImpute(share * largest, sides=sides)
        found = solve(solver, data, max_iter=500, tol=1e-10, check_every=5)
        ranks.append(found.result.spectrum.rank)
    assert ranks == [0, 1]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("share", [0.2, 0.9])
def test_effects_are_those_of_weighted_least_squares(sides, share):
    rng = np.random.RandomState(0)
    hidden = rng.rand(40, 30) < share
    hidden[3] = hidden[:, 4] = True  # an empty row and an empty column
    M, W = rng.randn(40, 30), rng.uniform(0.1, 2, (40, 30))
    data = cells_of(M, hidden, W)
    found = Effects.zero(data).fitted(data, data.values, sides)
    rows, cols = np.nonzero(~hidden)
    root = np.sqrt(W[rows, cols])
    parts = {
        "rows": [np.eye(40)[rows]],
        "columns": [np.eye(30)[cols]],
        "both": [np.eye(40)[rows], np.eye(30)[cols]],
    }
    A = np.hstack(parts[sides])
    expected = A @ np.linalg.lstsq(root[:, None] * A, root * M[rows, cols])[0]
    np.testing.assert_allclose(found.at(data), expected, atol=1e-8)
    assert found.a[3] == found.b[4] == 0
    again = found.fitted(data, data.values, sides)
    np.testing.assert_allclose(again.at(data), found.at(data), atol=1e-8)


@pytest.mark.parametrize("container", [np.ma.masked_array, sparse.csr_matrix])
@pytest.mark.parametrize("sides", SIDES)
def test_constants_of_rows_and_columns_pass_to_the_completion(sides, container, panel):
    _, M, hidden = panel
    rng = np.random.RandomState(2)
    constants = np.zeros_like(M)
    if sides != "columns":
        constants += 10 * rng.randn(30, 1)
    if sides != "rows":
        constants += 10 * rng.randn(20)
    weights = rng.uniform(0.5, 2, M.shape)
    answers = []
    for X in (M, M + constants):
        if container is sparse.csr_matrix:
            X, cell_weight = sparse.csr_matrix(X * ~hidden), None
        else:
            X, cell_weight = np.ma.masked_array(X, hidden), weights
        completer = SoftImputeCompleter(
            fixed_effects=sides,
            scaling="global",
            random_state=0,
        )
        answers.append(completer.fit(X, cell_weight=cell_weight).reconstruction_)
    np.testing.assert_allclose(answers[1], answers[0] + constants, atol=1e-6)


def test_new_rows_have_their_own_effects(panel):
    """A row of the fit is completed as in the fit, with any constant added."""
    _, M, hidden = panel
    X = np.where(hidden, np.nan, M)
    completer = SoftImputeCompleter(
        fixed_effects="both", tol=1e-10, max_iter=5000, random_state=0
    ).fit(X)
    np.testing.assert_allclose(
        completer.transform(X[:4] + 50), completer.transform(X)[:4] + 50, atol=1e-3
    )
    # With one cell, nothing but the effect is known of the row.
    one = np.full((1, 20), np.nan)
    one[0, 3] = 7.0
    rest = completer.transform(one)[0] - completer.transform(one + 5)[0]
    np.testing.assert_allclose(rest, -5, atol=1e-6)


def test_effects_help_where_there_are_some(panel):
    """Rank 2 and strong effects, or none: held-out cells choose the weight."""
    truth, M, hidden = panel
    X = np.ma.masked_array(M, hidden)
    errors = {
        sides: rmse(
            truth,
            SoftImputeCompleter(
                fixed_effects=sides, scaling="global", random_state=0
            ).fit_transform(X),
            hidden,
        )
        for sides in (None, *SIDES)
    }
    assert errors["both"] < 0.7
    assert errors["both"] < 0.9 * min(errors[s] for s in (None, "rows", "columns"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_additive_matrix_is_completed_exactly(dtype, tmp_path):
    rng = np.random.RandomState(0)
    M = (rng.randn(30, 1) + rng.randn(20)).astype(dtype)
    X = np.where(patterns.random(M, 0.5, random_state=0), np.nan, M).astype(dtype)
    completer = SoftImputeCompleter(fixed_effects="both", random_state=0)
    whole = completer.fit_transform(X)
    atol = 1e-4 if dtype is np.float32 else 1e-8
    np.testing.assert_allclose(whole, M, atol=atol)
    assert completer.rank_ == 0
    save(completer, tmp_path / "effects.skmc")
    np.testing.assert_array_equal(
        load(tmp_path / "effects.skmc").transform(X), completer.transform(X)
    )


def test_parts_without_a_common_row_or_column():
    """Two blocks, each with its own effects: one constant is not determined."""
    rng = np.random.RandomState(0)
    M = rng.randn(12, 1) + rng.randn(10)
    hidden = np.zeros(M.shape, bool)
    hidden[:6, 5:] = hidden[6:, :5] = hidden[0, 0] = True
    whole = make(SoftImputeCompleter, lambda_nuclear=0.5, fixed_effects="both")
    whole = whole.fit_transform(np.ma.masked_array(M, hidden))
    assert np.isfinite(whole).all()
    assert whole[0, 0] == pytest.approx(M[0, 0], abs=1e-6)


@pytest.mark.parametrize("sides", SIDES)
def test_a_warm_start_resumes_at_the_solution(sides, panel):
    _, M, hidden = panel
    X = np.ma.masked_array(M, hidden)
    completer = SoftImputeCompleter(
        0.1, fixed_effects=sides, warm_start=True, tol=1e-6, max_iter=5000
    )
    first = completer.fit(X).n_iter_
    assert completer.fit(X).n_iter_ < first / 2


def test_the_choice_of_sides_is_checked():
    with pytest.raises(ValueError, match="fixed_effects"):
        SoftImputeCompleter(fixed_effects="time").fit(np.eye(4))


def test_single_precision_on_a_sparse_matrix(panel):
    _, M, hidden = panel
    doubles = cells_of(M, hidden)
    answers = [
        solve(
            SoftImpute(1.0, sides="both"), cells, max_iter=500, tol=1e-5, check_every=5
        ).X.dense()
        for cells in (doubles, doubles.to(torch.float32))
    ]
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-2)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_effects_keep_what_every_completer_promises():
    check_completer(SoftImputeCompleter(fixed_effects="both"))
