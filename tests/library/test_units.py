"""The units of the columns change nothing but the units of the answer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import COMPLETERS, low_rank, make
from sklearn.base import clone
from sklearn.datasets import load_iris, load_linnerud

from skmc import (
    AIRCompleter,
    AutoCompleter,
    AutoencoderCompleter,
    BayesianFactorizationCompleter,
    BiharmonicCompleter,
    ChainedCompleter,
    Entries,
    FactorizationCompleter,
    IALMCompleter,
    LogDetCompleter,
    NCARLCompleter,
    NonlocalCompleter,
    PatchCNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
    TreesCompleter,
    patterns,
    pictures,
)
from skmc.cells import Given

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",  # fits are cut short
    "ignore:.*(fit is poor|barely|of the way|on the observed cells)",
)

# LogDetCompleter keeps means, on which a rank depends, and overfits tables: which of
# many exact fits it finds depends on the units. Matrices of low rank are recovered in
# any units, see tests/completers/test_logdet.py.
TABLES = [
    cls
    for cls in COMPLETERS
    if not (cls.completer_tags.pictures or cls is LogDetCompleter)
]
# These amplify the rounding of the cells: the steps of NSR follow the signs of numbers
# near zero, those of ALS are in single precision and end before they converge, and two
# splits of a few integers can be equally good for trees.
TOLERANCES = {
    "FactorizationCompleter": 0.1,
    "NSRCompleter": 0.1,
    "TreesCompleter": 0.2,
}


def table(seed, n_rows):
    """Columns of all kinds: binary, skewed, heavy-tailed, constant, nearly empty."""
    rng = np.random.RandomState(seed)
    z, noise = rng.randn(n_rows, 2), rng.randn(n_rows, 5)
    T = np.column_stack(
        [
            z @ [1, 0.5] + 0.3 * noise[:, 0],
            z @ [-0.5, 1] + 0.3 * noise[:, 1],
            z[:, 0] + 0.5 * noise[:, 2] > 0,
            np.exp(1.5 * z[:, 1] + 0.3 * noise[:, 3]),
            z[:, 0] + rng.standard_t(2, size=n_rows),
            np.full(n_rows, 3.0),
            noise[:, 4],
            np.round(3 * z[:, 1] + noise[:, 0]),
        ]
    )
    T[rng.rand(*T.shape) < 0.2] = np.nan
    T[:, 6] = np.nan
    T[[3, 17], 6] = 0.1, -0.4
    return T


X, NEW = table(0, 60), table(1, 20)
DEVIATIONS = np.where(np.nanstd(X, 0) > 0, np.nanstd(X, 0), 1)
SCALES = 10.0 ** np.random.RandomState(2).uniform(-6, 6, 8)
SHIFTS = 1e6 * DEVIATIONS * np.random.RandomState(3).uniform(-1, 1, 8)
SHIFTS[5] = 0  # a constant is exact
CHANGES = {
    "units": (SCALES, np.zeros(8)),
    "origins": (np.ones(8), SHIFTS),
    "both": (SCALES, SHIFTS * SCALES),
}


def answers(completer, X, new):
    """All that a fit answers, in columns: values, and lengths such as deviations."""
    completer.fit(X)
    values = [completer.transform(X), completer.transform(new)]
    lengths = []
    if hasattr(completer, "predict_std"):
        lengths += [completer.predict_std(X), completer.predict_std(new)]
    if hasattr(completer, "sample"):
        values += [*completer.sample(X, 2, random_state=0)]
    if hasattr(completer, "predict_interval"):
        values += [*completer.predict_interval(X)]
    return np.concatenate(values), np.concatenate([*lengths, np.zeros((1, 8))])


LONG = (AutoCompleter, AutoencoderCompleter, ChainedCompleter)


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, id=cls.__name__, marks=[pytest.mark.long] * (cls in LONG))
        for cls in TABLES
    ],
)
def test_units_and_origins_of_columns_do_not_matter(cls):
    completer = make(
        cls,
        max_iter=2 if cls is TreesCompleter else 40,  # rounds
        candidates=["mean", "knn", "svd"],
    )
    values, lengths = answers(completer, X, NEW)
    for name, (scale, shift) in CHANGES.items():
        found = answers(completer, X * scale + shift, NEW * scale + shift)
        tolerance = TOLERANCES.get(cls.__name__, 1e-6)
        away = np.abs((found[0] - shift) / scale - values) / DEVIATIONS
        assert np.nanmax(away) < tolerance, name
        away = np.abs(found[1] / scale - lengths) / DEVIATIONS
        assert np.nanmax(away) < tolerance, name


def share_among_prices():
    rng = np.random.RandomState(0)
    z = rng.randn(200, 1)
    T = 100 * (0.8 * z + 0.6 * rng.randn(200, 5))
    T[:, 0] = 0.5 + 0.1 * (z[:, 0] + 0.3 * rng.randn(200))
    return T


def one_of_fifteen():
    rng = np.random.RandomState(1)
    T = rng.randn(150, 3) @ rng.randn(3, 15) + 0.5 * rng.randn(150, 15)
    T[:, 7] = 5 + 1e-3 * T[:, 7]
    return T


SMALL = {
    "share": share_among_prices,
    "one of fifteen": one_of_fifteen,
    "linnerud": lambda: np.column_stack([load_linnerud().data, load_linnerud().target]),
    "petals": lambda: load_iris().data[:, 2:],
    "noise": lambda: np.random.RandomState(3).randn(80, 6) * [1, 10, 1e3, 1e-3, 1, 1],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "cls",
    [
        AIRCompleter,
        BayesianFactorizationCompleter,
        FactorizationCompleter,
        IALMCompleter,
        NCARLCompleter,
        SoftImputeCompleter,
        SVDCompleter,
        SVTCompleter,
        TNNRCompleter,
    ],
)
def test_no_column_is_far_worse_than_its_mean(cls, name):
    T = SMALL[name]()
    away, of_mean = np.zeros((2, T.shape[1]))
    for seed in range(4):
        hidden = patterns.random(T, 0.2, spare=True, random_state=seed)
        X = np.where(hidden, np.nan, T)
        completer = cls()
        if "random_state" in completer.get_params():
            completer.set_params(random_state=0)
        found = completer.fit_transform(X)
        away += np.where(hidden, np.square(found - T), 0).sum(0)
        of_mean += np.where(hidden, np.square(np.nanmean(X, 0) - T), 0).sum(0)
    assert (away < 5 * of_mean).all(), away / of_mean


def test_the_container_says_whether_all_cells_have_one_unit():
    cells = low_rank(9, 4)
    cells[2, 1] = np.nan
    frame = pd.DataFrame(cells).add_prefix("c")
    triplets = Entries(cells).rows, Entries(cells).cols, Entries(cells).values
    one = {
        "array": (cells, False),
        "frame": (frame, False),
        "entries of an array": (Entries(cells), False),
        "some of them": (Entries(cells)[::2], False),
        "sparse": (sp.csr_array(np.nan_to_num(cells)), True),
        "entries of a sparse matrix": (
            Entries(sp.csr_array(np.nan_to_num(cells))),
            True,
        ),
        "triplets": (Entries.from_triplets(*triplets), True),
        "some triplets": (Entries.from_triplets(*triplets)[::2], True),
    }
    for name, (X, expected) in one.items():
        for cls in (SVDCompleter, FactorizationCompleter):  # dense and sparse storage
            given = cls()._given(X, {})
            assert given.statistics.one_unit == expected, name
            assert (given.scaling_of("auto").scale.numel() == 1) == expected, name
    assert AIRCompleter(scaling="global")._given(cells, {}).statistics.one_unit


def test_a_mean_that_need_not_be_subtracted():
    cells = low_rank(9, 4) + 3
    for offset, subtracted in ((0, False), (1e4, True)):
        given = Given.of_matrix(cells + offset, one_unit=True)
        assert bool(given.scaling_of("auto", centre=False).shift) == subtracted
    assert bool(given.scaling_of("global", centre=False).shift)


@pytest.mark.parametrize(
    "completer",
    [
        SVDCompleter(2),
        TNNRCompleter(2),
        IALMCompleter(),
        SVTCompleter(),
        SoftImputeCompleter(random_state=0),
    ],
    ids=lambda completer: type(completer).__name__,
)
def test_standardized_columns_cost_no_rank(completer):
    """The means of the observed cells are not those of the columns."""
    truth = low_rank() + 2
    hidden = patterns.random(truth, 0.3, random_state=1)
    found = completer.set_params(tol=1e-5, max_iter=2000).fit_transform(
        np.where(hidden, np.nan, truth)
    )
    assert np.abs(found - truth)[hidden].max() < 0.01 * truth.std()


def test_pictures_have_one_unit_and_other_columns_a_warning():
    i, j = np.arange(40)[:, None], np.arange(30)
    picture = (1 + j**2 / 90) * np.sin(i / 8 + j / 9)
    mask = np.random.RandomState(0).rand(40, 30) < 0.3
    X = np.where(mask, np.nan, picture)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        own = SVDCompleter(3, scaling="global").fit_transform(X)
        np.testing.assert_allclose(pictures.complete(X, completer=SVDCompleter(3)), own)
        pictures.complete(X * 10.0 ** (j - 15), completer=NonlocalCompleter())
        NonlocalCompleter().fit(X)
    with pytest.warns(UserWarning, match="takes all columns as having one unit"):
        NonlocalCompleter().fit(X * 7.0 ** (j % 3))
    for completer in (NonlocalCompleter(), PatchCNNCompleter(), BiharmonicCompleter()):
        with pytest.raises(ValueError, match=r"for pictures\. .* use MixedCompleter"):
            completer.fit(X * 10.0 ** (j % 5))


def test_a_stack_shows_pictures_as_they_are():
    """Standardized columns would hide a picture from methods of pictures."""
    i, j = np.arange(40)[:, None], np.arange(30)
    picture = (1 + j**2 / 90) * np.sin(i / 8 + j / 9)
    X = np.where(np.random.RandomState(0).rand(40, 30) < 0.3, np.nan, picture)
    own = NonlocalCompleter(random_state=0)
    stack = AutoCompleter({"pictures": own}, random_state=0)
    np.testing.assert_allclose(stack.fit_transform(X), own.fit_transform(X), atol=1e-9)


@pytest.mark.parametrize("cls", [FactorizationCompleter, SVDCompleter, AutoCompleter])
def test_units_of_sparse_matrices_that_seem_to_differ_are_warned_of(cls):
    X = low_rank(60, 5)
    X[np.random.RandomState(0).rand(60, 5) < 0.2] = 0
    completer = make(cls, candidates=["mean"])
    for column, differ in ((1, False), (1e-4, True)):
        cells = sp.csr_array(X * [column, 1, 1, 1, 1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            completer.fit(cells)
        said = [str(w.message) for w in caught]
        assert any("differ by a factor" in text for text in said) == differ
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*differ by a factor")
        for scaling in ("columns", "global"):
            clone(completer).set_params(scaling=scaling).fit(cells)
