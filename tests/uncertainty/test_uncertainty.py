"""Coverage of intervals, multiple completions, pooled estimates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import low_rank
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine

from skmc import (
    AIRCompleter,
    AutoCompleter,
    DMFCompleter,
    Entries,
    KNNCompleter,
    LinkedFactorizationCompleter,
    MeanCompleter,
    MixedCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    patterns,
)
from skmc.model_selection import fit_batch
from skmc.uncertainty import MultipleCompletion, pool

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning",
        "ignore:.*have no observed cell",
    ),
]


def noisy(seed=0):
    return low_rank(60, 40, 3, seed) + 0.3 * np.random.RandomState(9).randn(60, 40)


MATRICES = {
    "synthetic": noisy,
    "wine": lambda: load_wine().data,
    "digits": lambda: load_digits().data[:200],
}
CASES = [
    ("synthetic", "mcar", SVDCompleter(rank=3)),
    ("synthetic", "rows", SoftImputeCompleter(0.1)),
    ("synthetic", "mnar", SoftImputeCompleter(0.1)),
    ("wine", "mcar", SVDCompleter(rank=2)),
    ("wine", "mcar", AIRCompleter(max_iter=100)),
    ("wine", "mar", KNNCompleter()),
    ("digits", "mcar", SVDCompleter(rank=5)),
    ("digits", "patch", KNNCompleter()),
]


@pytest.mark.parametrize(("name", "pattern", "completer"), CASES, ids=str)
def test_nine_in_ten_intervals_cover(name, pattern, completer):
    truth = MATRICES[name]()
    if pattern == "rows":
        hidden = patterns.rows(truth, 0.2, random_state=1)
    elif pattern == "patch":
        hidden = np.zeros(truth.shape, bool)
        hidden[40:130, 20:44] = True
    else:
        hide = getattr(patterns, {"mcar": "random"}.get(pattern, pattern))
        hidden = hide(truth, 0.2, random_state=1)
    many = MultipleCompletion(completer, pattern=pattern, random_state=0)
    low, high = many.fit(np.ma.masked_array(truth, hidden)).interval(0.9)
    inside = (low <= truth) & (truth <= high)
    assert 0.8 < inside[hidden].mean() < 0.97
    assert inside[~hidden].all()
    assert (low[~hidden] == high[~hidden]).all()
    narrow, wide = many.interval(0.5)
    assert ((narrow >= low) & (wide <= high)).all()


def test_interval_widths_follow_the_noise():
    """The noise differs by column, and some rows have no observed cell."""
    rng = np.random.RandomState(0)
    truth = low_rank(80, 30, 2) + np.where(np.arange(30) < 15, 0.05, 1) * rng.randn(
        80, 30
    )
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    hidden[:5, 3:] = True
    X = np.ma.masked_array(truth, hidden)
    many = MultipleCompletion(SVDCompleter(rank=2), random_state=0).fit(X)
    low, high = many.interval()
    width = np.ma.masked_array(high - low, ~hidden)
    assert width[5:, 15:].mean() > 2 * width[5:, :15].mean()
    assert width[:5, :15].mean() > 1.1 * width[5:, :15].mean()
    assert many.std_[:5].mean() > 1.3 * many.std_[5:].mean()


def test_samples_are_completions_with_noise():
    truth = noisy()
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    many = MultipleCompletion(SVDCompleter(rank=3), 10, random_state=0)
    many.fit(Entries(np.ma.masked_array(truth, hidden)))
    samples = many.sample(25, random_state=1)
    assert samples.shape == (25, 60, 40)
    assert (samples[:, ~hidden] == truth[~hidden]).all()
    spread = samples[:, hidden].std(0)
    assert spread.mean() == pytest.approx(
        np.sqrt(many.std_**2 + many.noise_**2)[hidden].mean(), rel=0.2
    )
    assert np.array_equal(samples, many.sample(25, random_state=1))
    error = np.sqrt(np.square(many.mean_ - truth)[hidden].mean())
    assert np.sqrt(np.square(spread).mean()) == pytest.approx(error, rel=0.2)


def test_missing_cells_of_a_row_are_drawn_together():
    """Two columns that are missing together have correlated errors."""
    rng = np.random.RandomState(0)
    truth = rng.randn(400, 4)
    truth[:, 1] = truth[:, 0] + 0.2 * rng.randn(400)
    X = truth.copy()
    X[rng.rand(400) < 0.3, :2] = np.nan
    many = MultipleCompletion(MeanCompleter(), random_state=0).fit(X)
    missing = np.isnan(X[:, 0])
    sample = many.sample(1, random_state=0)[0][missing]
    assert np.corrcoef(sample[:, 0], sample[:, 1])[0, 1] > 0.9


def test_draws_in_one_batch_equal_separate_draws(monkeypatch):
    truth = noisy()[:20, :15]
    X = np.ma.masked_array(truth, patterns.random(truth, 0.3, random_state=0))
    completer = DMFCompleter(max_iter=60)
    together = MultipleCompletion(completer, 3, random_state=0).fit(X)
    monkeypatch.setattr(
        "skmc.uncertainty.multiple.fit_batch",
        lambda draws, parts: [d.fit(p) for d, p in zip(draws, parts, strict=True)],
    )
    alone = clone(together).fit(X)
    np.testing.assert_allclose(together.draws_, alone.draws_, atol=1e-8)
    assert together.std_.min() > 0


@pytest.mark.parametrize("rank", ["auto", 1])
def test_draws_that_choose_hyper_parameters_are_fitted_one_by_one(rank, monkeypatch):
    batches = []
    monkeypatch.setattr(
        "skmc.uncertainty.multiple.fit_batch",
        lambda draws, parts: batches.append(1) or fit_batch(draws, parts),
    )
    completer = LinkedFactorizationCompleter(
        rank, 1.0, max_iter=5, tol=1.0, scaling="columns"
    )
    many = MultipleCompletion(completer, 2, random_state=0).fit(noisy()[:12, :8])
    assert many.draws_.shape == (2, 12, 8)
    assert bool(batches) is (rank == 1)


def test_bad_input():
    truth = noisy()[:8, :6]
    many = MultipleCompletion(SVDCompleter(rank=1), random_state=0).fit(truth)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        many.interval(1)
    with pytest.raises(ValueError, match="'n_draws' parameter"):
        MultipleCompletion(SVDCompleter(), 1).fit(truth)
    with pytest.raises(ValueError, match="'completer' parameter"):
        MultipleCompletion("svd").fit(truth)
    with pytest.raises(ValueError, match="have the same shape and at least two items"):
        pool([1.0], [1.0])


def test_rubins_rules():
    """A textbook case by hand, and intervals of a mean that cover."""
    pooled = pool([[2.0, 1.0], [4.0, 1.0], [3.0, 1.0]], np.full((3, 2), 0.5))
    np.testing.assert_allclose(pooled.estimate, [3, 1])
    np.testing.assert_allclose(pooled.std_error**2, [0.5 + 4 / 3, 0.5])
    np.testing.assert_allclose(pooled.dof[0], 2 * (1 + 0.5 / (4 / 3)) ** 2)
    np.testing.assert_allclose(pooled.missing_information, [(4 / 3) / (11 / 6), 0])
    assert np.isinf(pooled.dof[1])


def test_pooled_degrees_of_freedom():
    """The estimates, and the results of mice 3.10.3, are from its documentation."""
    estimates = [26.816, 26.184, 26.692, 27.076, 26.528]  # means of bmi in nhanes
    variances = [0.7888227, 0.5449227, 0.7764973, 0.6764760, 0.5379173]
    pooled = pool(estimates, variances, dof=24)
    found = (pooled.estimate, pooled.std_error**2, pooled.dof)
    assert found == pytest.approx((26.6592, 0.797651, 16.41929), rel=1e-5)
    assert pool(estimates, variances, dof=1e9).dof == pytest.approx(
        pool(estimates, variances).dof
    )
    assert pool([1.0, 1.0], [1.0, 1.0], dof=10).dof == pytest.approx(11 / 13 * 10)
    with pytest.raises(ValueError, match="dof must be positive, got 0"):
        pool(estimates, variances, dof=0)


def test_pooled_regression_equals_that_of_statsmodels():
    mice = pytest.importorskip("statsmodels.imputation.mice")
    from statsmodels.api import OLS

    rng = np.random.RandomState(0)
    table = pd.DataFrame(rng.randn(60, 2) @ rng.randn(2, 3) + rng.randn(60, 3))
    table.columns = ["a", "b", "c"]
    data = mice.MICEData(table.mask(rng.uniform(size=table.shape) < 0.2))
    chain = mice.MICE("a ~ b + c", OLS, data)
    expected, fits = chain.fit(n_burnin=2, n_imputations=5), chain.results_list
    assert len(fits) == 5
    pooled = pool([fit.params for fit in fits], [fit.bse**2 for fit in fits], dof=57)
    np.testing.assert_allclose(pooled.estimate, expected.params)
    np.testing.assert_allclose(pooled.std_error, expected.bse)
    np.testing.assert_allclose(pooled.missing_information, expected.frac_miss_info)
    assert (pooled.dof < 57).all()


@pytest.mark.parametrize(
    "completer",
    [
        MixedCompleter(SVDCompleter(rank=1)),
        MixedCompleter(AutoCompleter(["mean", "svd"], random_state=0)),
    ],
    ids=["mixed", "auto"],
)
def test_tables_have_intervals_and_samples(completer):
    rng = np.random.RandomState(0)
    z = rng.randn(200)
    truth = pd.DataFrame(
        {
            "x": z + 0.3 * rng.randn(200),
            "y": 100 * (z + 0.3 * rng.randn(200)),
            "stars": np.rint(z),  # as completed draws are, which are often equal
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(np.rint(50 * z + 10 * rng.randn(200)), unit="D"),
            "kind": np.where(z > 0, "up", "down"),
        }
    )
    hidden = rng.uniform(size=truth.shape) < 0.25
    X = truth.mask(hidden)
    many = MultipleCompletion(completer, 8, random_state=0).fit(X)
    low, high = many.interval(0.9)
    numbers = ["x", "y", "stars", "day"]
    inside = (low[numbers] <= truth[numbers]) & (truth[numbers] <= high[numbers])
    assert 0.8 < inside.to_numpy()[hidden[:, :4]].mean() < 0.97
    assert low["kind"].equals(X["kind"])
    first, second = many.sample(2, random_state=0)
    for sample in (first, second):
        assert sample.notna().all().all() and sample["day"].dtype == X["day"].dtype
        assert sample["x"][~hidden[:, 0]].equals(X["x"][~hidden[:, 0]])
    assert not first["x"].equals(second["x"])
    with pytest.raises(ValueError, match="only categories"):
        clone(many).fit(X[["kind"]])


def test_draws_that_are_equal_have_no_width():
    X = np.ones((40, 3))
    X[::4, 1] = np.nan
    completion = MultipleCompletion(MeanCompleter(), random_state=0).fit(X)
    low, high = completion.interval()
    assert (low == 1).all() and (high == 1).all()
    assert (completion.sample(2, random_state=0) == 1).all()


def test_marks_of_missing_cells_are_those_of_the_completer():
    X = low_rank(20, 6).round(2)
    X[np.random.RandomState(0).rand(20, 6) < 0.2] = np.nan
    marked = np.where(np.isnan(X), -9.0, X)
    low, _ = (
        MultipleCompletion(SVDCompleter(rank=1), 4, random_state=0).fit(X).interval()
    )
    completer = SVDCompleter(rank=1, missing_values=-9.0)
    found, _ = MultipleCompletion(completer, 4, random_state=0).fit(marked).interval()
    np.testing.assert_array_equal(found, low)


def test_names_of_columns_are_kept():
    frame = pd.DataFrame(low_rank(20, 3), columns=["a", "b", "c"])
    many = MultipleCompletion(MeanCompleter(), 4).fit(frame)
    assert list(many.feature_names_in_) == ["a", "b", "c"] and many.n_features_in_ == 3
    many.fit(frame.to_numpy())
    assert not hasattr(many, "feature_names_in_")
