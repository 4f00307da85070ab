"""Batched fits equal separate fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, low_rank, make

from skmc import (
    AIRCompleter,
    GradualNSRCompleter,
    LinkedFactorizationCompleter,
    SNNCompleter,
    SVDCompleter,
    patterns,
)
from skmc.cells import SparseObserved
from skmc.completers.soft_impute import SoftImpute
from skmc.loop import Status
from skmc.model_selection import fit_batch
from skmc.solvers.narrowing import modules_in

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short

VARIANTS = {
    "AIRCompleter": [
        {},
        {
            "early_stopping": True,
            "n_iter_no_change": 25,
            "lr": 0.02,
            "scaling": "global",
        },
        {"early_stopping": True, "n_iter_no_change": 25, "lr": 0.02, "depth": 1},
        {"adjacency": "global", "blocks": {5: 0.1}},
    ],
    "DMFCompleter": [
        {},
        {"regularizer": "tv", "n_iter_no_change": 50, "lr": 0.02},
        {"regularizer": "dirichlet", "early_stopping": False},
    ],
    "SNNCompleter": [
        {"max_iter": 100},
        {"init": "spectral", "max_iter": 100},
        {"layers": (2, 2), "max_iter": 50},
    ],
    "LinkedFactorizationCompleter": [{}],
    "NSRCompleter": [{}, {"batch_size": 8, "max_iter": 100}],
    "AutoencoderCompleter": [
        {"n_iter_no_change": 25},
        {"hidden": (9, 4), "batch_size": 8, "max_iter": 100, "early_stopping": False},
    ],
}
# Values for what these completers would choose by fits of their own.
GIVEN = {
    "rank": 3,
    "scaling": "columns",
    "lambda_ridge": 0.5,
    "lambda_decoder": 0.5,
    "lambda_weights": 0.3,
    "lambda_row": 0.5,
    "lambda_col": 0.5,
}
BATCHED = [cls for cls in COMPLETERS if cls.completer_tags.batched]
CASES = [
    (cls, params) for cls in BATCHED for params in VARIANTS.get(cls.__name__, [{}])
]


@pytest.mark.parametrize(("cls", "params"), CASES)
def test_batched_fits_equal_separate_fits(cls, params, device):
    truth = low_rank(20, 15, rank=3)
    hidden = [patterns.random(truth, 0.3, random_state=seed) for seed in range(3)]
    Xs = [np.ma.masked_array(truth, h) for h in hidden]

    def grid():
        params_of = {**GIVEN, "max_iter": 250, "device": device, **params}
        first = [name for name in cls.completer_tags.batched if "lambda_" in name][:1]
        return [
            make(cls, **params_of).set_params(
                random_state=seed, **dict.fromkeys(first, weight)
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
        fit_batch([AIRCompleter(1.0, 1.0, depth=3), AIRCompleter(1.0, 1.0)], [X, X])
    with pytest.raises(ValueError, match="cannot share a batch"):  # other steps
        fit_batch([AIRCompleter(1.0, 1.0), AIRCompleter(0.0, 0.0)], [X, X])
    with pytest.raises(ValueError, match="Xs must share one shape"):
        fit_batch([AIRCompleter(1.0, 1.0), AIRCompleter(1.0, 1.0)], [X, X[:4]])
    with pytest.raises(ValueError, match="AIRCompleter chooses lambda_row and lambda_"):
        fit_batch([AIRCompleter()], [X])
    with pytest.raises(ValueError, match="SVDCompleter has no batched solve"):
        fit_batch([SVDCompleter()], [X])
    linked = LinkedFactorizationCompleter
    for given, what in (
        ({}, "rank and lambda_ridge and scaling"),
        ({"rank": 2}, "lambda_ridge and scaling"),
        ({"rank": 2, "scaling": "columns"}, "lambda_ridge"),
    ):
        with pytest.raises(ValueError, match=f"Completer chooses {what} by fits of"):
            fit_batch([linked(**given)], [X])
    with pytest.raises(ValueError, match="rank=9 is above min"):
        fit_batch([linked(9, 1.0, scaling="columns")], [X])
    with pytest.raises(ValueError, match="GradualNSRCompleter has no batched solve"):
        fit_batch([GradualNSRCompleter()], [X])


def test_given_parameters_are_used():
    X = low_rank(20, 15)
    grid = [
        LinkedFactorizationCompleter(2, w, max_iter=25, scaling="columns")
        for w in (0.1, 10.0)
    ]
    fitted = fit_batch(grid, [X, X])
    assert [(c.rank_, c.lambda_ridge_) for c in fitted] == [(2, 0.1), (2, 10.0)]


@pytest.mark.parametrize("cls", BATCHED)
def test_batches_of_single_precision(cls):
    X = low_rank(20, 15, rank=3).astype(np.float32)
    batch, loop = ([make(cls, **GIVEN, max_iter=25) for _ in range(2)] for _ in "ab")
    together = fit_batch(batch, [X, 2 * X])
    for ours, completer, given in zip(together, loop, [X, 2 * X], strict=True):
        theirs = completer.fit(given)
        assert ours.reconstruction_.dtype == np.float32
        np.testing.assert_allclose(
            ours.reconstruction_, theirs.reconstruction_, atol=1e-2
        )


def test_laplacians_are_compared_by_their_contents():
    X = low_rank(40, 5)
    fixed = [{"rows": sp.csr_array(k * np.eye(40))} for k in (1, 7)]
    with pytest.raises(ValueError, match="cannot share a batch"):
        fit_batch([AIRCompleter(1.0, 1.0, fixed_laplacians=L) for L in fixed], [X, X])


def test_batches_are_validated_like_fits():
    X = low_rank(6, 6)
    with pytest.raises(ValueError, match="'lambda_row' parameter of AIRCompleter"):
        fit_batch([AIRCompleter(-1.0)], [X])
    assert fit_batch([], []) == []
    diagonal = np.where(np.eye(6, dtype=bool), X, np.nan)
    stopping = [make(AIRCompleter, **GIVEN, early_stopping=True) for _ in range(2)]
    with pytest.raises(ValueError, match="cannot hold out a cell in some matrices"):
        fit_batch(stopping, [X, diagonal])


def three(cls, which=(0, 1, 2), **params):
    """The solve of fits with three seeds, before its first step."""
    X = low_rank(20, 15, rank=3)
    params = {**GIVEN, "early_stopping": False, "max_iter": 100, "tol": 0, **params}
    members = [make(cls, **params).set_params(random_state=seed) for seed in which]
    prepared = [member.batch_prepare(X) for member in members]
    return members[0].batch_run(members, prepared, which)


@pytest.mark.parametrize("cls", BATCHED)
def test_finished_members_are_removed(cls, device):
    """The other members are not affected, and the history has NaN for dropped ones."""
    together = three(cls, device=device)
    alone = three(cls, [1], device=device)
    together.stop = [Second(device)]
    together.advance(100)
    alone.advance(100)
    assert together.answers.members.tolist() == [1]
    solution = together.solution()
    assert solution.n_iter.tolist() == [25, 100, 25]
    assert solution.status == [Status.STOPPED, Status.MAX_ITER, Status.STOPPED]
    torch.testing.assert_close(solution.X[1], alone.solution().X[0], atol=1e-9, rtol=0)
    early = three(cls, device=device)
    early.advance(25)
    torch.testing.assert_close(solution.X[[0, 2]], early.solution().X[[0, 2]])
    expected = alone.solution().history["objective"][:, 0]
    objective = solution.history["objective"]
    torch.testing.assert_close(objective[:, 1], expected)
    assert objective.isnan().tolist() == [[False] * 3] + [[True, False, True]] * 3


@pytest.mark.parametrize("cls", [c for c in BATCHED if c is not SNNCompleter])
def test_a_member_that_diverges_does_not_affect_the_others(cls, device):
    """Its result is the best previous iterate."""
    batch, early, alone = (three(cls, device=device) for _ in range(3))
    early.advance(25)
    alone.advance(100)
    batch.advance(25)
    for module in modules_in(list(vars(batch.state).values()))[:1]:
        next(module.parameters()).data[1] = torch.nan
    batch.advance(100)
    solution = batch.solution()
    last = Status.MAX_ITER
    assert solution.status == [last, Status.DIVERGED, last]
    expected = alone.solution().X.clone()
    expected[1] = early.solution().X[1]
    torch.testing.assert_close(solution.X, expected, atol=1e-9, rtol=0)


class Second:
    """Only the second member of three goes on."""

    def __init__(self, device):
        self.goes_on = torch.tensor([False, True, False], device=device)

    def __call__(self, progress):
        return ~self.goes_on

    def select(self, members):
        self.goes_on = self.goes_on[members]


def test_solvers_report_that_members_cannot_be_removed():
    data = SparseObserved.of([0, 1], [1, 0], torch.tensor([1.0, 2.0]), (2, 2))
    solver = SoftImpute(1.0)
    with pytest.raises(NotImplementedError, match="SoftImpute solves for a single"):
        solver.select(solver.init(data), torch.tensor([0]))
