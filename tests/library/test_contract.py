"""The base class: its attributes, warnings and errors."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import KW_ONLY, fields
from numbers import Integral
from typing import ClassVar

import numpy as np
import pytest
import torch
from conftest import COMPLETERS, low_rank, make
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from torch.utils._python_dispatch import TorchDispatchMode

from skmc import (
    AIRCompleter,
    Entries,
    IALMCompleter,
    KNNCompleter,
    MaskedToNaN,
    SVDCompleter,
)
from skmc.base import HOOKS, BaseCompleter, IterativeCompleter
from skmc.compatibility import Interval
from skmc.exceptions import CompletionWarning, EmptyColumnsWarning, EmptyRowsWarning
from skmc.linalg import resolve_device
from skmc.model_selection import BatchedGridSearchCV

every_completer = pytest.mark.parametrize("cls", COMPLETERS)


@every_completer
def test_attributes_are_set_at_the_end_by_one_function(cls, small, monkeypatch):
    early, ends = [], []
    set_fitted = cls._set_fitted

    def guarded(self, name, value):
        if not ends and not name.startswith(("n_features_in_", *HOOKS)):
            early.append(name)
        object.__setattr__(self, name, value)

    def ending(self, *args):
        ends.append(True)
        set_fitted(self, *args)

    completer = make(cls)
    monkeypatch.setattr(cls, "_set_fitted", ending)
    monkeypatch.setattr(cls, "__setattr__", guarded, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        completer.fit(small[1])
    assert ends and not early


class Threads(TorchDispatchMode):
    """Lists the operations that use several threads if they are large."""

    def __init__(self):
        super().__init__()
        self.shared = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if torch.get_num_threads() > 1 and name not in {"lift_fresh", "detach"}:
            self.shared.append(name)
        return function(*args, **(kwargs or {}))


@every_completer
def test_threads_of_a_small_computation_never_wait_for_each_other(cls, small):
    """Beside a busy process, a single operation that is shared costs milliseconds."""
    X, before = small[1].filled(np.nan), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with warnings.catch_warnings(), Threads() as threads:
            warnings.simplefilter("ignore")
            completer = make(cls).fit(X)
            completer.transform(X)
            completer.transform(X[:5] + 0.1)
            for name in {"sample", "predict_std"} & set(dir(completer)):
                getattr(completer, name)(X)
    finally:
        torch.set_num_threads(before)
    assert not threads.shared


def test_attributes_of_an_earlier_fit_are_removed(small):
    completer = make(AIRCompleter, lambda_col=0.25, add_indicator=True).fit(small[1])
    assert completer.laplacians_.keys() == {"rows", "columns"}
    completer.set_params(lambda_row=0, add_indicator=False).fit(small[1])
    assert completer.laplacians_.keys() == {"columns"}
    assert not hasattr(completer, "_indicator")


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_warnings_point_at_the_calling_line(method, small):
    def lines(estimator, X):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(estimator, method)(X)
        return [w for w in caught if w.category is not DeprecationWarning]

    short = IALMCompleter(max_iter=5, tol=1e-12)
    (late,) = lines(short, small[1])
    assert late.category is ConvergenceWarning
    assert late.filename == __file__
    empty = small[1].copy()
    empty[3] = np.ma.masked
    (row,) = lines(make(KNNCompleter), empty)
    assert row.category is EmptyRowsWarning and row.message.places == [3]
    assert row.filename == __file__
    for w in lines(make_pipeline(MaskedToNaN(), make(KNNCompleter)), empty):
        assert w.filename == __file__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_completer
def test_warnings_of_every_completer_point_at_this_file(cls, small):
    if cls.completer_tags.pictures:
        return  # completes empty rows
    empty = small[1].copy()
    empty[3] = np.ma.masked
    with pytest.warns(
        UserWarning, match="rows? of X ha(s|ve) no observed cell"
    ) as caught:
        make(cls).fit_transform(empty)
    assert {w.filename for w in caught} == {__file__}


def test_warnings_name_columns_and_count_the_rest():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(low_rank(9, 3), columns=["age", "fare", "deck"])
    frame["deck"] = np.nan
    frame.iloc[1:8] = np.nan
    with pytest.warns(UserWarning) as caught:
        KNNCompleter().fit(frame)
    assert [str(w.message) for w in caught] == [
        "Column 'deck' of X has no observed cell and is filled with 0, because "
        "columns may have different units; set keep_empty_features=False to drop them.",
        "7 rows of X have no observed cell; the column means fill such rows.",
    ]
    assert [w.category for w in caught] == [EmptyColumnsWarning, EmptyRowsWarning]
    assert [w.message.places for w in caught] == [["deck"], [*range(1, 8)]]
    assert all(issubclass(w.category, CompletionWarning) for w in caught)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [GridSearchCV, BatchedGridSearchCV])
def test_a_search_does_not_warn_of_its_folds(kind):
    """Its last fit, to all cells, warns of the rows that are empty there."""
    X = low_rank(30, 6)
    X[::3, 1:] = np.nan  # empty where the first cell is held out
    folds = KFold(5, shuffle=True, random_state=0)
    search = kind(make(AIRCompleter), {"lambda_row": [0.1, 1.0]}, cv=folds)
    search.fit(Entries(X))
    X[1] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(Entries(X))
    assert [w.category for w in caught] == [EmptyRowsWarning]
    assert caught[0].message.places == [1] and caught[0].filename == __file__
    search.best_estimator_.transform(np.full((1, 6), np.nan))  # `fit` alone warns


def test_an_unknown_keyword_names_the_class(small):
    with pytest.raises(TypeError, match=r"^SVDCompleter\.fit\(\) got an unexpected"):
        SVDCompleter().fit(small[1], weights=1)
    with pytest.raises(TypeError, match=r"^SVDCompleter\.fit\(\) got an unexpected"):
        SVDCompleter().fit_transform(small[1], sample_weight=1)


@pytest.mark.parametrize("device", ["mps", "meta", "cuda:77", "hpu", "banana"])
def test_unavailable_devices_are_refused(device):
    if device == "mps" and torch.backends.mps.is_available():
        return
    with pytest.raises(ValueError, match="is not available; use 'auto' or one of") as e:
        resolve_device(device)
    assert len(str(e.value)) < 200 and e.value.__suppress_context__


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_numpy_numbers_are_valid_parameters(cls, small):
    """Grids consist of them, but Torch rejects them. A bool is not a number."""
    for name, allowed in cls._parameter_constraints.items():
        bounds = [kind for kind in allowed if isinstance(kind, Interval)]
        if not bounds:
            continue
        whole = bounds[0].type is Integral
        kinds = (np.int64, np.uint8) if whole else (np.float64, np.float32)
        for kind in kinds:
            value = clone(cls(**{name: kind(1)})).get_params()[name]
            assert type(value) is (int if whole else float) and value == 1
        with pytest.raises(ValueError, match=f"'{name}' parameter of .* Got True"):
            cls(**{name: True}).fit(small[1])


def test_a_grid_of_numpy():
    grid = {"n_neighbors": np.arange(1, 4)}
    search = GridSearchCV(KNNCompleter(), grid, cv=2)
    assert search.fit(low_rank(12, 6)).best_params_["n_neighbors"] in (1, 2, 3)


def test_constraints_are_collected_from_all_bases():
    class Child(SVDCompleter):
        _parameter_constraints: ClassVar[dict] = {"rank": [None]}

    assert Child._parameter_constraints["rank"] == [None]
    assert set(Child._parameter_constraints) <= set(Child().get_params())
    assert "warm_start" in Child._parameter_constraints
    assert "rank" not in BaseCompleter._parameter_constraints


def test_annotations_are_parameters():
    class Child(SVDCompleter):
        level: float = 0.5
        _: KW_ONLY
        tol: float = 1e-2
        depth: int = 3

    names = list(inspect.signature(Child).parameters)
    assert names[:5] == ["rank", "level", "tol", "depth", "max_iter"]
    assert names[-4:] == list(inspect.signature(BaseCompleter).parameters)
    child = Child(2, 0.7, depth=4)
    assert (child.rank, child.level, child.tol, child.depth) == (2, 0.7, 1e-2, 4)
    assert sorted(child.get_params()) == sorted(names)
    assert "tol" in Child._parameter_constraints
    with pytest.raises(TypeError, match="positional"):
        Child(2, 0.7, 1e-2)


def test_a_handwritten_constructor_is_kept():
    class Written(SVDCompleter):
        width: int  # not a parameter

        def __init__(self, rank=2, *, note=""):
            super().__init__(rank)
            self.note = note

    class Heir(Written):
        pass

    for cls in (Written, Heir):
        assert list(inspect.signature(cls).parameters) == ["rank", "note"]
        assert cls(3, note="own").get_params() == {"rank": 3, "note": "own"}
        assert set(cls._parameter_constraints) == {"rank"}


def test_a_constructor_that_leaves_out_a_parameter_is_named(small):
    class Forgot(BaseCompleter):
        def __init__(self, *, add_indicator=False, keep_empty_features=True):
            self.add_indicator = add_indicator
            self.keep_empty_features = keep_empty_features

    class ForgotMore(IterativeCompleter):
        def __init__(self, missing_values=np.nan):
            BaseCompleter.__init__(self, missing_values=missing_values)
            self.max_iter, self.tol, self.scaling, self.device = 10, 0.0, None, "cpu"

    for cls in (Forgot, ForgotMore):
        cls.__abstractmethods__ = frozenset()
    both = r"^Forgot\.__init__ does not set missing_values, keep_observed, .* super"
    with pytest.raises(TypeError, match=both):
        Forgot().fit(small[1])
    with pytest.raises(TypeError, match=r"More\.__init__ does not set random_state,"):
        ForgotMore().fit(small[1])


def test_a_class_without_tags_is_named(small):
    class Untagged(BaseCompleter):
        def _fit_cells(self, given, y=None):
            raise AssertionError

    with pytest.raises(TypeError, match="Untagged has no completer_tags; write"):
        Untagged().fit(small[1])


def test_a_misspelt_type_is_an_error_where_the_class_is_defined():
    with pytest.raises(NameError, match="Positve"):

        class Misspelt(SVDCompleter):
            weight: Positve = 1.0  # noqa: F821


@every_completer
def test_properties_are_not_dataclass_fields(cls):
    """Dask reads all fields of a dataclass to find its own collections in them."""
    assert not [f for f in fields(cls) if isinstance(vars(cls).get(f.name), property)]


def test_dask_distinguishes_fits(small):
    tokenize = pytest.importorskip("dask.base").tokenize
    first, again, other = (SVDCompleter(rank=2) for _ in range(3))
    assert tokenize(first) == tokenize(again)
    first.fit(small[1])
    other.fit(2 * small[1])
    assert len({tokenize(completer) for completer in (first, again, other)}) == 3
