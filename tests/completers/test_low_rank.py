"""The low-rank family: optimality, and agreement of methods with each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from conftest import low_rank, make
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skmc import (
    BayesianFactorizationCompleter,
    FactorizationCompleter,
    IALMCompleter,
    Observed,
    SoftImputeCompleter,
    SVTCompleter,
    patterns,
)
from skmc.cells import SparseObserved
from skmc.completers.bayesian.gibbs import Gibbs, draw_relative, gamma, normal_wishart
from skmc.completers.factorization.als import (
    ALS,
    best_step,
    misfit_along,
    penalty_along,
    squares_along,
)
from skmc.completers.ialm import InexactALM
from skmc.completers.soft_impute import SoftImpute, lambda_max
from skmc.completers.svt import SingularValueThresholding
from skmc.linalg import LowRank, Randomness, RowModel, padded, partial_svd
from skmc.loop import solve
from skmc.metrics import relative_error, rmse
from skmc.solvers import row_systems, solved
from skmc.solvers.row_systems import Systems, gradient, improved


@pytest.fixture(scope="module")
def noisy():
    """40 x 30 of rank 3 and noise, half of it hidden; dense and sparse."""
    truth = low_rank(40, 30, rank=3)
    M = truth + 0.3 * np.random.RandomState(5).randn(40, 30)
    hidden = patterns.random(M, 0.5, random_state=2)
    data = Observed(torch.tensor(M), torch.from_numpy(~hidden))
    rows, cols = np.nonzero(~hidden)
    sparse = SparseObserved.of(rows, cols, torch.tensor(M[rows, cols]), M.shape)
    return truth, M, hidden, data, sparse


def test_ialm_attains_the_least_nuclear_norm(noisy):
    """The multiplier certifies it: on the cells, norm at most 1, ``<Y, X> = |X|_*``."""
    *_, data, _ = noisy
    solver = InexactALM(1e-7)
    state = solver.init(data)
    while solver.residual(data, None, state) > 1e-6:
        state = solver.step(data, state)
    X, Y = data.fill(state.X), state.dual
    assert float(data.residual(state.X).norm()) < 1e-6 * float(data.values.norm())
    torch.testing.assert_close(Y * data.indicator, Y, atol=1e-6, rtol=0)
    assert torch.linalg.matrix_norm(Y, 2) < 1 + 1e-4
    nuclear = torch.linalg.matrix_norm(X, "nuc")
    assert float((Y * X).sum()) == pytest.approx(float(nuclear), rel=1e-4)


@pytest.mark.long
def test_methods_for_the_least_nuclear_norm_agree(noisy):
    """IALM, SVT with a large tau, and Soft-Impute with a small weight."""
    *_, data, sparse = noisy
    exact = solve(InexactALM(1e-8), data, max_iter=9000, tol=1e-7, check_every=5).X
    tau = 50 * float(data.values.norm())
    for delta in (None, 1.5):
        svt = SingularValueThresholding(tau, delta)
        found = solve(svt, data, max_iter=6000, tol=1e-5, check_every=50).X
        # The squared norm, a three-hundredth of the objective, is what differs.
        assert float((found - exact).norm() / exact.norm()) < 1e-2
    start = None
    for share in 0.5 ** np.arange(1, 15):
        path = SoftImpute(share * lambda_max(sparse), start=start)
        found = solve(path, sparse, max_iter=2000, tol=1e-6, check_every=5)
        start = found.result.spectrum
    assert float((found.X.dense() - exact).norm() / exact.norm()) < 5e-3


@pytest.mark.parametrize("share", [0.6, 0.2, 0.05])
def test_soft_impute_is_optimal(share, noisy):
    """At the solution the misfit is ``weight U V'`` along ``X``, and less across it."""
    *_, sparse = noisy
    weight = share * lambda_max(sparse)
    solution = solve(
        SoftImpute(weight), sparse, max_iter=5000, tol=1e-9, check_every=10
    )
    spectrum = solution.result.spectrum
    R = -sparse.matrix(sparse.residual(solution.X)).to_dense()
    U, V = spectrum.U, spectrum.V
    torch.testing.assert_close(R @ V, weight * U, atol=1e-3 * weight, rtol=0)
    torch.testing.assert_close(R.mT @ U, weight * V, atol=1e-3 * weight, rtol=0)
    assert float(partial_svd(R, 1).s[0]) <= weight * (1 + 1e-4)
    objective = solution.history["objective"]
    assert (objective.diff() <= 1e-12 * objective[0]).all()
    # The gap bounds how far the objective is from its least.
    above = (objective - objective[-1]) / objective
    assert (above <= solution.history["residual"] + 1e-5).all()


def test_soft_impute_solutions_by_partial_and_full_svd_agree(noisy):
    *_, sparse = noisy

    class Full(SoftImpute):
        def _shrink(self, filled, near, threshold):
            return super()._shrink(filled.dense(), near, threshold)

    answers = [
        solve(kind(2.0), sparse, max_iter=3000, tol=1e-8, check_every=10)
        for kind in (SoftImpute, Full)
    ]
    torch.testing.assert_close(
        answers[0].X.dense(), answers[1].X.dense(), atol=1e-4, rtol=0
    )


def test_soft_impute_rank_cap(noisy):
    _, M, hidden, *_ = noisy
    X = np.ma.masked_array(M, hidden)
    completer = make(SoftImputeCompleter, lambda_nuclear=0.05, max_rank=2, max_iter=500)
    completer.fit(X)
    assert completer.rank_ == 2
    assert completer.status_ == "converged"


def test_soft_impute_path(noisy):
    """Weights decrease; the chosen one has the least error on held-out cells."""
    _, M, hidden, *_ = noisy
    completer = make(SoftImputeCompleter, max_iter=500).fit(
        np.ma.masked_array(M, hidden)
    )
    path = completer.path_
    assert (np.diff(path["lambda_nuclear"]) < 0).all()
    best = path["error"].argmin()
    assert completer.lambda_nuclear_ == path["lambda_nuclear"][best]
    assert best == len(path["error"]) - 3  # and then it rose twice
    assert path["rank"][0] <= path["rank"][-1]


@pytest.mark.parametrize(
    ("biases", "per_cell", "rank"),
    [("both", 1.0, 4), ("rows", 0.5, 9), ("columns", 0.0, 9), (None, 1.0, 4)],
)
def test_als_descends_to_a_stationary_point(biases, per_cell, rank, noisy, monkeypatch):
    # In double precision from the start.
    monkeypatch.setattr("skmc.completers.factorization.als.FAR", torch.inf)
    *_, sparse = noisy
    start = torch.randn(40, rank, generator=torch.Generator().manual_seed(0)).double()
    solver = ALS(
        start,
        0.1,
        row_biases=biases in ("both", "rows"),
        col_biases=biases in ("both", "columns"),
        per_cell=per_cell,
    )
    solution = solve(solver, sparse, max_iter=600, tol=1e-6, check_every=1)
    objective = solution.history["objective"]
    assert (objective.diff() <= 1e-9 * objective[0]).all()
    state = solver.step(sparse, solver.init(sparse))
    for _ in range(int(solution.n_iter)):
        state = solver.step(sparse, state)
    rows, cols = (t.clone().requires_grad_() for t in (state.rows, state.cols))
    by_hand = 0.0
    for i, j, value in zip(sparse.rows, sparse.cols, sparse.values, strict=True):
        guess = rows[i, :-1] @ cols[j, :-1] + rows[i, -1] + cols[j, -1]
        by_hand = by_hand + (guess - value) ** 2 / 2
    n_row, n_col = sparse.starts.diff(), sparse.T.starts.diff()
    for side, count in ((rows, n_row), (cols, n_col)):
        weight = count.double() ** per_cell
        by_hand = by_hand + 0.05 * (side.square().sum(1) * weight).sum()
    assert float(state.objective) == pytest.approx(by_hand.item(), rel=1e-9)
    slopes = torch.autograd.grad(by_hand, (rows, cols))
    if biases in (None, "columns"):
        assert state.rows[:, -1].abs().max() == 0
        slopes[0][:, -1] = 0
    if biases in (None, "rows"):
        assert state.cols[:, -1].abs().max() == 0
        slopes[1][:, -1] = 0
    assert all(slope.norm() < 1e-4 * sparse.energy for slope in slopes)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("per_cell, zeros", [(1.0, False), (0.0, False), (0.5, True)])
def test_improved_rows_approach_the_solutions(per_cell, zeros, weighted, noisy):
    """Conjugate gradients in single precision, residuals in double precision."""
    *_, sparse = noisy
    draw = torch.Generator().manual_seed(0)
    m, n = sparse.shape
    normal = partial(torch.randn, dtype=torch.float64, generator=draw)
    if weighted:
        weights = torch.rand(len(sparse.values), dtype=torch.float64, generator=draw)
        sparse = replace(sparse, weights=weights)
    precision = 0.3 * torch.eye(9, dtype=torch.float64)
    model = RowModel(normal(n, 9), normal(n), precision, normal(9), per_cell, zeros)
    # A row without cells has the mean of its prior.
    sparse = sparse.only(sparse.rows != 3)
    known = normal(m, 9)
    solved = model.solve(
        sparse.starts, sparse.cols, sparse.values, known=known, weights=sparse.weights
    )
    systems = Systems(model, 3, torch.float64, judge=True)
    slope, misfit = gradient(sparse, solved, systems, known)
    assert float(slope.norm()) < 1e-10
    assert float(misfit) == pytest.approx(
        float(
            sparse.weighted(
                (
                    sparse.at(LowRank(solved, model.F))
                    + model.offset[sparse.cols]
                    - sparse.values
                ).square()
            ).sum()
        )
    )
    W = torch.zeros_like(solved)
    for _ in range(60):
        slope, _ = gradient(sparse, W, systems, known)
        W, after = improved(sparse, W, slope, systems)
        left, _ = gradient(sparse, W, systems, known)
        if float(slope.norm()) > 1e-3:
            assert float(after.sum()) == pytest.approx(
                float(left.square().sum()), rel=2e-2
            )
            assert float(left.norm()) < float(slope.norm())
    torch.testing.assert_close(W, solved, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_systems_are_solved_to_rounding_errors(dtype, noisy, monkeypatch):
    """Without normal equations; with the zeros of counts and a prior mean."""
    *_, sparse = noisy
    draw = torch.Generator().manual_seed(0)
    normal = partial(torch.randn, dtype=torch.float64, generator=draw)
    F, mean, eye = normal(30, 24), normal(24), torch.eye(24)
    model = RowModel(F, F[:, 0], eye, mean, 0.5, True).map(lambda x: x.to(dtype))
    exact = solved(sparse, model.map(torch.Tensor.double))
    monkeypatch.setattr(row_systems, "LARGE", 0)
    monkeypatch.setattr(RowModel, "solve", None)
    found = solved(sparse.to(dtype), model)
    accuracy = 1e3 * torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), exact, rtol=accuracy, atol=accuracy)


def test_counts_start_near_their_solution():
    """One sweep of a fit to counts comes close to the least objective."""
    rng = np.random.RandomState(0)
    tastes = rng.rand(80, 4) ** 4 @ rng.rand(4, 50) ** 4
    counts = np.where(tastes > 3 * rng.rand(80, 50) ** 2, 1.0, np.nan)
    params = {"rank": 6, "lambda_ridge": 1.0, "alpha": 3.0, "tol": 0.0}
    params["per_cell"] = 0.0
    with pytest.warns(ConvergenceWarning):
        first = make(FactorizationCompleter, **params, max_iter=1).fit(counts)
        last = make(FactorizationCompleter, **params, max_iter=200).fit(counts)
    off = first.history_["objective"][-1] - last.history_["objective"][-1]
    assert off < 0.02 * np.nansum(counts) * 4 / 2
    # More factors than the matrix has: none is stuck at zero.
    fit = make(FactorizationCompleter, rank=3, lambda_ridge=2e-3, alpha=1.0)
    assert abs(fit.fit(np.ones((30, 20))).reconstruction_ - 1).max() < 0.01


def test_badly_conditioned_systems_are_solved_exactly(noisy):
    """Numbers beyond single precision, and weights too small for a few steps."""
    *_, sparse = noisy
    start = torch.randn(40, 9, generator=torch.Generator().manual_seed(0)).double()
    for scale, weight in ((1e50, 1e48), (1.0, 1e-8)):
        scaled = replace(sparse, values=scale * sparse.values)
        solver = ALS(start, weight, row_biases=True, col_biases=True, per_cell=1.0)
        solution = solve(solver, scaled, max_iter=40, check_every=1)
        objective = solution.history["objective"]
        assert (objective.diff() <= 1e-9 * objective[0]).all()
        state = solver.init(scaled)
        for _ in range(40):
            state = solver.step(scaled, state)
        assert state.steps[0] == 0


@pytest.mark.parametrize("light", [1e-16, 1e-40])
def test_light_columns_are_fitted_like_others(light, noisy):
    """The rows of a half-step have different units."""
    truth, M, hidden, *_ = noisy
    weights = np.where(np.arange(30) < 5, light, 1.0) * np.ones_like(M)
    errors = [
        relative_error(
            make(FactorizationCompleter, rank=3, lambda_ridge=0.02)
            .fit(np.ma.masked_array(M, hidden), cell_weight=w)
            .reconstruction_[:, :5],
            truth[:, :5],
            hidden[:, :5],
        )
        for w in (weights, None)
    ]
    assert errors[0] < 2 * errors[1]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*stopped after 200 iterations")
@pytest.mark.parametrize("unit", [1e-40, 1e25])
def test_unscaled_cells_of_any_size(unit, noisy):
    """Changes below single precision are kept; other starts lead to other minima."""
    _, M, hidden, *_ = noisy
    params = {"rank": 3, "scaling": None, "biases": None, "per_cell": 0.0, "tol": 0.0}
    params["max_iter"] = 200
    X = np.ma.masked_array(M, hidden)
    one = make(FactorizationCompleter, **params, lambda_ridge=0.1).fit(X)
    other = make(FactorizationCompleter, **params, lambda_ridge=0.1 * unit)
    reached = other.fit(unit * X).history_["objective"][-1] / unit**2
    assert reached < 2 * one.history_["objective"][-1]


def test_constant_cells_take_one_sweep():
    X = np.full((12, 8), 3.0)
    X[2, 3] = np.nan
    completer = make(FactorizationCompleter, rank=2, lambda_ridge=0.1).fit(X)
    assert completer.status_ == "converged"
    assert completer.n_iter_ == 1
    np.testing.assert_array_equal(completer.reconstruction_, 3.0)


def test_outliers_of_small_weight_do_not_affect_the_choice(noisy):
    _, M, hidden, *_ = noisy
    X, weights = M.copy(), np.ones_like(M)
    X[0, 0], weights[0, 0] = 1e30, 1e-66
    completer = make(FactorizationCompleter, scaling=None)
    completer.fit(np.ma.masked_array(X, hidden), cell_weight=weights)
    assert completer.lambda_ridge_ < 0.3


def test_components_that_vanished_in_the_trial_do_not_grow_in_the_fit():
    """The trial has rank 4; a fit of rank 16 is worse than half of the means' error."""
    rng = np.random.RandomState(10)
    truth = rng.randn(120, 4) @ rng.randn(4, 30) + 0.3 * rng.randn(120, 30)
    hidden = rng.rand(*truth.shape) < 0.25
    X = np.where(hidden, np.nan, truth)
    completer = FactorizationCompleter(random_state=2, device="cpu")
    error = rmse(completer.fit_transform(X), truth, hidden)
    assert completer.rank_ == 4
    assert error < 0.3 * rmse(np.broadcast_to(np.nanmean(X, 0), X.shape), truth, hidden)


def test_factored_nuclear_norm_is_soft_impute(noisy):
    """``|X|_* = min (|U|^2 + |V|^2) / 2``: with enough factors, the same answer."""
    *_, sparse = noisy
    start = torch.randn(40, 20, generator=torch.Generator().manual_seed(0)).double()
    als = ALS(start, 3.0, row_biases=False, col_biases=False, per_cell=0.0)
    ours = solve(als, sparse, max_iter=5000, tol=1e-10, check_every=10)
    theirs = solve(SoftImpute(3.0), sparse, max_iter=5000, tol=1e-9, check_every=10)
    torch.testing.assert_close(ours.X.dense(), theirs.X.dense(), atol=1e-3, rtol=0)
    assert float(ours.history["objective"][-1]) == pytest.approx(
        float(theirs.history["objective"][-1]), rel=1e-6
    )


def test_transform_of_fitted_rows_equals_the_fit(noisy):
    """The sweeps end with the rows, which is what transform does for them."""
    _, M, hidden, *_ = noisy
    X = np.ma.masked_array(M, hidden)
    completer = make(
        FactorizationCompleter, rank=3, lambda_ridge=0.1, keep_observed=False
    )
    completer.fit(X)
    np.testing.assert_allclose(completer.transform(X), completer.reconstruction_)


@pytest.mark.long
def test_bayesian_averages_beat_a_point_estimate(noisy):
    """Averages over draws beat a single fit with a weight chosen on held-out cells."""
    truth, M, hidden, *_ = noisy
    X = np.ma.masked_array(M, hidden)
    errors = [
        relative_error(cls(random_state=0).fit_transform(X), truth, hidden)
        for cls in (BayesianFactorizationCompleter, FactorizationCompleter)
    ]
    assert errors[0] < errors[1] < 0.5


@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_draws_of_the_bayesian_factorization(heteroscedastic):
    """They have its deviations, and a row's missing cells are drawn together."""
    rng = np.random.RandomState(0)
    truth = rng.randn(150, 2) @ rng.randn(2, 12) + 0.5 * rng.randn(150, 12)
    hidden = rng.rand(150, 12) < 0.3
    hidden[0, 1:] = True  # so that its missing cells depend on one factor mostly
    X = np.where(hidden, np.nan, truth)
    completer = BayesianFactorizationCompleter(
        2, heteroscedastic=heteroscedastic, random_state=0
    ).fit(X)
    draws = completer.sample(X, 240, random_state=0)
    np.testing.assert_array_equal(draws[:, ~hidden], np.tile(X[~hidden], (240, 1)))
    off = draws.mean(0) - completer.transform(X)
    std = completer.predict_std(X)
    assert np.abs(off[hidden] / std[hidden]).mean() < 0.1
    ratio = draws.std(0)[hidden] / std[hidden]
    np.testing.assert_allclose(np.median(ratio), 1, atol=0.05)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    assert 0.85 < ((low <= truth) & (truth <= high))[hidden].mean() < 0.95
    together = np.corrcoef(draws[:, 0, 1:].T) - np.eye(11)
    assert np.abs(together).max() > 0.5
    assert completer.sample(X[:3] + 0.1, 2).shape == (2, 3, 12)


@pytest.mark.filterwarnings("ignore:.*no observed cell")
def test_implicit_terms_use_the_set_of_rated_items():
    """People rate items that they like, so the choice is informative."""
    rng = np.random.RandomState(1)
    taste, kind = rng.randn(1000), rng.randn(60)
    truth = np.outer(taste, kind)
    M = truth + 2.0 * rng.randn(1000, 60)
    seen = rng.rand(1000, 60) < 0.3 / (1 + np.exp(-truth))
    X = np.ma.masked_array(M, ~seen)
    errors = {}
    for implicit in (False, True):
        completer = make(
            BayesianFactorizationCompleter, rank=2, implicit=implicit, n_draws=40
        ).fit(X)
        errors[implicit] = rmse(completer.reconstruction_, truth, ~seen)
    assert errors[True] < 0.8 * errors[False]


def test_hyper_parameters_have_their_posterior_moments():
    draw = Randomness.of([0], dtype=torch.float64)
    for shape in (1.0, 3.0, 400.0):
        draws = gamma(draw, *torch.tensor([[shape], [2.0]]).expand(2, 20000))
        uniform = stats.gamma(shape, scale=0.5).cdf(draws)
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    generator = torch.Generator().manual_seed(1)
    W = torch.randn(2000, 2, generator=generator, dtype=torch.float64)
    W = W @ torch.tensor([[2.0, 0], [1, 0.5]]).double() + 3
    half, rest = W[:1000], W[1000:] - W.mean(0)
    # Rows with mean zero may be given by their number and their products.
    for rows, *more in ((W,), (half, rest.T @ rest, 1000)):
        both = [normal_wishart(draw, rows, *more) for _ in range(300)]
        mean = torch.stack([m for m, _ in both]).mean(0)
        torch.testing.assert_close(mean, rows.mean(0), rtol=0.02, atol=0)
        precision = torch.stack([p for _, p in both]).mean(0)
        expected = torch.linalg.inv(W.T.cov())
        torch.testing.assert_close(precision, expected, rtol=0.05, atol=0)


def test_the_noise_variance_is_recovered(noisy):
    *_, sparse = noisy
    solver = Gibbs(Randomness.of([0], dtype=torch.float64), 3, 50, False)
    state, found = solver.init(sparse), []
    for k in range(200):
        state = solver.step(sparse, state)
        if k >= 50:
            found.append(state.noise**-0.5)
    assert np.mean(found) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize("cls", [IALMCompleter, SVTCompleter])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_the_data_do_not_matter(cls, scaling, factor):
    """tau and mu are in units of the data."""
    truth = low_rank(30, 20) + 5
    hidden = patterns.random(truth, 0.3, random_state=0)
    X = np.ma.masked_array(truth, hidden)
    completer = cls(scaling=scaling)
    expected = completer.fit_transform(X)
    np.testing.assert_allclose(
        completer.fit_transform(factor * X) / factor, expected, rtol=1e-6
    )


def test_degrees_of_freedom_and_precisions_are_recovered():
    """The noise of the rows is drawn from the model."""
    draw = Randomness.of([0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    normal = partial(torch.randn, dtype=torch.float64, generator=generator)
    squares = normal(3000, 20).square().sum(1)
    counts = torch.full_like(squares, 20.0)
    for freedom in (8, 256):
        truth = normal(3000, freedom).square().mean(1)
        drawn = [draw_relative(draw, counts, squares / truth) for _ in range(100)]
        found = np.log2([float(degrees) for _, degrees in drawn])
        assert np.mean(found) == pytest.approx(np.log2(freedom), abs=1)
        mean = torch.stack([relative for relative, _ in drawn]).mean(0)
        expected = (freedom + counts) / (freedom + squares / truth)
        torch.testing.assert_close(mean, expected, rtol=0.25, atol=0)


def test_predictable_rows_and_columns_have_more_weight():
    """If the noise of ratings differs, errors are lower and deviations informative."""
    rng = np.random.RandomState(0)
    liking = rng.randn(200, 3) @ rng.randn(3, 60)
    deviation = np.outer(np.repeat([0.5, 2.0], 100), np.tile([0.5, 2.0], 30))
    X = np.where(
        rng.rand(200, 60) < 0.6, np.nan, liking + deviation * rng.randn(200, 60)
    )
    errors, spread = [], []
    for heteroscedastic in (False, True):
        completer = make(
            BayesianFactorizationCompleter,
            rank=3,
            n_draws=40,
            heteroscedastic=heteroscedastic,
        ).fit(X)
        hidden = np.isnan(X)
        errors.append(rmse(completer.reconstruction_, liking, hidden))
        std = np.where(hidden, completer.predict_std(X), np.nan)
        quarters = [std[:100, ::2], std[:100, 1::2], std[100:, 1::2]]
        spread.append([np.nanmean(quarter) for quarter in quarters])
    assert errors[1] < 0.9 * errors[0]
    least, one, both = spread[1]
    assert 2 < one / least < 5
    assert 2 < both / one < 5


@pytest.mark.long
@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_posterior_deviations_cover_hidden_cells(heteroscedastic):
    """This holds for data from the model, in any units, and for new rows."""
    rng = np.random.RandomState(0)
    truth = rng.randn(150, 2) @ rng.randn(2, 20) + 0.3 * rng.randn(150, 20)
    truth = 5 + 100 * truth
    X = np.where(rng.rand(150, 20) < 0.3, np.nan, truth)
    completer = BayesianFactorizationCompleter(
        2, heteroscedastic=heteroscedastic, scaling="global", random_state=0
    ).fit(X[:120])
    for rows in (slice(120), slice(120, 150)):
        missing = np.isnan(X[rows])
        std = completer.predict_std(X[rows])
        off = np.abs(completer.transform(X[rows]) - truth[rows])
        assert (std[~missing] == 0).all()
        assert (std[missing] > 25).all()  # the noise is 30
        assert 0.83 < (off < 1.645 * std)[missing].mean() < 0.95


@pytest.mark.parametrize("implicit", [True, False])
def test_objective_along_a_line(implicit, noisy):
    """It is a polynomial of degree four, whose minimum is found."""
    *_, sparse = noisy
    m, n = sparse.shape
    draw = torch.Generator().manual_seed(0)
    normal = partial(torch.randn, dtype=torch.float64, generator=draw)
    rows, cols = normal(m, 6), normal(n, 6)
    if implicit:  # without biases
        for side in (rows, cols):
            side[:, [2, 5]] = 0.0
    ones = torch.ones(m + n, 1, dtype=torch.float64)
    W = torch.cat([rows[:, :3], cols[:, :3]])
    D = torch.cat([rows[:, 3:], cols[:, 3:]])
    one, zero = torch.ones(n, 1).double(), torch.zeros(n, 1).double()
    line = (
        padded(torch.cat([x[:, :2], bias, x[:, 2:]], 1))
        for x, bias in ((cols[:, :3], one), (cols[:, 3:], zero))
    )
    curve = misfit_along(sparse, (rows[:, :3], rows[:, 3:]), *line)
    curve = curve + 0.3 * penalty_along(W, D, ones)
    if implicit:
        pairs = ((side[:, :2], side[:, 3:5]) for side in (rows, cols))
        curve = curve + squares_along(*pairs, torch.float64)
    polynomial = np.polynomial.Polynomial(curve.tolist())

    def objective(step):
        V = W + step * D
        U, V = V[:m], V[m:]
        X = U[:, :-1] @ V[:, :-1].mT + U[:, -1:] + V[:, -1]
        off = X[sparse.rows, sparse.cols] - sparse.values
        value = off.square().sum() + 0.3 * (U.square().sum() + V.square().sum())
        return float(value + (X.square().sum() if implicit else 0.0))

    for step in (-1.0, 0.0, 0.3, 2.0):
        assert polynomial(step) == pytest.approx(objective(step), rel=1e-9)
    best = best_step(curve)
    if best is None:  # uphill from here; then the other way is down
        best = best_step(curve * torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0]))
        polynomial = polynomial(np.polynomial.Polynomial([0, -1]))
    assert all(polynomial(best) <= polynomial(best * f) for f in (0.0, 0.9, 1.1))
    assert best_step(torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0])) is None
    assert best_step(torch.tensor([1.0, -1.0, torch.nan, 0.0, 1.0])) is None


def test_conjugate_directions_need_fewer_sweeps(noisy, monkeypatch):
    *_, sparse = noisy
    start = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).double()
    options = {"row_biases": True, "col_biases": True, "per_cell": 1.0}
    limits = {"max_iter": 2000, "tol": 1e-6, "check_every": 1}
    found = []
    for plain in (2, 2000):
        monkeypatch.setattr("skmc.completers.factorization.als.PLAIN", plain)
        found.append(solve(ALS(start, 0.02, **options), sparse, **limits))
    assert all(s.status[0] == "converged" for s in found)
    assert found[0].n_iter < 0.6 * found[1].n_iter
    assert (found[0].history["objective"].diff() <= 1e-6 * sparse.energy).all()


def test_rows_and_columns_without_cells_stay_zero(noisy):
    *_, sparse = noisy
    m, n = sparse.shape
    wider = SparseObserved(sparse.rows, sparse.cols, sparse.values, (m + 2, n + 3))
    start = torch.ones(m + 2, 4, dtype=torch.float64)
    start[:m] = torch.randn(m, 4, generator=torch.Generator().manual_seed(0)).double()
    solver = ALS(start, 0.02, row_biases=True, col_biases=True, per_cell=1.0)
    state = solver.init(wider)
    for _ in range(40):
        state = solver.step(wider, state)
    assert state.rows[m:].abs().max() < 1e-6
    assert state.cols[n:].abs().max() < 1e-6
    assert solver.residual(wider, None, state) < 1e-3
