"""``warm_start``: the next fit continues from the last solution."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from conftest import COMPLETERS, low_rank, make
from sklearn.base import clone

from skmc import (
    AIRCompleter,
    DMFCompleter,
    FactorizationCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    patterns,
)
from skmc.linalg import LowRank, svd_of
from skmc.model_selection import fit_batch

HAVE_IT = [cls for cls in COMPLETERS if "warm_start" in cls().get_params()]
# Hyper-parameters that are given, not chosen, so that the objective stays the same.
PARAMS = {
    SVDCompleter: [{"rank": 3, "tol": 1e-5}],
    SoftImputeCompleter: [{"lambda_nuclear": 0.02}],
    FactorizationCompleter: [
        {"rank": 3, "lambda_ridge": 0.01},
        {"rank": 3, "lambda_ridge": 0.01, "biases": "columns"},
    ],
    AIRCompleter: [{"lambda_row": 0.1, "lambda_col": 0.0}],
    DMFCompleter: [{"lr": 0.01}],
    SNNCompleter: [{"early_stopping": False}],
}
# Those that train a model, with steps of a chosen length, and those that solve.
LEARNING = [cls for cls in HAVE_IT if {"lr", "layers"} & set(cls().get_params())]
WARM = [
    (cls, params)
    for cls in HAVE_IT
    if cls not in LEARNING
    for params in PARAMS.get(cls, [{}])
]
warm = pytest.mark.parametrize(("cls", "params"), WARM)
cut_short = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def X():
    truth = low_rank(40, 25, rank=3) + 0.3 * np.random.RandomState(1).randn(40, 25)
    return np.where(
        patterns.random(truth, 0.5, spare=True, random_state=0), np.nan, truth
    )


@warm
def test_a_fit_from_a_solution_stays_there(cls, params, X, device):
    completer = make(cls, **params, max_iter=5000, warm_start=True, device=device)
    completer.fit(X)
    cold, first = completer.n_iter_, completer.reconstruction_
    completer.fit(X)
    assert completer.n_iter_ <= max(cls.check_every, cold // 5)
    assert completer.n_iter_ < cold
    assert completer.reconstruction_ == pytest.approx(first, abs=0.02)
    # And with warm_start=False it begins anew.
    completer.set_params(warm_start=False).fit(X)
    assert completer.n_iter_ == cold
    assert np.array_equal(completer.reconstruction_, first)


@cut_short
@warm
def test_the_objective_continues_to_fall(cls, params, X, device):
    """Fits of a few steps reach the objective of one long fit, or a lower one."""
    params = {**params, "max_iter": 5, "tol": 0.0, "device": device}
    completer = make(cls, **params, warm_start=True)
    ends = [completer.fit(X).history_["objective"][-1] for _ in range(6)]
    assert (np.diff(ends) < 1e-9 * ends[0]).all()
    whole = clone(completer).set_params(max_iter=30, warm_start=False).fit(X)
    start = clone(completer).set_params(warm_start=False).fit(X)
    assert start.history_["objective"][-1] == ends[0]
    way = whole.history_["objective"][-1] - ends[0]
    assert ends[-1] - ends[0] < 0.6 * way < 0


@cut_short
def test_alternating_least_squares_continue_without_loss(X):
    """Two fits of twenty sweeps are nearly one of forty.

    The rows in between are exact, and conjugate directions begin anew.
    """
    params = {"rank": 3, "lambda_ridge": 0.01, "tol": 0.0}
    twice = make(FactorizationCompleter, **params, max_iter=20, warm_start=True).fit(X)
    first, middle = twice.history_["objective"], twice.reconstruction_
    once = make(FactorizationCompleter, **params, max_iter=40).fit(X)
    second = twice.fit(X).history_["objective"]
    assert second[0] < first[-1]
    assert second[-1] == pytest.approx(once.history_["objective"][-1], rel=1e-3)
    far = np.abs(middle - once.reconstruction_).max()
    assert np.abs(twice.reconstruction_ - once.reconstruction_).max() < 0.1 * far


@warm
def test_another_shape_is_an_error(cls, params, X):
    completer = make(cls, **params, max_iter=5000, warm_start=True).fit(X)
    for other in (X[:30], X[:, :20]):
        with pytest.raises(ValueError, match=r"resumes had \(40, 25\); set warm_"):
            completer.fit(other)
    assert completer.transform(X).shape == X.shape  # as it was


@cut_short
def test_other_ranks_and_chosen_ones(X):
    for cls in (SVDCompleter, FactorizationCompleter):
        completer = make(cls, rank=3, warm_start=True).fit(X)
        completer.set_params(rank=5).fit(X)
        assert completer.rank_ == 5
        completer.set_params(rank="auto").fit(X)
    completer = make(SoftImputeCompleter, warm_start=True).fit(X)
    assert completer.fit(X).path_["rank"][0] == 0


@cut_short
@pytest.mark.parametrize("cls", LEARNING)
def test_parameters_continue(cls, X, device):
    """The next fit starts at the end of the last one, and improves it."""
    (params,) = PARAMS.get(cls, [{}])
    params = {**params, "max_iter": 100, "tol": 0.0, "device": device}
    completer = make(cls, **params, warm_start=True).fit(X)
    if "lr" in completer.get_params():
        completer.set_params(lr=1e-9)
    end = completer.history_["objective"][-1]
    completer = pickle.loads(pickle.dumps(completer)).set_params(max_iter=1)
    start = completer.fit(X).history_["objective"][0]
    assert start == pytest.approx(end, rel=0.1)
    alone = clone(completer).fit(X).history_["objective"][0]
    assert abs(start - end) < 0.05 * abs(alone - end)
    with pytest.raises(ValueError, match=r"resumes had \(40, 25\); set warm_"):
        completer.fit(X[:30])
    with pytest.raises(ValueError, match="Fits in a batch start from scratch"):
        fit_batch([completer], [X])
    # A fit that does not remember is not gone on from, and neither is the one before.
    completer.set_params(warm_start=False).fit(-X)
    cold = completer.history_["objective"][0]
    completer.set_params(warm_start=True).fit(-X)
    assert completer.history_["objective"][0] == cold
    others = {"width": 3, "layers": (2, 2)}
    others = {k: v for k, v in others.items() if k in completer.get_params()}
    with pytest.raises(ValueError, match=r"now they are .* set warm_start=False"):
        completer.set_params(**others).fit(X)


@cut_short
def test_the_step_length_suits_the_data(X):
    """It does not stay that of data that were a hundred times smaller."""
    params = {"scaling": None, "early_stopping": False, "max_iter": 100}
    completer = make(SNNCompleter, **params, warm_start=True).fit(X)
    warm = completer.fit(100 * X).history_["objective"][-1]
    cold = clone(completer).fit(100 * X).history_["objective"][-1]
    assert warm < 1.5 * cold


def test_singular_values_of_a_product():
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    right = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    left[:, 3] = left[:, 0]
    svd = svd_of(LowRank(left, right))
    assert svd.rank == 3
    assert torch.allclose(svd.dense(), left @ right.mT)
    assert torch.allclose(svd.U.mT @ svd.U, torch.eye(3, dtype=torch.float64))
    assert svd_of(LowRank(left[:, :0], right[:, :0])).rank == 0
