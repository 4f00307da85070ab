"""What every completer promises. A new completer is covered without editing this."""

from __future__ import annotations

import contextlib
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, CONTAINERS, fitted_on_small, low_rank, make
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmc import Entries, MaskedToNaN, patterns
from skmc.base import IterativeCompleter
from skmc.metrics import relative_error, rmse
from skmc.tables import TakesTables

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_completer = pytest.mark.parametrize("cls", COMPLETERS)
iterative = pytest.mark.parametrize(
    "cls", [cls for cls in COMPLETERS if issubclass(cls, IterativeCompleter)]
)


@pytest.mark.filterwarnings("ignore:.*no observed cell:UserWarning")
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.SkipTestWarning"
)  # array API inputs, which no completer claims to take
@parametrize_with_checks(
    [*(make(cls, max_iter=5) for cls in COMPLETERS), MaskedToNaN()]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@every_completer
def test_recovers_a_rank_two_matrix(cls, recovery, device):
    truth, hidden = recovery
    params = {"random_state": 0, "device": device}
    if "candidates" in cls().get_params():
        params["max_time"] = 10
    completer = cls(**{k: v for k, v in params.items() if k in cls().get_params()})
    completed = completer.fit_transform(np.ma.masked_array(truth, hidden))
    error = relative_error(completed, truth, hidden)
    assert error <= completer.completer_tags.recovers
    # ... and the claim is not an empty one.
    assert completer.completer_tags.recovers < 1.3


@every_completer
@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_mean_the_same(cls, container, small):
    truth, masked = small
    reference = fitted_on_small(cls)
    expected = reference.transform(masked)
    X = CONTAINERS[container](masked)
    completer = make(cls)
    np.testing.assert_allclose(completer.fit_transform(X), expected, atol=1e-10)
    np.testing.assert_allclose(completer.transform(X), expected, atol=1e-10)
    if container != "entries":
        assert completer.score(X) == pytest.approx(reference.score(masked), abs=1e-10)
        assert completer.score(X, truth) == pytest.approx(
            reference.score(masked, truth), abs=1e-10
        )


@every_completer
def test_masks_are_never_dropped(cls, small):
    """What lies under the mask, 1e9 here, has no influence on anything."""
    truth, masked = small
    other = np.ma.masked_array(np.where(masked.mask, -7.0, truth), masked.mask)
    a, b = fitted_on_small(cls), make(cls).fit(other)
    np.testing.assert_array_equal(a.transform(masked), b.transform(other))
    np.testing.assert_array_equal(a.transform(masked[3:5]), b.transform(other[3:5]))
    assert a.score(masked) == b.score(other)
    assert np.abs(a.transform(masked)).max() < 1e3


@every_completer
def test_stored_zeros_are_observed(cls):
    X = sp.coo_array(
        ([0.0, 1.0, 2.0, 3.0, 0.0, 5.0], ([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0])),
        shape=(3, 3),
    )
    completed = make(cls).fit_transform(X)
    assert completed[0, 0] == 0
    assert completed[2, 2] == 0
    assert np.isfinite(completed).all()


@every_completer
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_output_keeps_observed_cells_and_dtype(cls, dtype, small):
    truth, masked = small
    X = np.ma.masked_array(np.round(truth * 10).astype(dtype), masked.mask)
    completer = make(cls)
    completed = completer.fit_transform(X)
    assert completed.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert type(completed) is np.ndarray
    np.testing.assert_array_equal(completed[~X.mask], X.data[~X.mask])
    assert completer.reconstruction_.shape == X.shape
    assert completer.reconstruction_.dtype == completed.dtype
    own = make(cls, keep_observed=False).fit_transform(X)
    np.testing.assert_allclose(own[X.mask], completed[X.mask], rtol=1e-5)
    assert (np.abs(own - completed).max() > 0) != cls.completer_tags.interpolates


@every_completer
def test_transform_is_row_wise(cls, small):
    """Order and subsets do not matter, nor what other unseen rows come along."""
    _, masked = small
    completer = fitted_on_small(cls)
    whole = completer.transform(masked)
    order = np.random.RandomState(0).permutation(len(masked))
    shuffled = completer.transform(masked[order])
    np.testing.assert_allclose(shuffled, whole[order], rtol=1e-12)
    new = np.ma.masked_array(low_rank(9, 6, seed=5) + 3)
    new[::2, 1] = np.ma.masked
    together = completer.transform(np.ma.concatenate([new, masked]))
    for row in range(len(new)):
        np.testing.assert_allclose(
            completer.transform(new[row : row + 1])[0], together[row], rtol=1e-12
        )
    np.testing.assert_allclose(together[len(new) :], whole, rtol=1e-12)


@every_completer
def test_new_rows_are_completed_as_well_as_means_do(cls):
    """Rows of the same row space, not seen before."""
    truth = low_rank(90, 12, rank=1) + 2
    hidden = patterns.random(truth, 0.2, spare=True, random_state=3)
    X = np.ma.masked_array(truth, hidden)
    completer = make(cls, max_iter=400).fit(X[:60])
    error = relative_error(completer.transform(X[60:]), truth[60:], hidden[60:])
    means = np.broadcast_to(X[:60].mean(0).data, (30, 12))
    bound = relative_error(means, truth[60:], hidden[60:])
    assert error <= bound * (1.001 if cls.__name__ == "MeanCompleter" else 0.6)


@every_completer
def test_score(cls, small):
    truth, masked = small
    completer = fitted_on_small(cls)
    completed = completer.transform(masked)
    spread = truth.max() - truth.min()
    error = np.abs(completed - truth)[masked.mask].mean() / spread
    assert completer.score(masked, truth) == pytest.approx(-error)
    assert completer.score(masked, completed) == 0
    # Without the truth: a fixed choice of cells, and never those the row was fit on.
    assert completer.score(masked) == completer.score(masked) < 0
    assert completer.score(masked, np.arange(12)) == completer.score(masked)
    cells = Entries(masked)
    guess = completer.predict_entries(cells.rows, cells.cols)
    low, high = completer.data_range_
    assert completer.score(cells) == pytest.approx(
        -np.abs(guess - cells.values).mean() / (high - low)
    )


@every_completer
def test_predict_entries(cls, small):
    _, masked = small
    completer = fitted_on_small(cls)
    rows, cols = np.nonzero(masked.mask)
    guess = completer.predict_entries(rows, cols)
    np.testing.assert_allclose(guess, completer.transform(masked)[rows, cols])
    np.testing.assert_array_equal(
        completer.predict_entries(rows[0], cols),
        completer.predict_entries(np.full(len(cols), rows[0]), cols),
    )
    with pytest.raises(
        ValueError, match=r"cols contains 6 at position 1, outside 0\.\.5"
    ):
        completer.predict_entries([0, 1], [5, 6])
    with pytest.raises(TypeError, match="rows must be integers"):
        completer.predict_entries([0.5], [1])


@every_completer
def test_data_frames_and_names(cls, small):
    _, masked = small
    frame = CONTAINERS["pandas"](masked).set_axis(list("ABCDEFGHIJKL"), axis=0)
    completer = make(cls, add_indicator=True).set_output(transform="pandas")
    out = completer.fit_transform(frame)
    indicators = [f"missingindicator_{c}" for c in frame if frame[c].isna().any()]
    assert list(out.columns) == [*frame.columns, *indicators]
    assert list(out.index) == list(frame.index)
    assert list(completer.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(
        out[indicators], frame.isna().to_numpy()[:, frame.isna().any()]
    )
    in_polars = make(cls).set_output(transform="polars")
    assert isinstance(
        in_polars.fit_transform(CONTAINERS["polars"](masked)), pl.DataFrame
    )
    with pytest.raises(ValueError, match="feature names should match"):
        completer.transform(frame.rename(columns={"a": "z"}))


@every_completer
def test_empty_columns_and_rows(cls, small):
    masked = small[1].copy()
    masked[:, 2] = np.ma.masked
    masked[4] = np.ma.masked
    completer = make(cls)
    if cls.completer_tags.pictures:  # completed like other holes, and without a warning
        completed = completer.fit_transform(masked)
        np.testing.assert_array_equal(completer.transform(masked), completed)
        assert completed[4].std() > 0 and completed[:, 2].std() > 0
        dropped = make(cls, keep_empty_features=False)
        with pytest.warns(UserWarning, match="Column 2 .* is dropped"):
            np.testing.assert_array_equal(
                dropped.fit_transform(masked), np.delete(completed, 2, axis=1)
            )
        with pytest.warns(UserWarning, match="Row 0 of X has no observed cell"):
            one = completer.transform(masked[4:5])
        columns = np.arange(6) != 2
        np.testing.assert_allclose(one[0, columns], masked.mean(0).data[columns])
        return
    with pytest.warns(UserWarning, match="no observed cell") as caught:
        completed = completer.fit_transform(masked)
    ours = [w for w in caught if "no observed cell" in str(w.message)]
    assert [str(w.message) for w in ours] == [
        "Column 2 of X has no observed cell and is filled with the row means.",
        "Row 4 of X has no observed cell and is filled with the column means.",
    ]
    assert {w.filename for w in caught} == {__file__}
    row_means = masked.mean(1).data
    keep = np.arange(12) != 4
    np.testing.assert_allclose(completed[keep, 2], row_means[keep])
    columns = np.arange(6) != 2
    np.testing.assert_allclose(completed[4, columns], masked.mean(0).data[columns])
    assert completed[4, 2] == pytest.approx(masked.mean())
    with pytest.warns(UserWarning, match="no observed cell") as caught:
        dropped = make(cls, keep_empty_features=False).fit(masked)
    assert "is dropped" in str(caught[0].message)
    with pytest.warns(UserWarning, match="Row 4 of X"):
        assert dropped.transform(masked).shape == (12, 5)
    assert list(dropped.get_feature_names_out()) == ["x0", "x1", "x3", "x4", "x5"]


@every_completer
def test_missing_values(cls, small):
    _, masked = small
    expected = fitted_on_small(cls).transform(masked)
    marked = masked.filled(-999)
    np.testing.assert_allclose(
        make(cls, missing_values=-999).fit_transform(marked), expected
    )
    # What the container says is missing, too.
    both = np.where(np.arange(12)[:, None] % 2, marked, masked.filled(np.nan))
    completer = make(cls, missing_values=-999)
    np.testing.assert_allclose(completer.fit_transform(both), expected)
    truth = small[0].copy()
    truth[masked.mask & (np.arange(6) == 1)] = -999
    assert completer.score(both, truth) == pytest.approx(
        fitted_on_small(cls).score(masked, np.ma.masked_equal(truth, -999))
    )


BAD_INPUT = {
    "infinity": ([[1, 2], [np.inf, 3]], r"X contains infinity at row 1, column 0"),
    "nothing observed": ([[np.nan] * 2] * 2, "X has no observed cell"),
    "text": (
        [[1, 2], [3, "four"]],
        "holds 'four' at row 1, column 1, which is not a number",
    ),
    "numbers as text": (np.array([["1", "2"]]), "X holds '1' at row 0, column 0"),
    "dates": (
        pd.DataFrame({"day": pd.to_datetime(["2020-01-01", None])}),
        "X holds dates or durations",
    ),
    "too large": (
        [[1.0, 1e200]],
        r"X contains a number above 1e\+154.* row 0, column 1",
    ),
    "no container": ({"a": [1.0]}, "X must be a matrix in an array, .* got dict"),
    "text column": (
        pd.DataFrame({"age": [1.0, 2.0], "name": ["a", "b"]}),
        r"holds 'a' at row 0, column 1 \('name'\), which is not a number",
    ),
    "ragged": ([[1, 2], [3]], "X is not rectangular"),
    "one dimension": ([1.0, 2.0], "Expected 2D array, got 1D array"),
    "three dimensions": (np.ones((2, 2, 2)), "Found array with dim 3"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "complex": ([[1j, 2]], "Complex data not supported"),
    "duplicates": (
        sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)),
        "X stores some cells more than once",
    ),
}


WORDS = {"text", "numbers as text", "dates", "text column"}


@every_completer
@pytest.mark.parametrize("kind", BAD_INPUT)
def test_bad_input_says_what_and_where(cls, kind):
    X, message = BAD_INPUT[kind]
    if issubclass(cls, TakesTables) and kind in WORDS:
        pytest.skip("it completes tables; see test_frames.py")
    with pytest.raises((ValueError, TypeError), match=message):
        make(cls).fit(X)


@every_completer
def test_bad_input_to_a_fitted_completer(cls, small):
    truth, masked = small
    completer = make(cls)
    with pytest.raises(NotFittedError):
        completer.transform(masked)
    completer.fit(masked)
    with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6"):
        completer.transform(masked[:, :5])
    with pytest.raises(ValueError, match=r"y has shape \(12, 5\), X has \(12, 6\)"):
        completer.score(masked, truth[:, :5])
    with pytest.raises(ValueError, match="no row with two observed cells"):
        completer.score(
            np.ma.masked_array(truth, np.arange(6)[None] > np.zeros((12, 1)))
        )
    for cells in (Entries(truth[:, :5]), Entries(masked)[:0]):
        with pytest.raises(ValueError, match="score needs cells of the fitted matrix"):
            completer.score(cells)
    with pytest.raises(ValueError, match="no missing cell that is observed in y"):
        completer.score(truth, truth)


BAD_PARAMETERS = {
    "lambda_row": -1.0,
    "lambda_col": -0.5,
    "depth": 0,
    "width": 0,
    "lr": 0.0,
    "max_iter": 0,
    "tol": -1.0,
    "scaling": "rows",
    "n_neighbors": 0,
    "rank": 0,
    "weights": "gaussian",
    "adjacency": "full",
    "regularizer": "l2",
    "validation_fraction": 1.5,
    "n_iter_no_change": 0,
    "early_stopping": "yes",
    "keep_observed": 3,
    "missing_values": "NA",
    "random_state": "seed",
}


@every_completer
def test_bad_parameters_are_named(cls, small):
    for name in set(BAD_PARAMETERS) & set(cls().get_params()):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}"):
            make(cls, **{name: BAD_PARAMETERS[name]}).fit(small[1])


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "tpu:0"])
@pytest.mark.parametrize("cls", [c for c in COMPLETERS if "device" in c().get_params()])
def test_unknown_devices_are_refused(cls, device, small):
    with pytest.raises(ValueError, match=f"device='{device}' is not available"):
        make(cls, device=device).fit(small[1])


@every_completer
def test_devices_agree(cls, small, device):
    """Random numbers are drawn on the CPU, so only roundings differ."""
    _, masked = small
    completed = make(cls, device=device).fit_transform(masked)
    expected = fitted_on_small(cls).transform(masked)
    np.testing.assert_allclose(completed, expected, atol=1e-6)


@every_completer
def test_pickles_and_is_deterministic(cls, small, device):
    _, masked = small
    completer = make(cls, device=device)
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    completed = completer.fit_transform(masked)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    assert torch.equal(torch.get_rng_state(), torch_state)
    again = pickle.loads(pickle.dumps(completer))
    np.testing.assert_array_equal(again.transform(masked), completed)
    np.testing.assert_array_equal(clone(completer).fit_transform(masked), completed)
    # Nothing fitted lives on a device: what was fitted on CUDA loads without one.
    for value in vars(completer).values():
        parts = vars(value).values() if hasattr(value, "__dict__") else [value]
        for part in parts:
            assert not isinstance(part, torch.Tensor) or part.device.type == "cpu"


@every_completer
def test_equivariance(cls, small):
    if not cls.completer_tags.equivariant:
        return
    _, masked = small
    order = np.random.RandomState(1).permutation(len(masked))
    np.testing.assert_allclose(
        make(cls).fit_transform(masked[order]),
        fitted_on_small(cls).transform(masked)[order],
    )


@iterative
def test_monotone_where_claimed(cls, recovery):
    truth, hidden = recovery
    completer = make(cls, tol=0.0).fit(np.ma.masked_array(truth, hidden))
    objective = completer.history_["objective"]
    assert objective[-1] < objective[0]
    if cls.completer_tags.monotone:
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()


@iterative
def test_constant_and_tiny_matrices(cls):
    constant = np.ma.masked_array(np.full((5, 4), 7.0))
    constant[1, 2] = np.ma.masked
    np.testing.assert_allclose(make(cls).fit_transform(constant), 7.0)
    for shape in [(1, 1), (1, 5), (5, 1), (2, 2)]:
        X = np.ma.masked_array(np.arange(np.prod(shape), dtype=float).reshape(shape))
        if X.size > 1:
            X[-1, -1] = np.ma.masked
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*no observed cell")
            completed = make(cls).fit_transform(X)
        assert np.isfinite(completed).all()


@iterative
def test_unscaled_units_do_not_matter(cls, small):
    """Standardised columns: the answer is the same in other units."""
    _, masked = small
    units, origin = 10.0 ** np.arange(-3, 3), 100.0 * np.arange(6)
    np.testing.assert_allclose(
        make(cls, scaling="columns").fit_transform(masked * units + origin),
        make(cls, scaling="columns").fit_transform(masked) * units + origin,
        rtol=1e-4,
        atol=1e-5,
    )


@iterative
@pytest.mark.parametrize("scaling", ["auto", "columns", "global", None])
def test_scaling_is_undone(cls, scaling, small):
    _, masked = small
    units = 1.0 if scaling is None else 1000.0
    completer = make(cls, scaling=scaling, max_iter=100)
    completed = completer.fit_transform(masked * units)
    assert np.abs(completed / units - masked.mean()).max() < 6 * masked.std()


@iterative
@pytest.mark.parametrize("scaling", ["auto", "columns", "global"])
def test_offsets_do_not_hide_deviations(cls, scaling, small):
    """A column of seconds since 1970 is not constant."""
    _, masked = small
    offset = 1.7e9 * (np.arange(6) == 0) if scaling == "columns" else 1e7
    plain = make(cls, scaling="columns" if scaling == "columns" else "global")
    moved = make(cls, scaling=scaling)
    far = masked + offset
    np.testing.assert_allclose(
        moved.fit_transform(far) - offset,
        plain.fit_transform(far - offset),  # rounded as the other's cells are
        rtol=1e-5,
        atol=5e-5,
    )


@every_completer
def test_constant_columns_say_nothing_of_new_rows(cls, small):
    _, masked = small
    masked = masked.copy()
    masked[:, 0] = 5.0
    completer = make(cls, max_iter=400).fit(masked)
    rows = np.ma.masked_array(np.repeat(masked[:1], 3, 0))
    rows[:, 3] = np.ma.masked
    rows[:, 0] = [5.0, 6.0, 1000.0]
    folded = completer.transform(rows)[:, 3]
    if issubclass(cls, IterativeCompleter):
        np.testing.assert_allclose(folded[1:], folded[1])
    assert np.abs(folded - masked[:, 3].mean()).max() < 4 * masked[:, 3].std()


@every_completer
def test_ties_do_not_hang_on_what_else_is_asked(cls):
    """Ratings: distances of many rows are equal."""
    rng = np.random.RandomState(0)
    R = np.where(rng.rand(60, 8) < 0.4, np.nan, rng.randint(1, 6, (60, 8)) / 10)
    R[:, 0] = rng.randint(1, 6, 60)
    completer = make(cls).fit(R[:40])
    whole = completer.transform(R)
    for row in range(60):
        np.testing.assert_allclose(
            completer.transform(R[row : row + 1])[0], whole[row], rtol=1e-9
        )


@every_completer
def test_what_happens_to_the_input_later_does_not_matter(cls, small):
    X = small[1].filled(np.nan)
    completer = fitted_on_small(cls)
    victim = X.copy()
    other = make(cls).fit(victim)
    victim[:] = 0
    new = X[:3] + 1
    np.testing.assert_array_equal(other.transform(new), completer.transform(new))
    completer.transform(new)[0, 0] = 5.0  # the answer may be written to


@every_completer
def test_noise_cannot_be_scored_well(cls):
    """Cells that score hides are hidden from the completer, too."""
    noise = np.random.RandomState(0).randn(50, 10)
    params = {"n_neighbors": 1, "rank": 1, "lambda_row": 10.0, "lambda_col": 10.0}
    assert make(cls, **params).fit(noise).score(noise) < -0.08


@every_completer
def test_a_fit_that_fails_leaves_the_completer_as_it_was(cls, small):
    _, masked = small
    completer = make(cls)
    with pytest.raises(ValueError, match="infinity"):
        completer.fit([[np.inf, 1.0]])
    with pytest.raises(NotFittedError):
        completer.transform(masked)
    expected = completer.fit_transform(masked)
    bad = {"rank": 99, "blocks": {99: 1.0}, "device": "tpu"}
    names = set(bad) & set(completer.get_params())
    completer.set_params(**{name: bad[name] for name in names})
    with pytest.raises(ValueError, match=r"99|tpu|no observed"):
        completer.fit(masked[:5, :3] if names else [[np.nan]])
    np.testing.assert_array_equal(
        completer.set_params(**{n: make(cls).get_params()[n] for n in names}).transform(
            masked
        ),
        expected,
    )


@iterative
def test_interrupting_leaves_a_usable_completer(cls, small):
    class Interrupt:
        n_calls = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.n_calls += 1
            if self.n_calls == 1:
                raise KeyboardInterrupt

    _, masked = small
    completer = make(cls, tol=0.0, max_iter=200).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        completer.fit(masked)
    assert completer.status_ == "interrupted"
    assert completer.n_iter_ == cls.check_every
    completed = completer.transform(masked)
    assert np.isfinite(completed).all()
    assert (completed[~masked.mask] == masked.data[~masked.mask]).all()


@iterative
def test_interrupting_a_choice_leaves_a_usable_completer(cls, small, monkeypatch):
    """While "auto" tries out candidates, where there is an "auto"."""

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cls, "_for_trials", interrupt)
    _, masked = small
    completer = make(cls)
    with contextlib.suppress(KeyboardInterrupt):
        completer.fit(masked)
        assert completer.status_ != "interrupted"
    assert np.isfinite(completer.transform(masked)).all()


@iterative
def test_what_overflows_is_a_divergence(cls):
    """float32 whose squares overflow, unscaled: a status or an answer, no traceback."""
    rng = np.random.RandomState(0)
    X = (1e18 * rng.randn(20, 12)).astype(np.float32)
    X = np.ma.masked_array(X, rng.rand(20, 12) < 0.3)
    completed = make(cls, scaling=None).fit_transform(X)
    assert np.isfinite(completed).all()


@iterative
def test_no_tolerance_is_no_crash(cls):
    X = low_rank(20, 15, rank=3)
    completer = make(cls, tol=0.0, max_iter=300).fit(X.astype(np.float32))
    assert np.isfinite(completer.reconstruction_).all()


@pytest.mark.parametrize("cls", [c for c in COMPLETERS if "lr" in c().get_params()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divergence_ends_with_a_status_and_a_finite_answer(cls, dtype, recovery):
    truth, hidden = recovery
    X = np.ma.masked_array(truth.astype(dtype), hidden)
    completer = make(cls, lr=1e3, max_iter=200)
    with pytest.warns(
        ConvergenceWarning, match=r"diverged by .* lower lr \(now 1000.0\)"
    ):
        completed = completer.fit_transform(X)
    assert completer.status_ == "diverged"
    assert np.isfinite(completed).all()
    assert relative_error(completed, truth, hidden) < 1.1


@pytest.mark.parametrize("cls", [c for c in COMPLETERS if "lr" in c().get_params()])
def test_fits_that_hardly_fit_say_so(cls, recovery):
    truth, hidden = recovery
    X = np.ma.masked_array(1e6 * truth, hidden)
    completer = make(cls, scaling=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        completer.fit(X)
    pattern = r"\.\d+ (on the observed cells|of the way) .* scaling"
    warned = [re.search(pattern, str(w.message)) for w in caught]
    misfit = relative_error(completer.reconstruction_, X.data, ~hidden)
    # Fits that start at the truncated SVD converge at any scale.
    assert any(warned) == (misfit > 0.7)


@pytest.mark.parametrize(
    "cls", [c for c in COMPLETERS if "early_stopping" in c().get_params()]
)
def test_early_stopping_keeps_the_best_iterate(cls, recovery):
    truth, hidden = recovery
    noisy = truth + 0.5 * np.random.RandomState(0).randn(*truth.shape)
    X = np.ma.masked_array(noisy, hidden)
    completer = make(
        cls,
        early_stopping=True,
        n_iter_no_change=100,
        max_iter=1500,
        lr=0.01,
        scaling=None,
    ).fit(X)
    assert completer.status_ == "stopped"
    validation = completer.history_["validation"]
    best = int(completer.history_["n_iter"][validation.argmin()])
    assert completer.n_iter_ == best + 100
    assert len(validation) == completer.n_iter_ // cls.check_every
    cells = X.filled(np.nan)
    held_out = completer._drawn(cells, completer.validation_fraction, 0)
    assert validation.min() == pytest.approx(
        rmse(completer.reconstruction_, noisy, held_out)
    )
    assert validation[-1] > validation.min()
