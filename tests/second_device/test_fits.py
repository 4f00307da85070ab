"""Everything that completers do gives the same numbers on another device.

A way of use is a function of a class, of the parameters of its instances and of data,
which yields its answers. Each is run on the CPU and on the second device. There, a
tensor that was made on the wrong device is an error; see backend.cpp.
"""

from __future__ import annotations

import gc
import inspect
import pickle
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import COMPLETERS, low_rank, make
from second_device import DEVICE, backend
from sklearn.base import clone
from sklearn.model_selection import KFold

from skmc import (
    AIRCompleter,
    AutoCompleter,
    BayesianFactorizationCompleter,
    DMFCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    GroupedCompleter,
    KNNCompleter,
    MixedCompleter,
    NCARLCompleter,
    NonlocalCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SeriesCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
)
from skmc.base import IterativeCompleter
from skmc.checks import completer_checks
from skmc.loop import SpectrumRecorder
from skmc.model_selection import BatchedGridSearchCV, fit_batch
from skmc.persistence import archive, checkpoint, load, save
from skmc.uncertainty import MultipleCompletion

pytestmark = [
    pytest.mark.second_device,
    pytest.mark.filterwarnings(
        "ignore::sklearn.exceptions.ConvergenceWarning",
        "ignore:.*not close to low rank",
    ),
]

# Every completer that computes with Torch, and settings that take other ways.
SETTINGS = [(cls, {}) for cls in COMPLETERS if "device" in cls().get_params()] + [
    (AIRCompleter, {"adjacency": "global"}),
    (AIRCompleter, {"early_stopping": True, "n_iter_no_change": 25, "lr": 0.02}),
    (BayesianFactorizationCompleter, {"heteroscedastic": True}),
    (DMFCompleter, {"regularizer": "tv"}),
    (DMFCompleter, {"regularizer": "dirichlet"}),
    (FactorizationCompleter, {"alpha": 1.0, "lambda_ridge": 0.1, "rank": 2}),
    (FactorizationCompleter, {"biases": "both", "rank": 2}),
    (GaussianCompleter, {"rank": 2}),
    (GaussianCompleter, {"lower_limit": "min", "rank": 2}),
    (GaussianCompleter, {"upper_limit": "max", "rank": None}),
    (KNNCompleter, {"weights": "distance"}),
    (NCARLCompleter, {"lambda_noise": 0.1}),
    (NSRCompleter, {"batch_size": 8}),
    (SNNCompleter, {"layers": (2, 2)}),
    (SoftImputeCompleter, {"fixed_effects": "both"}),
    (SVDCompleter, {"rank": 2, "scaling": None}),
    (SVTCompleter, {"delta": 1.2}),
    (TNNRCompleter, {"rank": 2, "solver": "apgl"}),
    (TNNRCompleter, {"rank": 2, "weighted": True}),
]


def named(params):
    return "".join(f"-{name}={value}" for name, value in params.items())


every_setting = pytest.mark.parametrize(
    ("cls", "params"), SETTINGS, ids=[f"{c.__name__}{named(p)}" for c, p in SETTINGS]
)


def matrix(n_rows=30, n_cols=12):
    rng = np.random.RandomState(0)
    X = low_rank(n_rows, n_cols) + 0.1 * rng.randn(n_rows, n_cols) + 12
    return np.where(rng.rand(n_rows, n_cols) < 0.3, np.nan, X)


def links(n):
    """A graph: each row is linked to the next one."""
    return sp.csr_array(np.eye(n, k=1) + np.eye(n, k=-1))


# ------------------------------------------------------------------------- ways of use


def fit(new, X):
    completer = new()
    yield completer.fit_transform(X)
    yield completer.transform(X)
    yield completer.transform(X[:5] + np.float32(0.1))
    yield completer.predict_entries(*np.nonzero(np.isnan(X)))
    yield completer.score(X)
    if hasattr(completer, "reconstruction_"):
        yield completer.reconstruction_
    with TemporaryDirectory() as folder:
        save(completer, Path(folder, "completer"))
        loaded = load(Path(folder, "completer"))
    for again in (loaded, pickle.loads(pickle.dumps(completer))):
        assert str(again.device) == str(completer.device)
        yield again.transform(X)
        yield again.transform(X[:5] + 0.1)


def sparse(new, X):
    cells = Entries(X)
    completer = new().fit(cells)
    yield completer.predict_entries(cells.rows, cells.cols)
    yield completer.score(cells)
    yield completer.transform(X[:5])
    yield completer.transform(sp.csr_array(np.nan_to_num(X)))


def weights(new, X):
    of_cells = np.random.RandomState(1).uniform(0.5, 2, X.shape)
    completer = new(solver="apgl", weighted=False).fit(X, cell_weight=of_cells)
    yield completer.transform(X)
    yield completer.transform(X[:5] + 0.1)


def row_weights(new, X):
    completer = new().fit(X, sample_weight=np.arange(len(X)) % 3)
    yield completer.transform(X)
    yield completer.transform(X[:5] + 0.1)


def with_sides(new):
    """A candidate that takes side information, and searches nothing."""
    device = new().device
    return {"one": make(FactorizationCompleter, **SIDE, device=device)}


def graphs(new, X):
    completer = new(**SIDE, **GRAPHS, candidates=with_sides(new))
    completer.fit(X, row_graph=links(len(X)), col_graph=links(X.shape[1]))
    yield completer.transform(X)


def features(new, X):
    rng = np.random.RandomState(2)
    of_rows, of_cols = rng.randn(len(X), 3), rng.randn(X.shape[1], 2)
    completer = new(**SIDE, candidates=with_sides(new))
    completer.fit(X, row_features=of_rows, col_features=of_cols)
    yield completer.transform(X)
    yield completer.transform(X[:5] + 0.1, row_features=of_rows[:5])


def partial_fit(new, X):
    completer = new().fit(X[:15])
    completer.partial_fit(X[15:])
    yield completer.transform(X)


def recommend(new, X):
    completer = new().fit(Entries(np.abs(X)))
    new_users = sp.csr_array(np.nan_to_num(np.abs(X[:2]) + 0.1))
    for users in ([0, 5], new_users, {0: 1.0, 3: 2.0}):
        yield from completer.recommend(users, 4)
    yield from completer.similar_items([1, 2], 3)
    yield from completer.similar_users([1, 2], 3)
    if getattr(completer, "alpha", None) is not None:
        explanation = completer.explain(None, 3, 2)
        yield np.array([c.amount for c in explanation.contributions])


def sample(new, X):
    completer = new().fit(X)
    yield completer.predict_std(X)
    yield completer.sample(X, 2, random_state=0)
    yield completer.sample(X[:5] + 0.1, 2, random_state=0)


def early_stopping(new, X):
    yield new(early_stopping=True, n_iter_no_change=25, max_iter=75).fit_transform(X)


def warm_start(new, X):
    completer = new(warm_start=True, max_iter=10)
    yield completer.fit_transform(X)
    yield completer.fit_transform(X)


def max_time(new, X):
    yield new(max_time=1e6).fit_transform(X)
    assert np.isfinite(new(max_time=1e-9).fit_transform(X)).all()


def callbacks(new, X):
    completer = new().set_callbacks(SpectrumRecorder()).fit(X)
    yield completer.history_["singular_values"]


def odd_matrices(new, X):
    """One row, one column, one cell, no missing cell, constant and empty vectors."""
    few = X.copy()
    few[3], few[4] = np.nan, 1.0
    few[0, 1:] = few[:, 5] = np.nan
    whole = np.nan_to_num(X, nan=1.0)
    for data in (whole[:1], whole[:, :1], whole[:1, :1], whole, few):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield new().fit_transform(data)


def batch(new, X):
    name = new().completer_tags.batched[0]
    several = [new(rank=2, scaling="columns", **{name: value}) for value in (1, 2, 3)]
    for completer in fit_batch(several, [X, X, X + 1]):
        yield completer.transform(X)


def search(new, X):
    name = new().completer_tags.batched[0]
    folds = KFold(2, shuffle=True, random_state=0)
    quick = new(rank=2, max_iter=20, scaling="columns")
    found = BatchedGridSearchCV(quick, {name: [1, 2]}, cv=folds)
    yield found.fit(X).cv_results_["mean_test_score"]
    yield found.best_estimator_.transform(X)


class Killed(BaseException):
    """Not caught by anything that tidies up after an error."""


def resumed(new, X):
    write, left = archive.write, [2]

    def writes_then_dies(*args, **params):
        write(*args, **params)
        left[0] -= 1
        if not left[0]:
            raise Killed

    with TemporaryDirectory() as folder:
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            patch.setattr(archive, "write", writes_then_dies)
            with checkpoint(Path(folder, "fit"), every=0):
                new().fit(X)
        with checkpoint(Path(folder, "fit")):
            yield new().fit_transform(X)


# Parameters that make use of what a way gives.
SIDE = {"rank": 2, "lambda_ridge": 0.1, "lambda_side": 1.0}
GRAPHS = {"lambda_row": 1.0, "lambda_col": 1.0, "regularizer": "dirichlet"}


TOLERANCES = {
    # Rounding decides whether a singular value is above a threshold.
    NonlocalCompleter: 1e-5,
    PatchCNNCompleter: 1e-5,  # its network is in single precision
}


def takes(name):
    return lambda cls: name in inspect.signature(cls.fit).parameters


def has(name):
    return lambda cls: name in cls().get_params()


def can(name):
    return lambda cls: hasattr(cls, name)


def every(cls):
    return True


def iterates(cls):
    return issubclass(cls, IterativeCompleter)


def shares_batches(cls):
    return bool(cls.completer_tags.batched)


WAYS = {  # and which classes have them
    fit: every,
    sparse: every,
    odd_matrices: every,
    weights: takes("cell_weight"),
    row_weights: takes("sample_weight"),
    graphs: takes("row_graph"),
    features: lambda cls: takes("row_features")(cls) and cls is not AutoCompleter,
    partial_fit: can("partial_fit"),
    recommend: can("recommend"),
    sample: can("sample"),
    early_stopping: has("early_stopping"),
    warm_start: has("warm_start"),
    max_time: iterates,
    callbacks: iterates,
    resumed: iterates,
    batch: shares_batches,
    search: shares_batches,
}
CASES = [
    pytest.param(way, cls, params, id=f"{way.__name__}-{cls.__name__}{named(params)}")
    for way, applies in WAYS.items()
    for cls, params in SETTINGS
    if applies(cls) and (not params or way in (fit, recommend, weights))
]


def answers(way, cls, params, X, device):
    def new(**more):
        known = cls().get_params().keys() & more.keys()
        more = {name: more[name] for name in known}
        return make(cls, **{"max_iter": 30, **params, **more, "device": device})

    return [np.ma.filled(found, -1) for found in way(new, X)]


@pytest.fixture(autouse=True)
def on_the_device():
    if DEVICE.startswith("second"):
        backend()


@pytest.mark.parametrize(("way", "cls", "params"), CASES)
def test_answers_equal_those_of_the_cpu(way, cls, params):
    single = [(np.float32, 1e-5)] * (way in (fit, sparse))
    for dtype, tolerance in [(np.float64, 1e-9), *single]:
        X = matrix().astype(dtype)
        tolerance = max(tolerance, TOLERANCES.get(cls, 0))
        expected = answers(way, cls, params, X, "cpu")
        found = answers(way, cls, params, X, DEVICE)
        for a, b in zip(expected, found, strict=True):
            size = np.abs(a).max(initial=1) if a.dtype.kind == "f" else 0
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * size)


HOST = {  # what the host does before or after anything is computed
    "a_failed_fit_changes_nothing",
    "bad_input",
    "bad_input_to_a_fitted_completer",
    "bad_parameters_are_named",
    "containers",
    "data_frames_and_names",
    "input_may_change_later",
    "interrupting_a_choice_leaves_a_usable_completer",
    "interrupting_leaves_a_usable_completer",
    "masks_are_never_dropped",
    "missing_values",
    "stored_zeros_are_observed",
    "unknown_devices_are_refused",
}
ANSWERS = {  # what holds as on the CPU if the answers are equal
    "constant_columns_say_nothing_of_new_rows",
    "devices_agree",
    "early_stopping_keeps_the_best_iterate",
    "empty_columns_and_rows",
    "is_deterministic",
    "new_rows",
    "no_tolerance_is_no_crash",
    "noise_cannot_be_scored_well",
    "observed_cells_and_dtype",
    "offsets_do_not_hide_deviations",
    "recovers_a_rank_two_matrix",
    "scaling_is_undone",
    "ties_do_not_depend_on_other_rows",
    "transform_is_row_wise",
    "units_do_not_matter",
}
CONTRACT = [
    check
    for cls, params in SETTINGS
    if not params
    for check in completer_checks(cls(device=DEVICE))
    if check.name not in HOST | ANSWERS and not check.name.startswith("scikit-learn's")
]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda c: f"{c.completer}-{c.name}")
def test_contract(check):
    check()


@pytest.mark.parametrize(
    "outer",
    [
        MixedCompleter(AIRCompleter()),
        SeriesCompleter(SVDCompleter(rank=1)),
        GroupedCompleter(GaussianCompleter(10.0), by=0),
    ],
    ids=lambda outer: type(outer).__name__,
)
def test_completers_of_completers(outer):
    X = matrix()
    X[:, 0] = np.arange(len(X)) % 2
    expected = of_device(outer, "cpu").fit(X).transform(X)
    found = of_device(outer, DEVICE).fit(X).transform(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def of_device(outer, device):
    wanted = {"device": device, "max_iter": 20, "random_state": 0}
    names = outer.get_params()
    given = {k: wanted[k.split("__")[-1]] for k in names if k.split("__")[-1] in wanted}
    return clone(outer).set_params(**given)


def test_fits_load_where_there_is_no_such_device(tmp_path):
    X, expected = matrix(), {}
    for cls in dict(SETTINGS):
        completer = make(cls, max_iter=5, device=DEVICE).fit(X)
        expected[cls.__name__] = completer, completer.transform(X[:5] + 0.1)
        save(completer, tmp_path / cls.__name__)
    (tmp_path / "all.pickle").write_bytes(pickle.dumps((X, expected)))
    script = """
import pickle, sys
from pathlib import Path
import numpy as np
from skmc.persistence import load
folder = Path(sys.argv[1])
X, expected = pickle.loads((folder / "all.pickle").read_bytes())
for name, (completer, answer) in expected.items():
    for again in (completer, load(folder / name)):
        assert np.allclose(again.transform(X[:5] + 0.1), answer, 1e-9, 1e-9), name
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_draws_of_a_completer():
    X = matrix()
    found = [
        MultipleCompletion(of_device(SVDCompleter(1), where), 2, random_state=0)
        .fit(X)
        .draws_
        for where in ("cpu", DEVICE)
    ]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@every_setting
def test_a_full_device_is_named_and_left_usable(cls, params):
    if cls is AutoCompleter:
        return  # it goes on with the candidates that do not fail
    X, device = matrix(), backend()
    new = make(cls, **{"max_iter": 10, **params, "device": DEVICE})
    expected = clone(new).fit_transform(X)
    completer = clone(new).fit(X[:20])
    before = completer.transform(X[:5] + 0.1)
    gc.collect()
    device.start_peak()
    clone(new).fit(X)
    gc.collect()
    in_use = device.in_use()
    needed = device.peak() - in_use
    for part in (0.3, 0.9):
        device.limit(in_use + int(part * needed))
        try:
            with pytest.raises(MemoryError, match="needs more memory than there is"):
                completer.fit(X)
        finally:
            device.limit(None)
        assert np.array_equal(completer.transform(X[:5] + 0.1), before)
    np.testing.assert_allclose(completer.fit_transform(X), expected, rtol=1e-9)
