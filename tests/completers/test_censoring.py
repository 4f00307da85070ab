"""Missing cells beyond limits of detection."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate, stats

from skmc import GaussianCompleter, MixedCompleter
from skmc.completers.gaussian.censoring import (
    CensoredCells,
    CensoredEM,
    CensoredFactorEM,
    Censoring,
    _tilted,
)
from skmc.completers.gaussian.distributions import FactorGaussian, Gaussian

INF = math.inf


def table(share=1.0, n=150, d=6, seed=0):
    """Rows of two factors, hidden cells, and where these are below a bound.

    Up to 40 % of a column are hidden, of which ``share`` are its smallest cells.
    """
    rng = np.random.RandomState(seed)
    truth = 5 + rng.randn(n, 2) @ rng.randn(2, d) + 0.4 * rng.randn(n, d)
    low, hidden = np.full(d, -INF), np.zeros((n, d), bool)
    for j, part in enumerate(rng.uniform(0.1, 0.4, d)):
        order = truth[:, j].argsort()
        k = int(part * share * n)
        low[j] = truth[order[k], j] if k else -INF
        others = rng.choice(order[k:], int(part * n) - k, replace=False)
        hidden[np.r_[order[:k], others], j] = True
    return truth, hidden, low


def rms(found, truth, hidden):
    return float(np.sqrt(np.square(found - truth)[hidden].mean()))


@pytest.mark.parametrize(
    ("low", "high", "share"),
    [(0.3, INF, 0.0), (-INF, 1.2, 0.3), (-1.0, 0.5, 0.1), (-INF, INF, 0.1)],
)
@pytest.mark.parametrize("mean", [-6.0, 0.2, 9.0])
def test_tilted_moments_are_integrals(low, high, share, mean):
    std = 1.4

    def density(x):
        within = low <= x <= high
        return stats.norm.pdf(x, mean, std) * (share if within else 1)

    ends = sorted([mean - 14 * std, *({low, high} - {-INF, INF}), mean + 14 * std])

    def integral(power):
        return sum(
            integrate.quad(lambda x: x**power * density(x), *piece, epsabs=0)[0]
            for piece in itertools.pairwise(ends)
        )

    total = integral(0)
    parts = mean, std**2, low, high, share
    found = _tilted(*(torch.tensor([x]).double() for x in parts))
    first, second = integral(1) / total, integral(2) / total
    assert float(found[0]) == pytest.approx(first, rel=1e-5)
    assert float(found[1]) == pytest.approx(second - first**2, rel=1e-4)
    assert float(found[3].exp()) == pytest.approx(total, rel=1e-5)


def test_a_cell_far_beyond_is_at_its_limit():
    found = _tilted(*(torch.tensor([x]).double() for x in (500.0, 1.0, 0.0, INF, 0.0)))
    assert -0.01 < float(found[0]) < 0
    assert 0 < float(found[1]) < 1e-4


def rows_with_one_cell():
    """Each row misses at most one cell, so that expectation propagation is exact."""
    truth, _, _ = table(n=60, d=3, seed=1)
    low = np.quantile(truth, 0.2, 0)
    hidden = truth < low
    hidden[hidden.sum(1) > 1] = False
    values = torch.from_numpy(truth - truth.mean(0))
    mask = torch.from_numpy(~hidden)
    limits = torch.from_numpy(low - truth.mean(0)).expand(truth.shape)
    low_of = torch.where(mask, -INF, limits)
    high = torch.full_like(low_of, INF)
    share = torch.zeros(3).double()
    return CensoredCells(values, mask, low_of, high, share)


@pytest.mark.parametrize("solver", [CensoredEM(2.0), CensoredFactorEM(2.0, 2)])
def test_the_objective_is_the_likelihood_and_falls(solver):
    """The density of the observed cells times the probability to be below the limit."""
    data = rows_with_one_cell()
    state = solver.init(data)
    parts = (state.patterns,) if isinstance(solver, CensoredEM) else ()
    model = state.model
    for _ in range(40):  # the sites of the initial model
        state = solver._tilt(data, model, *parts, state.sites, data.share)
    mean, S = model.mean.numpy(), model.covariance.numpy()
    total = 0.0
    for x, seen, low in zip(data.values, data.mask, data.low, strict=True):
        o, m = seen.numpy(), ~seen.numpy()
        x = x.numpy()
        total += stats.multivariate_normal.logpdf(x[o], mean[o], S[np.ix_(o, o)])
        if m.any():
            W = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            center = mean[m] + W @ (x[o] - mean[o])
            variance = S[np.ix_(m, m)] - W @ S[np.ix_(o, m)]
            z = (low.numpy()[m] - center) / variance[0] ** 0.5
            total += stats.norm.logcdf(z).sum()
    plain = solver.__class__.__mro__[1]
    penalty = float(state.objective) + total
    other = plain(*([2.0] if plain.__name__ == "EM" else [2.0, 2]), model)
    complete = other.init(data)  # of the observed cells alone
    if isinstance(model, Gaussian):
        likelihood = model.expect(data.values, complete.patterns).log_likelihood
    else:
        parts = model.scores(data.values, data.mask)
        likelihood = sum(part.log_likelihood.sum() for part in parts)
    assert penalty == pytest.approx(float(complete.objective + likelihood), rel=1e-7)
    values = []
    for _ in range(60):
        state = solver.step(data, state)
        values.append(float(state.objective))
    assert values[-1] < values[0]
    assert np.diff(values[20:]).max() < 1e-4


@pytest.mark.parametrize("factors", [False, True])
def test_completions_are_conditional_moments(factors):
    """Beside many draws of the whole row of which those beyond the limits are kept."""
    rng = np.random.RandomState(0)
    F = torch.from_numpy(rng.randn(3, 2))
    noise = torch.tensor([0.5, 0.3, 0.4]).double()
    model = FactorGaussian(torch.zeros(3).double(), F, noise)
    if not factors:
        model = Gaussian(model.mean, model.covariance)
    x = torch.tensor([[0.7, math.nan, math.nan]]).double()
    low = torch.tensor([[-INF, 0.1, -0.3]]).double()
    share = torch.tensor([0, 0.2, 0]).double()
    limits = Censoring(low, torch.full_like(low, INF), share, share)
    found = limits.completed(model, torch.nan_to_num(x), ~x.isnan())
    S = model.covariance.numpy()
    W = S[1:, :1] / S[0, 0]
    mean, covariance = W[:, 0] * 0.7, S[1:, 1:] - W @ S[:1, 1:]
    draws = rng.multivariate_normal(mean, covariance, 400_000)
    times = np.where(draws[:, 0] < 0.1, 1, 0.2) * (draws[:, 1] < -0.3)
    first = np.average(draws, axis=0, weights=times)
    second = np.average(np.square(draws - first), axis=0, weights=times)
    np.testing.assert_allclose(found.mean[0, 1:], first, atol=0.06)
    np.testing.assert_allclose(found.variance[0, 1:], second, rtol=0.15)
    within = np.average(draws[:, 0] > 0.1, weights=times)
    assert float(found.within[0, 1]) == pytest.approx(within, abs=0.01)


@pytest.mark.parametrize("rank", [None, 2, "auto"])
def test_limits_at_infinity_change_nothing(rank):
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, truth)
    plain = GaussianCompleter(rank=rank, random_state=0).fit(X)
    for limits in ({"lower_limit": -INF}, {"upper_limit": np.full(6, np.nan)}):
        same = GaussianCompleter(rank=rank, random_state=0, **limits).fit(X)
        np.testing.assert_array_equal(same.covariance_, plain.covariance_)
        np.testing.assert_array_equal(same.transform(X), plain.transform(X))
        assert same.censored_share_ is None


@pytest.mark.parametrize("rank", [None, "auto"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_censored_cells_are_recovered(share, rank):
    truth, hidden, low = table(share)
    X = np.where(hidden, np.nan, truth)
    found = GaussianCompleter(rank=rank, lower_limit="min", random_state=0).fit(X)
    plain = GaussianCompleter(rank=rank, random_state=0).fit_transform(X)
    error = rms(found.transform(X), truth, hidden)
    assert error < (1.05 if share == 0 else 0.95) * rms(plain, truth, hidden)
    assert np.mean(found.censored_share_) == pytest.approx(share, abs=0.15)
    below = hidden & (truth < low)
    if share:
        off = (found.transform(X) - truth)[below].mean()
        assert abs(off) < 0.3 * abs((plain - truth)[below].mean())


def test_means_and_covariances_of_the_whole_are_recovered():
    truth, _, _ = table(n=3000)
    low = np.quantile(truth, 0.3, 0)
    X = np.where(truth < low, np.nan, truth)
    found = GaussianCompleter(lower_limit=low, censored="all", random_state=0).fit(X)
    np.testing.assert_allclose(found.location_, truth.mean(0), atol=0.1)
    np.testing.assert_allclose(found.covariance_, np.cov(truth.T), rtol=0.1, atol=0.1)


def test_upper_and_lower_limits_mirror_each_other():
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, truth)
    common = {"random_state": 0, "tol": 1e-6, "max_iter": 1000, "rank": 2}
    below = GaussianCompleter(lower_limit="min", **common).fit_transform(X)
    above = GaussianCompleter(upper_limit="max", **common).fit_transform(-X)
    np.testing.assert_allclose(below, -above, atol=1e-3)


def test_units_change_nothing_else():
    truth, hidden, low = table()
    X = np.where(hidden, np.nan, truth)
    units = 10.0 ** np.arange(-3, 3)
    found = GaussianCompleter(1.0, lower_limit=low, rank=2).fit_transform(X)
    other = GaussianCompleter(1.0, lower_limit=low * units, rank=2)
    same = other.fit_transform(X * units)
    np.testing.assert_allclose(found, same / units, rtol=1e-6)


@pytest.mark.parametrize("rank", [pytest.param(None, marks=pytest.mark.long), 2])
def test_all_completions_and_draws_respect_the_limit(rank):
    truth, _, _ = table(n=80)
    low = np.quantile(truth, 0.3, 0)
    X = np.where(truth < low, np.nan, truth)
    completer = GaussianCompleter(lower_limit=low, censored="all", rank=rank).fit(X)
    missing = np.isnan(X)
    assert (completer.transform(X) <= low)[missing].all()
    new = X[::-1][:20].copy()
    new[:, 0] = np.nan
    assert (completer.transform(new) <= low)[np.isnan(new)].all()
    draws = completer.sample(X, 10, random_state=0)
    assert (draws <= low)[:, missing].all()
    np.testing.assert_array_equal(draws[:, ~missing], np.tile(X[~missing], (10, 1)))
    off = draws[:, missing].mean(0) - completer.transform(X)[missing]
    assert abs(off.mean()) < 0.2 * completer.predict_std(X)[missing].mean()
    bounded = GaussianCompleter(
        lower_limit=low, censored="all", rank=rank, min_value=low - 0.5
    ).fit(X)
    draws = bounded.sample(X, 5, random_state=0)[:, missing]
    ends = np.broadcast_to(low, X.shape)[missing]
    assert ((draws <= ends) & (draws >= ends - 0.5)).all()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Rows .* no observed cell")
def test_draws_have_the_moments_of_the_cells():
    truth, hidden, _ = table(0.5, n=80)
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(1.0, rank=2, lower_limit="min").fit(X)
    draws = completer.sample(X, 40, random_state=0)[:, hidden]
    mean, std = completer.transform(X)[hidden], completer.predict_std(X)[hidden]
    assert np.abs(draws.mean(0) - mean).mean() < 0.25 * std.mean()
    assert np.median(draws.std(0) / std) == pytest.approx(1, abs=0.1)


def test_rows_are_completed_by_themselves():
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(lower_limit="min", rank=None).fit(X)
    whole = completer.transform(X)
    np.testing.assert_allclose(completer.transform(X[3:7]), whole[3:7], rtol=1e-9)
    np.testing.assert_allclose(completer.reconstruction_[hidden], whole[hidden])
    row, col = np.argwhere(hidden)[5]
    assert completer.predict_entries([row], [col])[0] == pytest.approx(whole[row, col])


def test_a_matrix_has_the_limits_of_known_cells():
    """Only these cells are beyond a limit, and each has its own."""
    truth, hidden, low = table(0.5)
    X = np.where(hidden, np.nan, truth)
    below = hidden & (truth < low)
    limits = np.where(below, low, np.nan)
    known = GaussianCompleter(lower_limit=limits, censored="all", random_state=0)
    found = known.fit_transform(X)
    some = GaussianCompleter(lower_limit=low, random_state=0).fit_transform(X)
    assert (found <= low)[below].all()
    assert rms(found, truth, hidden) < rms(some, truth, hidden)
    np.testing.assert_allclose(known.transform(X), found)
    row, col = np.argwhere(below)[3]
    assert known.predict_entries([row], [col])[0] == pytest.approx(found[row, col])
    with pytest.raises(ValueError, match="those of its 150 rows, but X has 3 rows"):
        known.transform(X[:3])
    assert np.isfinite(known.score(X))


@pytest.mark.long
def test_weights_count_with_limits():
    truth, hidden, low = table()
    X, weights = np.where(hidden, np.nan, truth), np.arange(150) % 3
    common = {"lower_limit": low, "tol": 1e-9, "max_iter": 500}
    for rank in (None, 2):
        completer = GaussianCompleter(1.0, rank=rank, **common)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = completer.fit(X, sample_weight=weights).covariance_
            same = completer.fit(np.repeat(X, weights, 0)).covariance_
        np.testing.assert_allclose(found, same, rtol=1e-5)


def test_held_out_cells_have_no_limit():
    """`score` hides observed cells, which were not beyond a limit."""
    truth, hidden, low = table()
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(lower_limit=low, censored="all", rank=2).fit(X)
    assert completer.score(X) > -0.12


def test_new_rows_may_be_added():
    truth, hidden, low = table()
    X = np.where(hidden, np.nan, truth)
    completer = GaussianCompleter(1.0, lower_limit=low, rank=2).fit(X[:100])
    completer.partial_fit(X[100:])
    assert completer.reconstruction_.shape == X.shape
    whole = GaussianCompleter(1.0, lower_limit=low, rank=2).fit(X)
    np.testing.assert_allclose(completer.covariance_, whole.covariance_, atol=1)


def test_names_find_limits():
    truth, hidden, low = table()
    frame = pd.DataFrame(np.where(hidden, np.nan, truth), columns=list("abcdef"))
    named = GaussianCompleter(1.0, lower_limit={"b": low[1], "e": low[4]}, rank=2)
    limits = [np.nan, low[1], np.nan, np.nan, low[4], np.nan]
    same = GaussianCompleter(1.0, lower_limit=limits, rank=2)
    np.testing.assert_array_equal(named.fit_transform(frame), same.fit_transform(frame))
    share = named.censored_share_
    assert (share[[0, 2, 3, 5]] == 0).all()
    assert (share[[1, 4]] > 0.5).all()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"lower_limit": 100.0}, "beyond lower_limit=100; correct the limit"),
        ({"upper_limit": {2: -100.0}}, "beyond upper_limit=-100"),
        ({"lower_limit": "max"}, "The 'lower_limit' parameter"),
        ({"lower_limit": np.zeros((3, 6))}, r"must have the shape of X, \(150, 6\)"),
        ({"lower_limit": [1.0, 2.0]}, "X has 6 columns"),
        ({"lower_limit": "min", "marginals": "copula"}, 'need marginals="normal"'),
        (
            {"lower_limit": np.full((150, 6), 3.0), "upper_limit": -100.0},
            "beyond upper_limit=-100",
        ),
        (
            {
                "lower_limit": np.full((150, 6), 3.0),
                "upper_limit": np.full((150, 6), 2.0),
            },
            "lower_limit is above upper_limit in row",
        ),
    ],
)
def test_wrong_limits_are_named(params, said):
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, truth)
    with pytest.raises(ValueError, match=said):
        GaussianCompleter(**params).fit(X)


def test_skewed_columns_and_tables_are_refused_or_warned_of():
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, np.exp(1.2 * truth))
    with pytest.warns(UserWarning, match="take logarithms"):
        GaussianCompleter(lower_limit="min", rank=2).fit(X)
    with pytest.raises(ValueError, match="lower_limit of GaussianCompleter"):
        MixedCompleter(GaussianCompleter(lower_limit=0.0)).fit(X)


@pytest.mark.long
def test_odd_tables_with_limits():
    """Constant and empty columns, one row, and nothing missing."""
    truth, hidden, _ = table()
    X = np.where(hidden, np.nan, truth)
    X[:, 0] = 3.0
    X[::3, 0] = np.nan
    for rank in (None, 2, "auto"):
        completer = GaussianCompleter(lower_limit="min", rank=rank, random_state=0)
        found = completer.fit_transform(X.astype(np.float32))
        assert np.isfinite(found).all()
        assert (found[:, 0] == 3).all()
        found = completer.fit_transform(truth)
        np.testing.assert_array_equal(found, truth)
        one = GaussianCompleter(lower_limit="min", rank=None, random_state=0)
        assert np.isfinite(one.fit_transform([[1.0, np.nan], [2.0, 3.0]])).all()
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="no observed"):
        found = GaussianCompleter(lower_limit="min", rank=2).fit_transform(X)
    assert (found[:, 1] == 0).all()


@pytest.mark.long
def test_missing_at_random_stays_so():
    """Also where four fifths are missing, and where a matrix has an exact rank."""
    truth, _, _ = table(n=80, d=8)
    hidden = np.random.RandomState(1).rand(*truth.shape) < 0.6
    hidden[hidden.all(1), 0] = False
    X = np.where(hidden, np.nan, truth)
    found = GaussianCompleter(lower_limit="min", random_state=0).fit(X)
    assert found.censored_share_.mean() < 0.3
    plain = GaussianCompleter(random_state=0).fit_transform(X)
    error = rms(found.transform(X), truth, hidden)
    assert error < 1.2 * rms(plain, truth, hidden)
    rng = np.random.RandomState(0)
    exact = rng.randn(50, 2) @ rng.randn(2, 8)
    X = np.where(exact < np.quantile(exact, 0.25, 0), np.nan, exact)
    for rank in (None, "auto"):
        completer = GaussianCompleter(lower_limit="min", rank=rank, random_state=0)
        assert rms(completer.fit_transform(X), exact, np.isnan(X)) < 0.2


def test_columns_of_two_values_have_no_sensible_limit():
    truth, hidden, _ = table()
    truth[:, 2] = truth[:, 2] > truth[:, 2].mean()
    X = np.where(hidden, np.nan, truth)
    with pytest.warns(UserWarning, match=r"Columns \[2\] .* only two values"):
        GaussianCompleter(1.0, lower_limit="min", rank=2).fit(X)
