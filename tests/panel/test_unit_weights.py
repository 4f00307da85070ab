"""Weights of units and times, and what is estimated with them."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import minimize

from skmc import SoftImputeCompleter
from skmc.panel import effect, simulate
from skmc.panel.weights import SHRINKAGES, LocalLevel, simplex, synthetic_weights
from skmc.plot import EventStudyDisplay

matplotlib.use("Agg")

KINDS = ("synthetic", "averaged")


def panel(seed=0, n_units=12, n_times=10, n_treated=3, start=7):
    """A panel with effects, two factors and noise; the first units are treated."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_units, 1) * 5 + np.linspace(0, 4, n_times)
    X = X + rng.randn(n_units, 2) @ np.cumsum(rng.randn(2, n_times), 1) * 0.5
    X = X + 0.3 * rng.randn(n_units, n_times)
    treated = np.zeros(X.shape, bool)
    treated[:n_treated, start:] = True
    X[treated] += 2
    return X, treated


def by_slsqp(A, b, ridge):
    """Another solver of the problem of `simplex`."""
    n = A.shape[1]

    def value(p):
        left = p[0] + A @ p[1:] - b
        return left @ left + ridge * p[1:] @ p[1:]

    found = minimize(
        value,
        np.append(0, np.full(n, 1 / n)),
        method="SLSQP",
        bounds=[(None, None)] + [(0, None)] * n,
        constraints={"type": "eq", "fun": lambda p: p[1:].sum() - 1},
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    return found.x[1:]


@pytest.mark.parametrize("ridge", [0.1, 3.0])
def test_the_simplex_problem_is_solved(ridge):
    rng = np.random.RandomState(0)
    A, b = rng.randn(9, 6), rng.randn(9)
    w = simplex(A, b, ridge)
    np.testing.assert_allclose(w, by_slsqp(A, b, ridge), atol=1e-5)
    assert w.min() >= 0 and w.sum() == pytest.approx(1)
    # Units of the outcome do not matter, and neither does a constant.
    np.testing.assert_allclose(simplex(1e6 * A + 5, 1e6 * b, 1e12 * ridge), w)


def test_weights_of_synthetic_did():
    """Of the definition in the paper, written out."""
    X, treated = panel()
    others, own = X[3:], X[:3, :7].mean(0)
    zeta = (3 * 3) ** 0.25 * np.diff(others[:, :7]).std(ddof=1)
    units, times = synthetic_weights(others, own, treated[0], 3)
    expected = by_slsqp(others[:, :7].T, own, zeta**2 * 7)
    np.testing.assert_allclose(units, expected, atol=1e-4)
    expected = by_slsqp(others[:, :7], others[:, 7:].mean(1), 1e-9)
    np.testing.assert_allclose(times, expected, atol=1e-3)
    found = effect(X, treated, weights="synthetic", n_placebos=0)
    np.testing.assert_allclose(found.unit_weights, np.append([0, 0, 0], units))
    np.testing.assert_allclose(found.time_weights, np.append(times, [0, 0, 0]))
    gap = X[:3].mean(0) - units @ others
    assert found.att == pytest.approx(gap[7:].mean() - times @ gap[:7])


# Average effect and standard error of the jackknife by diff-diff 3.13.0.
PEER = {
    "small": ({}, 1.726401, 0.369219),
    "one": ({"n_treated": 1}, 1.877511, None),
    "larger": (
        {"seed": 1, "n_units": 30, "n_times": 20, "n_treated": 4, "start": 14},
        1.810369,
        0.229347,
    ),
}


@pytest.mark.parametrize("name", PEER)
def test_numbers_of_another_program(name):
    params, att, error = PEER[name]
    found = effect(*panel(**params), weights="synthetic", n_placebos=0)
    assert found.att == pytest.approx(att, abs=2e-4)
    if error is None:
        assert found.standard_error_by_jackknife is None
    else:
        assert found.standard_error_by_jackknife == pytest.approx(error, abs=1e-4)
        low, high = found.interval_by_jackknife
        assert high - low == pytest.approx(2 * 1.6449 * error, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_weighted_regression_with_two_effects(kind):
    X, treated = panel()
    found = effect(X, treated, weights=kind, n_placebos=0)
    u, t = np.indices(X.shape)
    W = np.where(treated.any(1), 1 / 3, found.unit_weights)[:, None]
    W = W * np.where(treated.any(0), 1 / 3, found.time_weights)
    A = np.column_stack([np.eye(12)[u.ravel()], np.eye(10)[t.ravel()], treated.ravel()])
    # The normal equations, as weights of "averaged" can be negative.
    left, right = A.T @ (W.ravel()[:, None] * A), A.T @ (W.ravel() * X.ravel())
    assert np.linalg.lstsq(left, right)[0][-1] == pytest.approx(found.att)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("starts", [(6,), (6, 6), (5, 5, 8)])
def test_additive_effects_are_exact(kind, starts):
    rng = np.random.RandomState(0)
    X = 10 * rng.randn(9, 1) + 10 * rng.randn(10)
    treated = np.zeros(X.shape, bool)
    for unit, start in enumerate(starts):
        treated[unit, start:] = True
    true = rng.randn(*X.shape)
    found = effect(X + treated * true, treated, weights=kind, level=0.5)
    np.testing.assert_allclose(found.effects[treated], true[treated], atol=1e-8)
    assert found.unit_weights.sum() == pytest.approx(1)
    assert found.time_weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.placebo_att, 0, atol=1e-8)
    # Parallel straight lines, and constants: any weights fit.
    for lines in (rng.randn(9, 1) + np.arange(10.0), np.full((9, 10), 3)):
        found = effect(lines + treated, treated, weights=kind, n_placebos=0)
        np.testing.assert_allclose(found.effects[treated], 1, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_the_outcome_and_levels_do_not_matter(kind):
    X, treated = panel()
    found = effect(X, treated, weights=kind, level=0.5, random_state=0)
    levels = np.random.RandomState(0).randn(12, 1)
    for size in (1e4, 1e-150, 1e150):
        scaled = -size * (X + levels)
        other = effect(scaled, treated, weights=kind, level=0.5, random_state=0)
        assert other.att / size == pytest.approx(-found.att)
        assert other.standard_error / size == pytest.approx(found.standard_error)
        error = other.standard_error_by_jackknife / size
        assert error == pytest.approx(found.standard_error_by_jackknife)
    assert found.standard_error == pytest.approx(np.std(found.placebo_att))
    low, high = found.interval_by_jackknife
    assert low < found.att < high
    assert "Jackknife" in found.summary() and "Largest weights" in found.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_cohorts_are_compared_with_never_treated_units(kind):
    X, _ = panel(n_units=14, n_times=12)
    treated = np.zeros(X.shape, bool)
    treated[:2, 9:] = treated[2, 6:] = True
    found = effect(X, treated, weights=kind, n_placebos=0)
    assert found.jackknife is None  # a unit is alone
    for units in ([0, 1], [2]):
        rows = units + list(range(3, 14))
        own = effect(X[rows], treated[rows], weights=kind, n_placebos=0)
        expected = own.effects[: len(units)]
        np.testing.assert_allclose(found.effects[units], expected)
    # Aligned at the own first treated times.
    since, gaps, _ = found.by_event
    np.testing.assert_array_equal(since, np.arange(-9, 6))
    own = X - found.counterfactual
    assert gaps[since == 0] == pytest.approx((own[0, 9] + own[1, 9] + own[2, 6]) / 3)
    assert gaps[since == -8] == pytest.approx(own[:2, 1].mean())


@pytest.mark.parametrize("kind", KINDS)
def test_the_jackknife_leaves_units_out(kind):
    """With the weights kept; by hand for one control and one treated unit."""
    X, treated = panel()
    found = effect(X, treated, weights=kind, n_placebos=0)
    units, times = found.unit_weights, found.time_weights

    def att(own, weights):
        gap = X[own].mean(0) - weights / weights.sum() @ X
        return gap[7:].mean() - times @ gap

    assert found.jackknife.shape == (12,)
    assert found.jackknife[1] == pytest.approx(att([0, 2], units))
    without = np.where(np.arange(12) == 5, 0, units)
    assert found.jackknife[5] == pytest.approx(att([0, 1, 2], without))


def test_the_walk_with_noise_is_the_conditional_mean():
    """Of the normal distribution whose covariance the controls and the prior give."""
    X, _ = panel(n_units=20)
    model = LocalLevel(X[1:])
    units, times = model.weights(X[0, :7])
    path = units @ X[1:]
    found = path[7:] + times @ (X[0, :7] - path[:7])
    S = model.shrinkage * model.covariance + model.steps.T @ model.steps
    common = model.size @ X[1:] / model.size.sum()
    known = np.diff((X[0] - common)[:7])
    later = S[6:, :6] @ np.linalg.solve(S[:6, :6], known)
    expected = common[7:] + (X[0] - common)[6] + np.cumsum(later)
    np.testing.assert_allclose(found, expected)
    assert units.sum() == pytest.approx(1) and times.sum() == pytest.approx(1)
    # Steps of a walk plus noise.
    D, walk = np.diff(np.eye(10), axis=0), np.tril(np.ones((10, 10)))
    expected = D @ (walk @ walk.T + model.noise * np.eye(10)) @ D.T
    np.testing.assert_allclose(
        model.covariance / model.covariance[0, 0], expected / expected[0, 0]
    )


def test_the_marginal_likelihood_is_that_of_sequential_predictions():
    X, _ = panel(n_units=15, n_times=6)
    model = LocalLevel(X)
    p = 5
    evidence = []
    for k in SHRINKAGES:
        scale, freedom, total = k * model.covariance, k + p + 1, 0.0
        for step in model.steps:
            df = freedom - p + 1
            total += stats.multivariate_t.logpdf(step, shape=scale / df, df=df)
            scale, freedom = scale + np.outer(step, step), freedom + 1
        evidence.append(total)
    assert model.shrinkage == SHRINKAGES[np.argmax(evidence)]


def test_noise_decides_how_many_times_count():
    rng = np.random.RandomState(0)
    walks, noise = np.cumsum(rng.randn(60, 20), 1), rng.randn(60, 20)
    last = LocalLevel(walks).weights(walks[0, :15])[1]
    many = LocalLevel(noise).weights(noise[0, :15])[1]
    assert last[-1] > 0.7 and many[-1] < 0.4
    assert (np.diff(many) >= 0).all() and many.min() >= 0
    # A unit with large steps has little weight in the common path.
    walks[0] *= 50
    size = LocalLevel(walks).size
    assert size[0] < 0.01 * np.median(size)


def test_covariates_are_subtracted():
    rng = np.random.RandomState(0)
    Z, V = rng.randn(2, 9, 10)
    X = rng.randn(9, 1) + rng.randn(10) + 3 * Z - V
    treated = np.zeros(X.shape, bool)
    treated[:2, 6:] = True
    gain = 2 + Z[treated]  # which the covariates of untreated cells do not explain
    X[treated] += gain
    X[5, 3] = Z[5, 3] = np.nan
    for params in ({"weights": "averaged"}, {"weights": "synthetic"}, {}):
        found = effect(X, treated, covariates=[Z, V], n_placebos=0, **params)
        np.testing.assert_allclose(found.effects[treated], gain, atol=1e-3)
    unit, time = np.indices(X.shape)
    table = pd.DataFrame(
        {k: v.ravel() for k, v in {"u": unit, "t": time, "y": X, "d": treated}.items()}
    ).assign(z=Z.ravel(), v=V.ravel())
    names = {"unit": "u", "time": "t", "weights": "synthetic", "n_placebos": 0}
    for given in (table, pl.from_pandas(table)):
        own = effect(given, "d", covariates=["z", "v"], **names)
        assert own.att == pytest.approx(gain.mean())
    for bad, message in (
        ([Z[1:]], r"covariates\[0\] has shape"),
        ([Z, np.where(Z > 2, np.nan, V) * np.nan], r"covariates\[1\] is missing for"),
        ([Z, Z + np.arange(10)], r"covariates\[1\] is a sum of effects"),
        ([np.zeros_like(Z)], r"covariates\[0\] is a sum of effects"),
        ("z", r"covariates\[0\] must be a matrix"),
        (pd.DataFrame(Z), "must be a list"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            effect(X, treated, covariates=bad)
    for bad, message in ((["w"], "must be a column"), (["t"], "named twice")):
        with pytest.raises(ValueError, match=message):
            effect(table, "d", covariates=bad, outcome="y", **names)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_outcomes_and_containers(kind):
    X, treated = panel()
    expected = effect(X, treated, weights=kind, level=0.5, random_state=0)
    frame = pd.DataFrame(X.astype(np.float32))
    found = effect(frame, treated, weights=kind, level=0.5, random_state=0)
    np.testing.assert_allclose(found.effects, expected.effects, atol=1e-4)
    assert isinstance(found.effects, pd.DataFrame)
    X[5, 2] = X[7, 8] = X[1, 3] = X[0, 8] = np.nan
    treated[0, 8] = False
    found = effect(X, treated, weights=kind, level=0.5, random_state=0)
    assert found.att == pytest.approx(expected.att, abs=0.5)
    assert np.isfinite(found.placebo_att).all()
    # A unit without outcomes takes no part.
    empty = np.vstack([X, np.full(10, np.nan)])
    with pytest.warns(UserWarning, match="1 row of X has no observed"):
        again = effect(
            empty, np.vstack([treated, np.zeros(10, bool)]), weights=kind, n_placebos=0
        )
    assert again.unit_weights[12] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_small_and_integer_panels(kind):
    X = np.array([[1, 2, 9], [1, 2, 3], [4, 5, 6]])
    treated = np.zeros((3, 3), bool)
    treated[0, 2] = True
    assert effect(X, treated, weights=kind, n_placebos=0).att == pytest.approx(6)
    one = effect(X[:2], treated[:2], weights=kind, n_placebos=0)
    assert one.att == pytest.approx(6) and one.unit_weights[1] == 1
    assert np.isnan(one.time_placebo).all() and np.isnan(one.standard_error)


def test_bad_weights():
    X, treated = panel()
    for weights in ("sdid", np.ones(3), ["synthetic"]):
        with pytest.raises(ValueError, match="weights must be None or of"):
            effect(X, treated, weights=weights)
    with pytest.raises(ValueError, match="pass one of them"):
        effect(X, treated, SoftImputeCompleter(), weights="synthetic")
    early = treated.copy()
    early[1, 1:] = True
    with pytest.raises(ValueError, match="Unit 1 is treated at time 1, but weights ne"):
        effect(X, early, weights="synthetic")
    everyone = np.zeros(X.shape, bool)
    everyone[:6, 5:9] = everyone[6:, 9:] = True
    with pytest.raises(ValueError, match="never-treated units, and X has none"):
        effect(X, everyone, weights="averaged")


def test_simulate_lets_untreated_units_take_the_place():
    X, treated = panel(n_treated=1, n_units=9)
    completer = SoftImputeCompleter(0.3, fixed_effects="both")
    estimators = {"a": "synthetic", "b": "averaged", "c": completer}
    found = simulate(X, treated, estimators, random_state=0)
    for name, params in (
        ("a", {"weights": "synthetic"}),
        ("b", {"weights": "averaged"}),
        ("c", {"completer": completer}),
    ):
        own = effect(X, treated, level=0.5, **params)
        np.testing.assert_allclose(sorted(found.errors[name]), sorted(own.placebo_att))
        squares = np.mean(own.placebo_att**2)
        assert found.rmse[name] == pytest.approx(np.sqrt(squares))
        assert found.bias[name] == pytest.approx(np.mean(own.placebo_att))
        low, high = own.interval
        assert found.half_width(0.5)[name] == pytest.approx((high - low) / 2)
        by_time = np.sqrt(np.mean(own.placebo_gaps[:, 0, 7:] ** 2, 1)).mean()
        assert found.rmse_by_time[name] == pytest.approx(by_time)
    first = min(found.rmse, key=found.rmse.get)
    assert str(found).splitlines()[2].startswith(first)
    assert "infinite" in str(found) and "a, b, c" in repr(found)
    # Groups are the same for all, and the treated units do not matter.
    X, treated = panel()
    same = {"a": "synthetic", "again": "synthetic"}
    found = simulate(X, treated, same, n_draws=5, random_state=1)
    np.testing.assert_array_equal(found.errors["a"], found.errors["again"])
    other = simulate(X + 9 * treated, treated, same, n_draws=5, random_state=1)
    np.testing.assert_allclose(other.errors["a"], found.errors["a"])


def test_simulate_with_bad_input():
    X, treated = panel()
    for estimators in ({}, ["synthetic"], "synthetic"):
        with pytest.raises(ValueError, match="estimators must be a dict"):
            simulate(X, treated, estimators)
    with pytest.raises(ValueError, match=r"estimators\['x'\] must be a completer or"):
        simulate(X, treated, {"x": "sdid"})
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        simulate(X, treated, n_draws=0)
    with pytest.raises(TypeError, match="n_draws must be an integer"):
        simulate(X, treated, n_draws=1.5)
    with pytest.raises(ValueError, match="level"):
        simulate(X, treated, {"x": "synthetic"}, n_draws=2).half_width(90)
    with (
        pytest.warns(UserWarning, match="cannot take the place"),
        pytest.raises(ValueError, match="too few never-treated units"),
    ):
        simulate(X[:5], treated[:5], {"x": "synthetic"})


def test_event_study_display():
    import matplotlib.pyplot as plt

    X, treated = panel()
    found = effect(X, treated, weights="averaged", level=0.5, random_state=0)
    display = EventStudyDisplay.from_effect(found)
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(-7, 3))
    gaps = (X - found.counterfactual)[:3].mean(0)
    np.testing.assert_allclose(display.line_.get_ydata(), gaps)
    # With one cohort, the intervals are those of the periods.
    np.testing.assert_allclose(display.intervals[:, 7:], found.period_intervals[:, 7:])
    _, ax = plt.subplots()
    few = effect(X, treated, weights="averaged", n_placebos=0)
    assert EventStudyDisplay.from_effect(few, ax=ax).axes_[0] is ax
    ax.figure.canvas.draw()
    with pytest.raises(TypeError, match="effect must be a result"):
        EventStudyDisplay.from_effect(X)
    plt.close("all")
