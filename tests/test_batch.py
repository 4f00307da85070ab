"""Batched = looped."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import COMPLETERS, low_rank, make

from skmc import AIRCompleter, DMFCompleter, SVDCompleter, patterns
from skmc.batch import fit_batch

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short

VARIANTS = {
    "AIRCompleter": [
        {},
        {"early_stopping": True, "n_iter_no_change": 25, "lr": 0.02},
        {"adjacency": "global", "blocks": {5: 0.1}},
    ],
    "DMFCompleter": [
        {},
        {"regularizer": "tv", "n_iter_no_change": 50, "lr": 0.05},
        {"regularizer": "dirichlet", "early_stopping": False},
    ],
    "SNNCompleter": [{}, {"init": "spectral"}, {"layers": (2, 2)}],
}
CASES = [
    (cls, params)
    for cls in COMPLETERS
    if cls.completer_tags.batched
    for params in VARIANTS.get(cls.__name__, [{}])
]


@pytest.mark.parametrize(("cls", "params"), CASES)
def test_batched_is_looped(cls, params):
    truth = low_rank(20, 15, rank=3)
    hidden = [patterns.random(truth, 0.3, random_state=seed) for seed in range(3)]
    Xs = [np.ma.masked_array(truth, h) for h in hidden]

    def grid():
        params_of = {"max_iter": 250, **params}
        return [
            make(cls, lambda_row=weight, lambda_col=0.5, **params_of).set_params(
                random_state=seed
            )
            for seed, weight in enumerate([0.0, 0.3, 3.0])
        ]

    together = fit_batch(grid(), Xs)
    alone = [completer.fit(X) for completer, X in zip(grid(), Xs, strict=True)]
    for a, b, X in zip(together, alone, Xs, strict=True):
        np.testing.assert_allclose(a.reconstruction_, b.reconstruction_, atol=1e-8)
        np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-8)
        assert (a.n_iter_, a.status_) == (b.n_iter_, b.status_)
        for name, values in b.history_.items():
            np.testing.assert_allclose(a.history_[name], values, rtol=1e-5)
        assert set(getattr(a, "laplacians_", ())) == set(getattr(b, "laplacians_", ()))
        for name, L in getattr(b, "laplacians_", {}).items():
            np.testing.assert_allclose(a.laplacians_[name], L, atol=1e-8)
    assert len({c.n_iter_ for c in alone}) > 1 or not params.get("n_iter_no_change")


def test_what_cannot_share_a_batch():
    X = low_rank(6, 5)
    with pytest.raises(ValueError, match=r"only \('lambda_row', .* may differ"):
        fit_batch([AIRCompleter(depth=3), AIRCompleter()], [X, X])
    with pytest.raises(ValueError, match="Xs must share one shape"):
        fit_batch([AIRCompleter(), AIRCompleter()], [X, X[:4]])
    with pytest.raises(ValueError, match="SVDCompleter has no batched solve"):
        fit_batch([SVDCompleter()], [X])


def test_graphs_are_compared_by_their_contents():
    def ring(shift):
        A = np.roll(np.eye(40), shift, 0)
        return sp.csr_array(A + A.T)

    X = low_rank(40, 5)
    graphs = [DMFCompleter("dirichlet", row_graph=ring(k)) for k in (1, 7)]
    with pytest.raises(ValueError, match="cannot share a batch"):
        fit_batch(graphs, [X, X])


def test_batches_are_validated_like_fits():
    X = low_rank(6, 6)
    with pytest.raises(ValueError, match="'lambda_row' parameter of AIRCompleter"):
        fit_batch([AIRCompleter(-1.0)], [X])
    assert fit_batch([], []) == []
    diagonal = np.where(np.eye(6, dtype=bool), X, np.nan)
    stopping = [make(AIRCompleter, early_stopping=True) for _ in range(2)]
    with pytest.raises(ValueError, match="no cell to spare in some matrices"):
        fit_batch(stopping, [X, diagonal])
