"""Categories, which several columns of a matrix represent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import KINDS
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.tree import DecisionTreeRegressor

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    TreesCompleter,
)
from skmc.base import BaseCompleter
from skmc.cells import Entries, SparseObserved
from skmc.completers import completer_classes
from skmc.completers.auto._candidates import CellImputer
from skmc.exceptions import ColumnsLeftWarning

N = 300


def labeled(names, noise=0.3):
    """Two numbers and a category that depends on them, with missing cells."""
    rng = np.random.RandomState(0)
    Z = rng.randn(N, 2)
    angle = 2 * np.pi * np.arange(len(names)) / len(names)
    corners = np.stack([np.cos(angle), np.sin(angle)])
    kind = (Z @ corners + noise * rng.randn(N, len(names))).argmax(1)
    truth = pd.DataFrame({"x": Z[:, 0], "kind": np.array(names)[kind], "y": Z[:, 1]})
    truth["kind"] = truth["kind"].astype(object)
    hidden = rng.rand(*truth.shape) < 0.25
    hidden[hidden.all(1), 0] = False
    return truth, truth.mask(hidden)


def stack(*names):
    return AutoCompleter(list(names), random_state=0)


BY_COLUMN = {
    "trees": TreesCompleter(random_state=0),
    "rounds of trees": TreesCompleter(max_iter=3, random_state=0),
    "linear and trees": TreesCompleter(linear=True, random_state=0),
    "boosting": TreesCompleter("boosting", random_state=0),
    "linear and boosting": TreesCompleter("boosting", linear=True, random_state=0),
    "own regressor": TreesCompleter(
        DecisionTreeRegressor(min_samples_leaf=10), random_state=0
    ),
    "chained": ChainedCompleter(random_state=0),
    "Gaussian": GaussianCompleter(),
    "neighbors": KNNCompleter(),
    "stack of trees": stack("trees-rounds"),
    "stack of chained": stack("chained"),
    "stack of linear and trees": stack("trees-linear"),
    "stack of an imputer": AutoCompleter({"imputer": IterativeImputer()}),
}


@pytest.mark.parametrize(
    ("inner", "names"),
    [
        *((inner, "abcd") for inner in BY_COLUMN if not inner.startswith("stack")),
        *((inner, ["no", "yes"]) for inner in ("trees", "Gaussian", "neighbors")),
        *(
            pytest.param(inner, "abcd", marks=pytest.mark.long)
            for inner in BY_COLUMN
            if inner.startswith("stack")
        ),
    ],
)
def test_a_category_is_told_from_the_other_columns(inner, names):
    """Its own columns are no inputs: they are missing where it is."""
    truth, X = labeled(list(names))
    hidden = X["kind"].isna()
    found = MixedCompleter(BY_COLUMN[inner]).fit_transform(X)["kind"]
    mode = X["kind"].mode()[0]
    right, guess = (found == truth["kind"])[hidden], (truth["kind"] == mode)[hidden]
    # The other columns of the row are missing, too, in every fourth.
    assert right.mean() > guess.mean() + 0.15


def test_trees_draw_categories_by_their_frequencies():
    rng = np.random.RandomState(0)
    kind = rng.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1])
    x = rng.randn(3000) + 2 * (kind == "b")
    hidden = rng.rand(3000) < 0.4
    table = pd.DataFrame({"kind": np.where(hidden, None, kind), "x": x})
    completer = MixedCompleter(TreesCompleter(random_state=0)).fit(table)
    drawn = np.array([draw["kind"] for draw in completer.sample(table, 10, 0)])
    for value, share in {"a": 0.6, "b": 0.3, "c": 0.1}.items():
        assert (drawn[:, hidden] == value).mean() == pytest.approx(share, abs=0.03)
    # The draws depend on x as the category does.
    high = hidden & (x > 1.5)
    share = (kind[high] == "b").mean()
    assert (drawn[:, high] == "b").mean() == pytest.approx(share, abs=0.05)


def test_sparse_cells_are_held_out_without_a_column_of_the_category():
    _, X = labeled(["a", "b", "c"])
    completer = MixedCompleter(SVDCompleter(rank=1)).fit(X)
    entries = Entries.of_matrix(completer.completer_._fitted.index.cells)
    cells = entries.rows, entries.cols, entries.values, entries.matrix_shape
    data = SparseObserved.of(*cells)
    layout = completer._table.layout
    train, held_out = data.split(0.1, 0, layout.first_columns)
    assert len(train.values) + len(held_out.values) == len(data.values)
    assert len(held_out.values) == pytest.approx(0.1 * len(data.values), rel=0.3)
    mask = torch.zeros(X.shape[0], 5, dtype=bool)
    mask[held_out.rows, held_out.cols] = True
    assert (mask[:, 1:4] == mask[:, [1]]).all() and (mask[:, 0] != mask[:, 1]).any()


@pytest.mark.parametrize("marginals", ["normal", "copula"])
def test_a_gaussian_tells_an_observed_category_from_the_other_columns(marginals):
    truth, X = labeled(["a", "b", "c"])
    completer = MixedCompleter(GaussianCompleter(marginals=marginals)).fit(X)
    inner, cells = completer.completer_, completer._source(X).matrix
    columns = slice(1, 4)
    rest = cells.copy()
    rest[:, columns] = np.nan
    seen = ~np.isnan(cells[:, 1]) & ~np.isnan(cells[:, [0, 4]]).all(1)
    expected = inner._fitted.predict(rest, everywhere=True)[seen, columns]
    assert inner.reconstruction_[seen, columns] == pytest.approx(expected)
    # Other cells are told from the category.
    x = np.isnan(cells[:, 0]) & ~np.isnan(cells[:, 1])
    without = inner._fitted.predict(rest, everywhere=True)[x, 0]
    off = np.abs(
        inner.reconstruction_[x, 0] - truth["x"][x].to_numpy() / truth["x"].std()
    )
    assert off.mean() < np.abs(without - truth["x"][x] / truth["x"].std()).mean()


def test_hyper_parameters_are_chosen_without_a_column_of_the_hidden_category():
    _, X = labeled(["a", "b", "c"])
    held_out = []

    class Watched(SVDCompleter):
        def _choose(self, data, trials):
            held_out.append(trials.cells[1].mask.numpy())
            return super()._choose(data, trials)

    completer = MixedCompleter(Watched()).fit(X)
    (hidden, *_), cells = held_out, completer._source(X).matrix
    assert hidden.any() and not hidden[np.isnan(cells)].any()
    assert (hidden[:, 1:4] == hidden[:, [1]]).all()
    assert (hidden[:, 1] != hidden[:, 0]).any()


def test_what_a_matrix_represents_is_said_by_the_data_and_not_by_the_completer():
    """A clone of a completer of a table differs in nothing from a new one."""
    _, X = labeled(["a", "b", "c"])
    plain = set(vars(KNNCompleter()))
    fitted = MixedCompleter(KNNCompleter()).fit(X).completer_
    assert set(vars(clone(fitted))) == plain
    matrix = MixedCompleter(SVDCompleter()).fit(X)._source(X).matrix
    alone = KNNCompleter(scaling=None)
    np.testing.assert_array_equal(
        clone(fitted).fit_transform(matrix), alone.fit_transform(matrix)
    )
    one = CellImputer.like(IterativeImputer(max_iter=3), np.array([0, 1, 1]))
    again = clone(one)
    assert again._first_columns is one._first_columns and again.max_iter == 3


def noise(n=400):
    """A category that nothing explains, with a rare level."""
    rng = np.random.RandomState(5)
    kind = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.25, 0.2, 0.05])
    truth = pd.DataFrame({"x": rng.randn(n), "kind": kind, "y": rng.randn(n)})
    truth["kind"] = truth["kind"].astype(object)
    hidden = rng.rand(n, 3) < 0.25
    hidden[hidden.all(1), 0] = False
    return truth, truth.mask(hidden)


TABLES = {
    "explained": labeled(["a", "b", "c", "d"]),
    "certain": labeled(["a", "b"], noise=0.0),
    "noise": noise(),
}


def completers():
    """Every completer that takes a matrix, with few iterations."""
    for cls in completer_classes():
        if not issubclass(cls, BaseCompleter):
            continue
        inner = cls()
        few = {"random_state": 0, "max_iter": 30}
        own = {k: few[k] for k in few if k in inner.get_params()}
        if isinstance(inner, AutoCompleter):
            own["candidates"] = ["knn", "gaussian", "chained", "svd"]
        yield pytest.param(inner.set_params(**own), id=cls.__name__)


def log_loss(completer, truth, X):
    """Mean negative logarithms of the probabilities, and of the shares."""
    proba, levels = completer.predict_proba(X)["kind"], completer.categories_["kind"]
    hidden = X["kind"].isna().to_numpy()
    true = np.array([levels.index(value) for value in truth["kind"]])[hidden]
    shares = X["kind"].value_counts(normalize=True)[levels].to_numpy()
    own = proba[hidden][np.arange(len(true)), true]
    return -np.log(own).mean(), -np.log(shares[true]).mean()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("inner", "table"),
    [
        pytest.param(*each.values, table, id=f"{each.id}-{table}")
        for each in completers()
        for table in TABLES
        if table == "explained" or type(each.values[0]) in KINDS
    ],
)
def test_probabilities_are_not_worse_than_the_shares(inner, table):
    truth, X = TABLES[table]
    completer = MixedCompleter(inner).fit(X)
    found, shares = log_loss(completer, truth, X)
    assert found < shares + 0.06
    # The completion is the most probable category.
    proba, levels = completer.predict_proba(X)["kind"], completer.categories_["kind"]
    best = np.array(levels, object)[proba.argmax(1)]
    assert (best == completer.transform(X)["kind"]).all()


@pytest.mark.long
def test_a_linear_model_that_has_seen_the_rows_does_not_calibrate():
    """Among as many columns of noise as rows, it would seem to explain a category."""
    rng = np.random.RandomState(1)
    truth = pd.DataFrame(rng.randn(60, 60)).rename(columns=str)
    truth["kind"] = np.array(["a", "b", "c"], object)[rng.randint(3, size=60)]
    X = truth.copy()
    X.loc[rng.rand(60) < 0.4, "kind"] = None
    inner = TreesCompleter(n_estimators=5, linear=True, random_state=0)
    found, shares = log_loss(MixedCompleter(inner).fit(X), truth, X)
    assert found < shares + 0.06


def test_votes_of_neighbors_leave_no_category_impossible():
    truth, X = TABLES["explained"]
    completer = MixedCompleter(KNNCompleter()).fit(X)
    assert completer.predict_proba(X)["kind"][X["kind"].isna()].min() > 0
    found, shares = log_loss(completer, truth, X)
    assert found < 0.8 * shares


@pytest.mark.long
def test_weights_of_categories_are_those_of_their_log_score():
    """The member that tells categories differs from the one that tells numbers."""
    rng = np.random.RandomState(0)
    Z = rng.randn(600, 2)
    ring = np.digitize(np.hypot(*Z.T), [0.8, 1.5])
    truth = pd.DataFrame({f"x{k}": Z @ rng.randn(2) for k in range(6)})
    truth["kind"] = np.array(["in", "on", "out"], object)[ring]
    X = truth.mask(rng.rand(*truth.shape) < 0.2)
    inner = AutoCompleter(["gaussian", "chained"], random_state=0)
    completer = MixedCompleter(inner).fit(X)
    columns = completer.completer_.column_weights_
    assert columns["gaussian"][:6].min() > 0.8
    assert columns["chained"][6:].min() > 0.8
    assert np.ptp(columns["gaussian"][6:]) == 0  # one weight for a category
    hidden = X["kind"].isna()
    drawn = np.array([draw["kind"] for draw in completer.sample(X, 20, 0)])[:, hidden]
    for name, share in truth["kind"][hidden].value_counts(normalize=True).items():
        assert (drawn == name).mean() == pytest.approx(share, abs=0.05)


def test_a_wordy_column_has_its_most_frequent_categories():
    rng = np.random.RandomState(0)
    words = np.minimum(rng.randint(0, 400, 9000), rng.randint(0, 400, 9000))
    table = pd.DataFrame({"x": rng.randn(9000), "word": [f"w{k}" for k in words]})
    table.loc[::50, "word"] = None
    completer = MixedCompleter(MeanCompleter(), categorical=["word"])
    with pytest.warns(
        ColumnsLeftWarning, match="300 most frequent categories of 'word'"
    ):
        completer.fit(table)
    count = table["word"].value_counts()
    kept = completer.categories_["word"]
    assert len(kept) == 300 and count[kept].min() >= count.drop(kept).max()
    with pytest.warns(ColumnsLeftWarning):
        again = completer.fit(table[::-1]).categories_["word"]
    assert kept == again
    completed = completer.transform(table)
    assert completed["word"].notna().all()
    assert completed["word"].where(table["word"].notna()).equals(table["word"])
