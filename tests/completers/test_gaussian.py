"""Gaussian rows: closed forms, EM, deviations, draws and copulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from skmc import GaussianCompleter, Observed, patterns
from skmc.completers.gaussian.distributions import FactorGaussian, Gaussian, Patterns
from skmc.completers.gaussian.em import EM, FactorEM
from skmc.completers.gaussian.gaussian import CopulaMarginal
from skmc.loop import solve
from skmc.uncertainty import MultipleCompletion, pool

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def covariance(n_cols, seed=0):
    A = np.random.RandomState(seed).randn(n_cols, n_cols)
    return A @ A.T / n_cols + 0.3 * np.eye(n_cols)


@pytest.fixture(scope="module")
def rows():
    """60 rows of 7 columns, from all to none observed; mean and covariance."""
    rng = np.random.RandomState(1)
    mean, S = rng.randn(7), covariance(7)
    X = rng.multivariate_normal(mean, S, 60)
    seen = rng.rand(60, 7) < np.linspace(0.05, 1.1, 60)[:, None]
    seen[0], seen[1], seen[-1], seen[-2] = False, seen[2], True, True
    return X, seen, mean, S


@pytest.fixture(scope="module")
def data(rows):
    X, seen, *_ = rows
    return Observed(torch.from_numpy(X), torch.from_numpy(seen))


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(array)) for array in arrays]


def factor_model(n_cols=7, rank=2, seed=3):
    rng = np.random.RandomState(seed)
    noise = rng.uniform(0.2, 0.6, n_cols)
    return FactorGaussian(*tensors(rng.randn(n_cols), rng.randn(n_cols, rank), noise))


def models(mean, S):
    return {"full": Gaussian(*tensors(mean, S)), "factors": factor_model()}


def brute_force(x, o, mean, S):
    """Mean, covariance of the row ``x`` given the columns ``o``."""
    if not o.any():
        return mean, S
    gain = S[:, o] @ np.linalg.inv(S[np.ix_(o, o)])
    return mean + gain @ (x[o] - mean[o]), S - gain @ S[o]


@pytest.mark.parametrize("kind", ["full", "factors"])
def test_conditional_moments_equal_textbook_formulas(kind, rows):
    X, seen, mean, S = rows
    model = models(mean, S)[kind]
    mean, S = model.mean.numpy(), model.covariance.numpy()
    own, variance = (t.numpy() for t in model.given_others(*tensors(X, seen)))
    filled = model(*tensors(X, seen)).numpy()
    for i in range(len(X)):
        expected, cov = brute_force(X[i], seen[i], mean, S)
        np.testing.assert_allclose(filled[i], np.where(seen[i], X[i], expected))
        for j in range(X.shape[1]):
            others = seen[i] & (np.arange(X.shape[1]) != j)
            expected, cov = brute_force(X[i], others, mean, S)
            assert own[i, j] == pytest.approx(expected[j])
            assert variance[i, j] == pytest.approx(cov[j, j])


def test_sums_over_rows_equal_textbook_formulas(rows):
    X, seen, mean, S = rows
    expected = Gaussian(*tensors(mean, S)).expect(
        torch.from_numpy(X), Patterns.of(torch.from_numpy(seen))
    )
    scatter, likelihood = np.zeros_like(S), 0.0
    for x, o in zip(X, seen, strict=True):
        if o.any():
            scatter += brute_force(x, o, mean, S)[1]
            part = multivariate_normal(mean[o], S[np.ix_(o, o)])
            likelihood += part.logpdf(x[o])
    np.testing.assert_allclose(expected.scatter, scatter, atol=1e-10)
    assert float(expected.log_likelihood) == pytest.approx(likelihood)


def test_factors_have_the_likelihood_of_their_covariance(rows):
    X, seen, *_ = rows
    model = factor_model()
    same = Gaussian(model.mean, model.covariance)
    values, mask = tensors(X, seen)
    expected = same.expect(values, Patterns.of(mask)).log_likelihood
    found = sum(part.log_likelihood.sum() for part in model.scores(values, mask))
    assert float(found) == pytest.approx(float(expected))


def test_rows_with_equal_masks_share_a_solve(rows):
    _, seen, *_ = rows
    groups = Patterns.of(torch.from_numpy(np.repeat(seen, 3, axis=0))).groups
    distinct = np.unique(seen, axis=0)
    needed = distinct.any(1) & ~distinct.all(1)
    assert sum(len(group.columns) for group in groups) == needed.sum()


SOLVERS = {
    "full": EM(2.0),
    "full, small ridge": EM(1e-3),
    "factors": FactorEM(2.0, 3),
    "factors, small ridge": FactorEM(0.1, 3),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_em_never_raises_the_objective(name, data):
    solver = SOLVERS[name]
    state = solver.init(data)
    for _ in range(60):
        before, state = state, solver.step(data, state)
        assert state.objective <= before.objective + 1e-10
    assert state.objective >= 0  # the bound that was subtracted


@pytest.mark.parametrize("name", SOLVERS)
def test_em_ends_where_the_gradient_is_zero(name, data):
    """Autograd through the objective as the docstrings state it."""
    solver = SOLVERS[name]
    model = solve(solver, data, max_iter=5000, tol=1e-9).result.model
    names = ["mean", "covariance"] if "full" in name else ["mean", "loadings", "noise"]
    parts = [getattr(model, name).clone().requires_grad_() for name in names]
    if "full" in name:
        S = parts[1]
        penalty = torch.linalg.inv(S).trace() + torch.logdet(S)
    else:
        F, noise = parts[1:]
        S = F @ F.mT + noise.diag()
        penalty = (noise.log() + (1 + F.square().sum(1)) / noise).sum()
    objective = solver.ridge / 2 * penalty
    for x, o in zip(data.values, data.mask, strict=True):
        if o.any():
            part = torch.distributions.MultivariateNormal(parts[0][o], S[o][:, o])
            objective = objective - part.log_prob(x[o])
    for part in torch.autograd.grad(objective, parts):
        assert float(part.abs().max()) < 1e-3


def test_complete_data_give_the_closed_form(rows):
    X, *_ = rows
    whole = Observed(torch.from_numpy(X), torch.ones(X.shape, dtype=torch.bool))
    model = solve(EM(5.0), whole, max_iter=2).result.model
    centred = X - X.mean(0)
    np.testing.assert_allclose(model.mean, X.mean(0))
    np.testing.assert_allclose(
        model.covariance, (centred.T @ centred + 5 * np.eye(7)) / 65, atol=1e-12
    )


def test_two_columns_of_which_one_is_complete():
    """Anderson's closed form (Little and Rubin, section 7.2): a regression."""
    rng = np.random.RandomState(0)
    x = 3 + 2 * rng.randn(50)
    y = 1 - x + rng.randn(50)
    seen = np.arange(50) < 30
    X = np.column_stack([x, np.where(seen, y, np.nan)])
    completer = GaussianCompleter(0, max_iter=2000, tol=1e-12).fit(X)
    slope = np.cov(x[seen], y[seen])[0, 1] / x[seen].var(ddof=1)
    noise = (y[seen] - y[seen].mean() - slope * (x[seen] - x[seen].mean())).var()
    mean = y[seen].mean() + slope * (x.mean() - x[seen].mean())
    np.testing.assert_allclose(completer.location_, [x.mean(), mean], rtol=1e-8)
    np.testing.assert_allclose(
        completer.covariance_,
        [[x.var(), slope * x.var()], [slope * x.var(), noise + slope**2 * x.var()]],
        rtol=1e-8,
    )
    completed = completer.transform(X)[~seen, 1]
    np.testing.assert_allclose(completed, mean + slope * (x[~seen] - x.mean()))
    np.testing.assert_allclose(completer.predict_std(X)[~seen, 1], noise**0.5)


def test_mean_and_covariance_are_recovered():
    rng = np.random.RandomState(0)
    mean, S = 5 * rng.randn(6), covariance(6)
    X = rng.multivariate_normal(mean, S, 20000)
    X[patterns.random(X, 0.3, spare=True, random_state=0)] = np.nan
    completer = GaussianCompleter(1.0).fit(X)
    # Four standard errors.
    np.testing.assert_allclose(completer.location_, mean, atol=0.06)
    np.testing.assert_allclose(completer.covariance_, S, atol=0.12)


def test_factors_are_recovered():
    rng = np.random.RandomState(0)
    F, noise = rng.randn(40, 3), rng.uniform(0.2, 1, 40)
    X = rng.randn(3000, 3) @ F.T + noise**0.5 * rng.randn(3000, 40)
    X[rng.rand(*X.shape) < 0.5] = np.nan
    completer = GaussianCompleter(0.01, rank=3).fit(X)
    S = F @ F.T + np.diag(noise)
    assert np.linalg.norm(completer.covariance_ - S) < 0.06 * np.linalg.norm(S)


@pytest.fixture(scope="module")
def table():
    """400 x 8, a fifth missing, and the truth."""
    rng = np.random.RandomState(2)
    truth = rng.multivariate_normal(np.arange(8), covariance(8, seed=4), 400)
    return truth, patterns.random(truth, 0.2, spare=True, random_state=0)


@pytest.mark.parametrize("params", [{}, {"rank": 2}, {"marginals": "copula"}])
def test_rows_do_not_depend_on_each_other(params, table):
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(1.0, **params).fit(X[:300])
    whole, std = completer.transform(X), completer.predict_std(X)
    for i in (0, 7, 299, 300, 399):
        row = X[i : i + 1]
        np.testing.assert_allclose(completer.transform(row)[0], whole[i], rtol=1e-12)
        np.testing.assert_allclose(completer.predict_std(row)[0], std[i], rtol=1e-12)
    np.testing.assert_array_equal(completer.fit_transform(X[:300]), whole[:300])


@pytest.mark.parametrize("params", [{}, {"rank": 2}, {"marginals": "copula"}])
def test_rows_and_columns_may_be_permuted(params, table):
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)
    rng = np.random.RandomState(0)
    rows, cols = rng.permutation(400), rng.permutation(8)
    params = {"lambda_ridge": 1.0, "tol": 1e-8, **params}
    expected = GaussianCompleter(**params).fit_transform(X)[rows][:, cols]
    found = GaussianCompleter(**params).fit_transform(X[rows][:, cols])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("params", [{}, {"rank": 3}, {"marginals": "copula"}])
def test_intervals_cover(params, table):
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(random_state=0, **params).fit(X)
    std = completer.predict_std(X)
    assert (std[~hidden] == 0).all()
    off = (completer.transform(X) - truth)[hidden] / std[hidden]
    assert 0.87 < (np.abs(off) < ndtri(0.95)).mean() < 0.94
    # What the other cells say of observed ones, too.
    own = completer.set_params(keep_observed=False)
    off = (own.transform(X) - truth) / own.predict_std(X)
    assert 0.87 < (np.abs(off) < ndtri(0.95)).mean() < 0.94


def test_draws_have_the_conditional_moments(table):
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)[:6]
    completer = GaussianCompleter(1.0).fit(truth)
    # Draws of the rows again are other draws of the same model.
    draws = completer.sample(np.tile(X, (15, 1)), 100, random_state=0)
    draws = draws.reshape(1500, *X.shape)
    assert (draws[:, ~hidden[:6]] == truth[:6][~hidden[:6]]).all()
    mean, std = completer.transform(X), completer.predict_std(X)
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(draws.std(0), std, atol=0.08)
    row = int(hidden[:6].sum(1).argmax())
    missing = hidden[row]
    _, cov = brute_force(X[row], ~missing, completer.location_, completer.covariance_)
    found = np.cov(draws[:, row, missing].T)
    np.testing.assert_allclose(found, cov[np.ix_(missing, missing)], atol=0.15)


def test_draws_of_the_model_follow_the_posterior(rows):
    """Residual variances of a chain of regressions; variance of the mean."""
    X = torch.from_numpy(rows[0])
    rng, (n, d), ridge = np.random.RandomState(0), X.shape, 2.0
    ones, order = torch.ones(n), rng.permutation(d)
    draws = [Gaussian.from_posterior(X, ones, ridge, order, rng) for _ in range(4000)]
    scale = (n - 1) * X.mT.cov() + ridge * torch.eye(d)
    left = torch.linalg.cholesky(scale[order][:, order]).diagonal().square()
    covariance = torch.stack([draw.covariance for draw in draws])
    close = {"rtol": 0.1, "atol": 0.02}
    residual = torch.linalg.cholesky(covariance[:, order][:, :, order])
    variance = residual.diagonal(dim1=1, dim2=2).square()
    freedom = n - 1 + ridge - torch.arange(d)
    torch.testing.assert_close(variance.mean(0), left / (freedom - 2), **close)
    torch.testing.assert_close((1 / variance).mean(0), freedom / left, **close)
    means = torch.stack([draw.mean for draw in draws])
    torch.testing.assert_close(means.mT.cov(), covariance.mean(0) / n, **close)


def test_draws_of_a_column_are_those_of_its_regression():
    """Their variance is that of a prediction, with the degrees of freedom of a t."""
    rng, order = np.random.RandomState(0), [3, 1, 0, 2]
    X = rng.randn(40, 4) @ (np.eye(4) + 0.5 * rng.randn(4, 4))
    A = np.column_stack([np.ones(40), X[:, :3]])
    seen, unseen = A[:12], A[12:]
    _, (rss,), *_ = np.linalg.lstsq(seen, X[:12, 3], rcond=None)
    far = np.einsum("ij,jk,ik->i", unseen, np.linalg.inv(seen.T @ seen), unseen)
    variance = rss / (12 - 4 - 2) * (1 + far)
    X[12:, 3] = np.nan
    draws = GaussianCompleter(0).fit(X[:, order]).sample(X[:, order], 150, 0)
    drawn = draws[:, 12:, order.index(3)]
    assert np.mean(drawn.var(0) / variance) == pytest.approx(1, abs=0.15)


def test_draws_pool(table):
    """The slope of one column on another, from completed matrices."""
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(1.0).fit(X)

    def slope(table):
        x, y = (table[:, j] - table[:, j].mean() for j in (0, 1))
        b = x @ y / (x @ x)
        return b, np.square(y - b * x).sum() / (len(x) - 2) / (x @ x)

    pooled = pool(*zip(*map(slope, completer.sample(X, 20, 0)), strict=True))
    assert abs(pooled.estimate - slope(truth)[0]) < 3 * pooled.std_error
    assert pooled.std_error > slope(truth)[1] ** 0.5


def test_many_completions(table):
    truth, hidden = table
    many = MultipleCompletion(GaussianCompleter(1.0), 10, random_state=0)
    low, high = many.fit(np.ma.masked_array(truth, hidden)).interval(0.9)
    assert 0.85 < ((low <= truth) & (truth <= high))[hidden].mean() < 0.95


def test_scores_are_means_over_the_levels():
    column = CopulaMarginal.of(np.repeat([3.0, 1.0, 7.0], [2, 5, 3]))
    np.testing.assert_allclose(column.edges, ndtri([0, 0.5, 0.7, 1]))
    assert column.centres @ [0.5, 0.2, 0.3] == pytest.approx(0)
    scores = np.random.RandomState(0).randn(200000)
    top = scores[scores > column.edges[2]]
    assert column.centres[2] == pytest.approx(top.mean(), abs=0.01)
    # Without knowledge of a row: the observed mean and deviation.
    variance = np.square(column.centres) @ [0.5, 0.2, 0.3]
    mean, std = column.moments(np.zeros(1), np.array([variance]))
    assert mean == pytest.approx(3.2)
    assert std == pytest.approx(np.repeat([3.0, 1.0, 7.0], [2, 5, 3]).std())


def test_copula_recovers_monotone_functions():
    """Monotone functions of a Gaussian; levels stay within their range."""
    rng = np.random.RandomState(0)
    Z = rng.multivariate_normal(np.zeros(6), covariance(6), 1500)
    truth = np.exp(1.5 * Z)
    truth[:, 0] = np.digitize(Z[:, 0], [-1, 0, 1])
    hidden = patterns.random(truth, 0.25, spare=True, random_state=0)
    X = np.where(hidden, np.nan, truth)
    unit = np.nanstd(X, 0)

    def error(marginals):
        completer = GaussianCompleter(marginals=marginals, random_state=0)
        completed = completer.fit_transform(X)
        return np.sqrt(np.square((completed - truth) / unit)[hidden].mean()), completed

    (plain, _), (bent, completed) = error("normal"), error("copula")
    assert bent < 0.95 * plain
    assert ((completed[:, 0] >= 0) & (completed[:, 0] <= 3)).all()


def test_other_monotone_functions_do_not_change_the_scores(table):
    truth, hidden = table
    X = np.where(hidden, np.nan, truth)
    a, b = (GaussianCompleter(1.0, marginals="copula") for _ in range(2))
    np.testing.assert_allclose(
        a.fit(X).covariance_, b.fit(np.exp(X)).covariance_, atol=1e-12
    )


def test_the_chosen_ridge_suits_the_table():
    """Many noisy columns with few rows need a larger ridge than exact ones."""
    rng = np.random.RandomState(0)
    exact = rng.randn(60, 3) @ rng.randn(3, 20)
    noisy = exact + 3 * rng.randn(60, 20)
    found = []
    for X in (exact, noisy):
        holes = np.ma.masked_array(X, rng.rand(60, 20) < 0.2)
        found.append(GaussianCompleter(random_state=0).fit(holes).lambda_ridge_)
    assert found[0] < 0.1 < 3 < found[1]


def test_wide_tables_get_factors():
    rng = np.random.RandomState(0)
    X = rng.randn(40, 3) @ rng.randn(3, 320)
    hidden = rng.rand(40, 320) < 0.3
    completer = GaussianCompleter(random_state=0)
    completed = completer.fit_transform(np.ma.masked_array(X, hidden))
    assert completer.rank_ == 20
    assert np.linalg.norm((completed - X)[hidden]) < 0.1 * np.linalg.norm(X[hidden])


def test_zero_ridge_with_few_rows_is_finite(table):
    """A covariance that becomes singular leaves a finite answer."""
    truth, hidden = table
    X = np.vstack([truth[:5], np.where(hidden, np.nan, truth)[5:7]])
    completer = GaussianCompleter(0.0)
    assert np.isfinite(completer.fit_transform(X)).all()
    assert completer.status_ == "diverged"


def test_interrupting_the_choice_leaves_a_usable_completer(table, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(GaussianCompleter, "_for_trials", interrupt)
    truth, hidden = table
    completer = GaussianCompleter()
    with pytest.raises(KeyboardInterrupt):
        completer.fit(np.where(hidden, np.nan, truth))
    assert completer.status_ == "interrupted"
    assert np.isfinite(completer.transform(truth[:3] + 1)).all()


@pytest.mark.filterwarnings("ignore:Some cells may mark missing ones")
def test_levels_that_nothing_predicts_have_their_shares():
    """Means and draws, also of levels of very different shares."""
    rng = np.random.RandomState(0)
    levels = rng.choice([0.0, 1, 2, 5], 2000, p=[0.75, 0.15, 0.06, 0.04])
    X = np.column_stack([levels, rng.randn(2000), rng.rand(2000) < 0.9])
    X[:200, 0] = X[200:400, 2] = np.nan
    completer = GaussianCompleter(1.0, marginals="copula").fit(X)
    shares = np.nanmean(X, 0)
    completed = completer.transform(X)
    assert completed[:200, 0].mean() == pytest.approx(shares[0], rel=0.05)
    assert completed[200:400, 2].mean() == pytest.approx(shares[2], rel=0.02)
    draws = completer.sample(X, 20, random_state=0)
    for level in (0, 1, 2, 5):
        share = np.nanmean(X[200:, 0] == level)
        assert (draws[:, :200, 0] == level).mean() == pytest.approx(share, abs=0.02)
    assert draws[:, 200:400, 2].mean() == pytest.approx(shares[2], abs=0.02)
