"""Properties of single methods beyond the common contract."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import low_rank, make
from sklearn.base import clone
from sklearn.datasets import load_wine

from skmc import (
    AIRCompleter,
    DMFCompleter,
    Entries,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
    patterns,
)
from skmc.datasets import load_photo
from skmc.metrics import relative_error, rmse
from skmc.solvers import HardRank

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short


@pytest.fixture(scope="module")
def picture():
    """40 x 30 of a flower, 30 % and a patch hidden."""
    truth = load_photo("flower")[80:120, 110:140]
    hidden = patterns.random(truth, 0.3, random_state=0)
    hidden |= patterns.patch(truth, [(10, 15, 8, 14)])
    return truth, np.ma.masked_array(truth, hidden)


def error(completer, picture):
    truth, X = picture
    return relative_error(completer.fit_transform(X), truth, X.mask)


def test_air_learns_laplacians(picture):
    completer = make(AIRCompleter, max_iter=300, blocks={5: 0.5}).fit(picture[1])
    shapes = {name: L.shape for name, L in completer.laplacians_.items()}
    assert shapes == {"rows": (40, 40), "columns": (30, 30), "blocks5": (48, 48)}
    for L in completer.laplacians_.values():
        np.testing.assert_allclose(L, L.T)
        np.testing.assert_allclose(L.sum(0), 0, atol=1e-12)
        assert np.linalg.eigvalsh(L).min() > -1e-10
    # Neighbouring rows of a smooth picture resemble each other most.
    A = np.diag(np.diag(completer.laplacians_["rows"])) - completer.laplacians_["rows"]
    assert np.median(np.abs(A.argmax(0) - np.arange(40))) <= 2


def test_air_switches_terms_off(picture):
    completer = make(AIRCompleter, lambda_row=0.0, max_iter=20).fit(picture[1])
    assert set(completer.laplacians_) == {"columns"}


@pytest.mark.parametrize("shape", [(30, 20), (60, 40), (200, 100)])
def test_air_recovers_low_rank(shape):
    """Its energies alone have an error of .3 to .5 there."""
    rng = np.random.RandomState(1)
    truth = rng.randn(shape[0], 3) @ rng.randn(3, shape[1]) + 5 * rng.randn(shape[1])
    hidden = rng.uniform(size=shape) < 0.4
    air = AIRCompleter(random_state=0, device="cpu").fit(
        np.where(hidden, np.nan, truth)
    )
    assert relative_error(air.reconstruction_, truth, hidden) < 0.003
    assert air.lambda_row_ == air.lambda_col_ == 0
    assert air.max_iter_ <= 400
    assert air.laplacians_ == {}


def test_air_keeps_its_energies_on_a_picture(picture):
    """The trials leave no trace in the fit."""
    chosen = AIRCompleter(random_state=0, device="cpu")
    given = clone(chosen).set_params(lambda_row=0.25, lambda_col=0.25)
    for air in (chosen, given):
        air.fit(picture[1])
        assert air.lambda_row_ == 0.25
    np.testing.assert_array_equal(chosen.reconstruction_, given.reconstruction_)
    energy = chosen.history_["energy_rows"]
    assert 0 < energy[-1] < 0.3 * energy.max()


def test_air_falls_back_to_the_means():
    X = np.random.RandomState(0).randn(150, 10)
    hidden = np.random.RandomState(1).uniform(size=X.shape) < 0.3
    air = AIRCompleter(random_state=0, device="cpu").fit(np.where(hidden, np.nan, X))
    assert np.std(air.reconstruction_[hidden]) < 0.2


def test_air_with_graphs_or_a_number_compares_nothing(picture):
    graph = np.eye(40, k=1) + np.eye(40, k=-1)
    air = make(AIRCompleter, max_iter=20)
    assert air.fit(picture[1], row_graph=graph).lambda_row_ == 0.25
    assert (
        make(AIRCompleter, lambda_row=0.1, max_iter=20).fit(picture[1]).lambda_col_
        == 0.25
    )


@pytest.mark.parametrize("adjacency", ["row", "global"])
def test_learned_similarities_help_on_a_picture(adjacency, picture):
    air = AIRCompleter(adjacency=adjacency, random_state=0, device="cpu")
    dmf = DMFCompleter(random_state=0, device="cpu")
    assert error(air, picture) < 0.92 * error(dmf, picture)


def test_air_recovers_low_rank_where_it_hardly_regularizes(recovery):
    truth, hidden = recovery
    deep = {"depth": 3, "lr": 0.01, "max_iter": 1000}
    completer = AIRCompleter(1e-3, 1e-3, random_state=0, **deep)
    completed = completer.fit_transform(np.ma.masked_array(truth, hidden))
    assert relative_error(completed, truth, hidden) < 0.05


def test_fixed_laplacians_are_used_and_returned(picture):
    first = make(AIRCompleter, max_iter=300).fit(picture[1])
    second = make(AIRCompleter, fixed_laplacians=first.laplacians_, max_iter=300)
    # Figure 5 of the paper: fixed ones help, learned ones help more.
    plain = make(AIRCompleter, lambda_row=0, lambda_col=0, max_iter=300)
    assert error(first, picture) < error(second, picture) < error(plain, picture)
    for name, L in first.laplacians_.items():
        np.testing.assert_allclose(second.laplacians_[name], L)
    half = make(
        AIRCompleter, fixed_laplacians={"rows": first.laplacians_["rows"]}, max_iter=20
    ).fit(picture[1])
    np.testing.assert_allclose(half.laplacians_["rows"], first.laplacians_["rows"])
    assert not np.allclose(half.laplacians_["columns"], first.laplacians_["columns"])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fixed_laplacians": {"cols": np.eye(30)}}, r"names \['cols'\], but the tran"),
        (
            {"fixed_laplacians": {"rows": np.eye(3)}},
            r"definite of shape \(40, 40\)",
        ),
        ({"fixed_laplacians": {"rows": -np.eye(40)}}, "positive semi-definite"),
        ({"blocks": {4: np.inf}}, "weights >= 0, got 4: inf"),
        ({"blocks": {0: 1.0}}, "blocks maps sizes in"),
        ({"blocks": {31: 1.0}}, r"min\(n_samples, n_features\)=30"),
        ({"blocks": {4: -1.0}}, "weights >= 0, got 4: -1.0"),
    ],
)
def test_air_refuses(params, message, picture):
    with pytest.raises(ValueError, match=message):
        make(AIRCompleter, **params).fit(picture[1])


@pytest.mark.parametrize("regularizer", ["tv", "dirichlet"])
def test_regularizers_help_on_a_picture(regularizer, picture):
    plain = make(DMFCompleter, max_iter=1000)
    assert error(plain.set_params(regularizer=regularizer), picture) < 0.9 * error(
        plain.set_params(regularizer=None), picture
    )


def ring(k):
    A = np.roll(np.eye(k), 1, 0)
    return A + A.T


@pytest.mark.parametrize("cls", [DMFCompleter, AIRCompleter])
def test_graphs_given_by_the_user(picture, cls):
    rows, cols = ring(40), ring(30)
    completer = make(cls, regularizer="dirichlet")
    expected = completer.fit(picture[1], row_graph=rows, col_graph=cols)
    loops = make(cls, regularizer="dirichlet").fit(
        picture[1],
        row_graph=sp.csr_array(3 * rows + np.eye(40)),
        col_graph=cols + 7 * np.eye(30),
    )
    for name, A in (("rows", rows), ("columns", cols)):
        L = loops.laplacians_[name]
        L = L.toarray() if sp.issparse(L) else L
        np.testing.assert_allclose(L, np.eye(len(A)) - A / 2, atol=1e-12)
    whole = loops.reconstruction_
    np.testing.assert_allclose(whole, expected.reconstruction_, atol=1e-9)
    plain = make(cls, regularizer="dirichlet").fit(picture[1])
    assert np.abs(whole - plain.reconstruction_).max() > 1e-6
    for bad, message in (
        (np.triu(rows), "row_graph is not symmetric"),
        (-rows, "row_graph holds -1.0"),
        (rows[:5], "row_graph has shape"),
    ):
        with pytest.raises(ValueError, match=message):
            completer.fit(picture[1], row_graph=bad)


def test_ineffective_graphs_are_refused(picture):
    with pytest.raises(ValueError, match="row_graph has no effect with regularizer="):
        make(DMFCompleter).fit(picture[1], row_graph=ring(40))
    fixed = make(AIRCompleter, fixed_laplacians={"rows": np.eye(40)})
    with pytest.raises(ValueError, match="two Laplacians of the rows"):
        fixed.fit(picture[1], row_graph=ring(40))


def test_svd_chooses_a_rank():
    rng = np.random.RandomState(0)
    truth = low_rank(80, 50, rank=4) + 0.3 * rng.randn(80, 50)
    X = np.ma.masked_array(truth, patterns.random(truth, 0.3, random_state=0))
    # Standardised columns have means of their own, which may cost one rank more.
    assert make(SVDCompleter, max_iter=300).fit(X).rank_ in (4, 5)
    with pytest.raises(
        ValueError, match=r"rank=51 is above min\(n_samples, n_features"
    ):
        make(SVDCompleter, rank=51).fit(X)


def test_the_first_ranks_may_be_uninformative():
    """With eight equal components and 70 % hidden, ranks 2 and 3 are worse than 1."""
    rng = np.random.RandomState(19)
    truth = rng.randn(120, 8) @ rng.randn(8, 80)
    X = np.ma.masked_array(truth, rng.rand(*truth.shape) < 0.7)
    assert make(SVDCompleter, scaling="global", max_iter=5).fit(X).rank_ == 8


def test_width_bounds_the_rank(picture):
    own = make(DMFCompleter, width=2, scaling=None).fit(picture[1]).reconstruction_
    assert np.linalg.matrix_rank(own, tol=1e-8) == 2


def test_interrupting_the_choice_of_a_rank(picture, monkeypatch):
    steps, step = [], HardRank.step

    def interrupted(self, data, state):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, data, state)

    monkeypatch.setattr(HardRank, "step", interrupted)
    completer = make(SVDCompleter)
    with pytest.raises(KeyboardInterrupt):
        completer.fit(picture[1])
    assert len(steps) == 3
    assert completer.status_ == "interrupted"
    assert np.isfinite(completer.transform(picture[1])).all()


def test_laplacians_that_do_not_fit_in_memory_are_named(picture, monkeypatch):
    monkeypatch.setattr("skmc.completers._laplacians.memory_of", lambda device: 10**5)
    with pytest.raises(MemoryError, match=r"The Laplacian of 40 rows .*'auto'.*lambda"):
        make(AIRCompleter, neighbors=None).fit(picture[1])
    with pytest.raises(MemoryError, match=r"The Laplacian of 40 rows .*AIRCompleter"):
        make(DMFCompleter, regularizer="dirichlet").fit(picture[1])


def kinds():
    """One matrix of each kind that people bring; the second value is the bound."""
    rng = np.random.RandomState(0)
    users, films = rng.randn(100, 3), rng.randn(80, 3)
    groups = users[rng.randint(12, size=100)] @ films[rng.randint(10, size=80)].T
    ratings = np.clip(np.round(3 + groups), 1, 5)
    targets = (groups > np.quantile(groups, 0.9)).astype(float)
    return {
        "image": (load_photo("flower")[60:160, 100:200], 0.3),
        "ratings": (ratings, 0.6),
        "drug-target": (targets, 0.3),
        "table": (load_wine().data, 0.2),
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_air_is_good_without_tuning(kind):
    """Within 5 % of the best of column means, nearest rows and a low-rank fit."""
    truth, fraction = kinds()[kind]
    truth = truth / np.where(truth.std(0) > 0, truth.std(0), 1.0)
    errors = dict.fromkeys(("air", "mean", "knn", "svd"), 0.0)
    for seed in range(3):
        hidden = patterns.random(truth, fraction, spare=True, random_state=seed)
        cells = np.where(hidden, np.nan, truth)
        X = Entries.of_matrix(cells, one_unit=kind != "table")
        for name, completer in {
            "air": AIRCompleter(random_state=seed, device="cpu"),
            "mean": MeanCompleter(),
            "knn": KNNCompleter(device="cpu"),
            "svd": SVDCompleter(random_state=seed, device="cpu"),
        }.items():
            errors[name] += rmse(completer.fit_transform(X), truth, hidden)
    assert errors.pop("air") < max(1e-3, 1.05 * min(errors.values()))
