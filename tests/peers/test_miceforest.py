"""Properties that miceforest tests, of draws by chained equations for tables."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmc import ChainedCompleter, MixedCompleter
from skmc.persistence import load, save

pytestmark = pytest.mark.filterwarnings("ignore")


def flowers(seed):
    """Measurements, a species, a coin that depends on it, a noise, a small integer."""
    rng, iris = np.random.RandomState(seed), load_iris()
    frame = pd.DataFrame(iris.data, columns=["sl", "sw", "pl", "pw"])
    frame["sw"] = frame["sw"].astype("float32")
    frame["species"] = pd.Categorical.from_codes(iris.target, ["A", "B", "C"])
    likely = np.where(iris.target == 0, 0.9, 0.1)
    frame["coin"] = pd.Categorical(np.where(rng.rand(150) < likely, "HEAD", "TAIL"))
    frame["noise"] = rng.rand(150) < 0.5
    frame["noise"] = frame["noise"].astype("boolean")
    frame["size"] = frame["sl"].round().astype("UInt8")
    hidden = rng.rand(*frame.shape) < 0.2
    hidden[:, 3] = False  # a column without a missing cell
    return frame, frame.mask(hidden).astype(frame.dtypes), hidden


@pytest.fixture(scope="module")
def fitted():
    truth, holes, hidden = flowers(0)
    completer = MixedCompleter(ChainedCompleter(n_draws=8, random_state=0))
    before = holes.copy()
    completer.fit(holes)
    pd.testing.assert_frame_equal(holes, before)
    return completer, truth, holes, hidden


def check_completed(found, holes):
    """Nothing is missing, types are kept, and observed cells are unchanged."""
    assert list(found.dtypes) == list(holes.dtypes)
    assert not found.isna().any().any()
    for name in holes:
        seen = holes[name].notna()
        assert (found[name][seen] == holes[name][seen]).all()


def test_tables_are_completed_in_their_types(fitted):
    completer, _, holes, _ = fitted
    check_completed(completer.transform(holes), holes)
    for draw in completer.sample(holes, 2, random_state=0):
        check_completed(draw, holes)


def test_draws_differ_and_their_seed_determines_them(fitted):
    completer, _, holes, _ = fitted
    first, second = completer.sample(holes, 2, random_state=0)
    assert not first.equals(second)
    again = completer.sample(holes, 2, random_state=0)
    pd.testing.assert_frame_equal(again[0], first)
    pd.testing.assert_frame_equal(again[1], second)
    other = completer.sample(holes, 1, random_state=1)[0]
    assert not other.equals(first)


def test_fits_with_one_seed_are_equal(fitted):
    completer, _, holes, _ = fitted
    again = MixedCompleter(ChainedCompleter(n_draws=8, random_state=0)).fit(holes)
    pd.testing.assert_frame_equal(again.transform(holes), completer.transform(holes))


def test_new_rows_with_other_missing_columns(fitted):
    completer, truth, holes, _ = fitted
    some = holes.head(20).reset_index(drop=True)
    empty = some.copy()
    for name in ("species", "pw"):  # one was never missing
        empty[name] = pd.Series(index=empty.index, dtype=holes[name].dtype)
    full = some.copy()
    full[["species", "size"]] = truth[["species", "size"]].head(20)
    for rows in (some, empty, full):
        check_completed(completer.transform(rows), rows)
        check_completed(completer.sample(rows, 1, random_state=0)[0], rows)


def test_a_row_is_completed_whatever_the_others_are(fitted):
    completer, _, holes, _ = fitted
    whole = completer.transform(holes)
    order = np.random.RandomState(0).permutation(150)
    for rows in (order, [0, 1, 4, 7, 8, 10]):
        found = completer.transform(holes.iloc[rows])
        pd.testing.assert_frame_equal(found, whole.iloc[rows])


def test_saved_completers_go_on(fitted, tmp_path):
    completer, _, holes, _ = fitted
    save(completer, tmp_path / "chains.skmc")
    expected = completer.sample(holes, 1, random_state=0)[0]
    copies = (
        load(tmp_path / "chains.skmc"),
        pickle.loads(pickle.dumps(completer)),
    )
    for again in copies:
        found = again.sample(holes, 1, random_state=0)[0]
        pd.testing.assert_frame_equal(found, expected)


def test_completions_keep_to_observed_values(fitted):
    """With donors, every drawn number is one of its column."""
    completer, _, holes, _ = fitted
    draw = completer.sample(holes, 1, random_state=0)[0]
    for name in ("sl", "sw", "pl"):
        assert np.isin(draw[name], holes[name].dropna()).all()


def test_completions_are_better_than_means_and_shares():
    for seed in range(3):
        truth, holes, hidden = flowers(seed)
        completer = MixedCompleter(ChainedCompleter(random_state=0)).fit(holes)
        found, draw = completer.transform(holes), completer.sample(holes, 1, 0)[0]
        chance = completer.predict_proba(holes)
        for name in ("sl", "pl"):
            out = hidden[:, list(truth).index(name)]
            means = ((truth[name] - holes[name].mean())[out] ** 2).sum()
            assert ((truth[name] - draw[name])[out] ** 2).sum() < means
            assert ((truth[name] - found[name])[out] ** 2).sum() < 0.5 * means
            assert np.corrcoef(truth[name][out], draw[name][out])[0, 1] ** 2 > 0.4
        for name in ("species", "coin"):
            out = hidden[:, list(truth).index(name)]
            shares = holes[name].value_counts(normalize=True)
            right = truth[name][out]
            random = (shares * right.value_counts(normalize=True)).sum()
            assert (found[name][out] == right).mean() > random
            scores = np.asarray(chance[name])[out]
            scores = scores if name == "species" else scores[:, 1]
            assert roc_auc_score(right, scores, multi_class="ovr") > 0.6


def test_chains_in_a_pipeline():
    measures = [flowers(seed)[1][["sl", "sw", "pl", "pw"]] for seed in (0, 1)]
    chains = ChainedCompleter(n_draws=4, random_state=0)
    model = make_pipeline(chains, StandardScaler())
    assert np.isfinite(model.fit_transform(measures[0])).all()
    assert np.isfinite(model.transform(measures[1])).all()
