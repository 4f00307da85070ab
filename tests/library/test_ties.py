"""Point masses are steps, and equal values have no order."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, roc_auc_score

from skmc import (
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    metrics,
)
from skmc.completers.gaussian.gaussian import CopulaMarginal
from skmc.completers.knn.donors import _DonorSearch
from skmc.model_selection import RankingScorer

RNG = np.random.RandomState(0)
NORMAL = RNG.randn(2000)
COLUMNS = {
    "hours": np.where(RNG.rand(2000) < 0.59, 40, np.round(40 + 10 * NORMAL, 1)),
    "amounts": np.where(NORMAL < 0.1, 0, np.exp(NORMAL)),
    "end of a scale": np.minimum(NORMAL, 1.0),
    "heaps": np.where(RNG.rand(2000) < 0.4, np.rint(NORMAL), NORMAL),
    "continuous": NORMAL,
    "few levels": np.rint(NORMAL),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_margins_of_a_copula_have_the_observed_masses(name):
    x = COLUMNS[name]
    margin = CopulaMarginal.of(x)
    drawn = margin.quantiles(RNG.randn(50_000))
    values, counts = np.unique(x, return_counts=True)
    for value in values[counts > 60]:
        assert (drawn == value).mean() == pytest.approx((x == value).mean(), abs=0.01)
    quantiles = np.linspace(0.05, 0.95, 7)
    spread = x.std()
    np.testing.assert_allclose(
        np.quantile(drawn, quantiles), np.quantile(x, quantiles), atol=0.06 * spread
    )
    # Mean and deviation of the values of normal scores.
    m, variance = np.array([-1.2, 0.0, 0.8]), np.array([0.5, 0.2, 0.3])
    mean, std = margin.moments(m, variance)
    deviation = np.sqrt(variance + margin.within)
    draws = margin.quantiles(m + deviation * RNG.randn(100_000, 3))
    np.testing.assert_allclose(mean, draws.mean(0), atol=0.03 * spread)
    np.testing.assert_allclose(std, draws.std(0), atol=0.06 * spread)


def test_draws_have_a_point_mass_and_bounds_at_it():
    X = np.column_stack([NORMAL + RNG.randn(2000), COLUMNS["amounts"]])[:400]
    hidden = RNG.rand(400) < 0.3
    X[hidden, 1] = np.nan
    completer = GaussianCompleter(1.0, marginals="copula", min_value=0).fit(X)
    draws = completer.sample(X, 10, random_state=0)[:, hidden, 1]
    share = (X[~hidden, 1] == 0).mean()
    assert (draws == 0).mean() == pytest.approx(share, abs=0.08)
    positive = completer.set_params(min_value=[np.nan, 1e-9]).fit(X)
    draws = positive.sample(X, 10, random_state=0)[:, hidden, 1]
    assert (draws >= 1e-9).all()


M = (RNG.rand(5, 7) < 0.4) * RNG.randint(1, 4, (5, 7)).astype(float)
M[:, 0], M[:, 1] = 1.0, 0.0
TIED = RNG.randint(0, 3, (5, 7)).astype(float)


@pytest.mark.parametrize("scores", [np.ones((5, 7)), TIED], ids=["constant", "some"])
def test_equal_predictions_are_in_random_order(scores):
    for name, metric in {
        "ndcg": lambda X: metrics.ndcg_at_k(X, M, 3),
        "map": lambda X: metrics.map_at_k(X, M, 3),
        "recall": lambda X: metrics.recall_at_k(X, M, 3),
        "auc": lambda X: metrics.auc(X, M),
    }.items():
        orders = [metric(scores + 1e-6 * RNG.rand(5, 7)) for _ in range(400)]
        error = np.std(orders) / 20
        assert metric(scores) == pytest.approx(np.mean(orders), abs=4 * error), name
        columns = RNG.permutation(7)
        found = {
            "ndcg": metrics.ndcg_at_k,
            "map": metrics.map_at_k,
            "recall": metrics.recall_at_k,
        }.get(name, lambda X, M, k: metrics.auc(X, M))(
            scores[:, columns], M[:, columns], 3
        )
        assert found == pytest.approx(metric(scores)), name
    rows = [roc_auc_score(m > 0, x) for m, x in zip(M, scores, strict=True)]
    assert metrics.auc(scores, M) == pytest.approx(np.mean(rows))
    assert metrics.ndcg_at_k(scores, M, 3) == pytest.approx(ndcg_score(M, scores, k=3))


def test_a_scorer_of_constant_predictions_is_a_coin():
    cells = np.where(RNG.rand(30, 12) < 0.5, 1.0, np.nan)
    entries = Entries(cells)
    train = np.arange(len(entries)) % 4 > 0
    completer = FactorizationCompleter(1, lambda_ridge=1.0, random_state=0)
    completer.fit(entries[np.flatnonzero(train)])
    held = entries[np.flatnonzero(~train)]
    assert RankingScorer("auc")(completer, held) == pytest.approx(0.5)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("missing", [0.2, 0.9])  # by rows, and by columns
@pytest.mark.parametrize("levels", [2, 5])
def test_neighbors_at_equal_distances_share_a_place(weights, missing, levels):
    n_cols = 6 if missing < 0.5 else 60
    X = RNG.randint(0, levels, (150, n_cols)).astype(float)
    X[RNG.rand(*X.shape) < missing] = np.nan
    X[np.isnan(X).all(1), 0] = 1
    completer = KNNCompleter(4, weights=weights)
    completed = completer.fit(X).transform(X)
    order = RNG.permutation(150)
    np.testing.assert_allclose(
        completer.fit(X[order]).transform(X), completed, atol=1e-9
    )
    for unit in (np.pi, 1 / 3, 1e-7):
        found = completer.fit(unit * X).transform(unit * X) / unit
        np.testing.assert_allclose(found, completed, atol=1e-9)
    units = 10.0 ** RNG.uniform(-3, 3, n_cols)
    found = completer.fit(units * X).transform(units * X) / units
    np.testing.assert_allclose(found, completed, atol=1e-9)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_the_shares_of_neighbors(weights):
    """Three donors at distance 1 share two places; that at 0.5 has its own."""
    X = np.array([[0, np.nan], [0.5, 8], [1, 2], [1, 4], [-1, 6], [9, 100.0]])
    completer = KNNCompleter(3, weights=weights, scaling=None).fit(X)
    near, far = (1, 1) if weights == "uniform" else (2, 1)
    expected = (8 * near + 2 * far * 4) / (near + 2 * far)
    assert completer.transform(X)[0, 1] == pytest.approx(expected)
    explanation = completer.explain(X, 0, 1)
    assert len(explanation.contributions) == 4
    assert explanation.value == pytest.approx(expected)


def test_columns_with_few_donors_need_no_longer_search(monkeypatch):
    """Two columns without a cell and with one: no search finds five donors."""
    sides, reaches = _DonorSearch.sides, []

    def watched(self, reach, *size):
        reaches.append(reach)
        return sides(self, reach, *size)

    monkeypatch.setattr(_DonorSearch, "sides", watched)
    X = RNG.randn(500, 30)
    X[RNG.rand(500, 30) < 0.1] = np.nan
    few = np.full((500, 2), np.nan)
    few[7, 0] = 3.0
    plain = KNNCompleter().fit_transform(X)
    longest = max(reaches)
    assert longest < 500
    with pytest.warns(UserWarning, match="no observed cell"):
        completed = KNNCompleter().fit_transform(np.hstack([X, few]))
    assert max(reaches) == longest
    np.testing.assert_allclose(completed[:, :30], plain)
    np.testing.assert_allclose(completed[:, 30], 3)
