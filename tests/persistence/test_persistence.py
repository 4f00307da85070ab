"""Completers in files without pickle: equal results, and only known classes."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import own_method
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, low_rank, make
from own_method import OwnCompleter
from sklearn.callback import ProgressBar
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from skmc import (
    AIRCompleter,
    AutoCompleter,
    DMFCompleter,
    Entries,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    SVDCompleter,
    patterns,
)
from skmc.base import IterativeCompleter
from skmc.completers import candidates_for
from skmc.persistence import StorageError, archive, load, save
from skmc.serialization import Packer, Unpacker

pytestmark = pytest.mark.filterwarnings(  # fits are cut short
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:.*not close to low rank",
)


def same(a, b) -> bool:
    """Equal parameters, of whatever kind."""
    if isinstance(a, np.random.RandomState):
        return same(a.get_state(), b.get_state())
    if sp.issparse(a):
        return type(a) is type(b) and same(a.toarray(), b.toarray())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        pairs = zip(a, b, strict=True)
        return type(a) is type(b) and all(same(*pair) for pair in pairs)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.fixture
def frame():
    """Rows to fit and rows that are new, with an empty column, in single precision."""
    truth = low_rank(18, 6) + 3
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    X = pd.DataFrame(np.where(hidden, np.nan, truth), columns=list("abcdef"))
    X["d"] = np.nan
    return X[:12].astype(np.float32), X[12:].astype(np.float32)


VARIANTS = [(cls, {}) for cls in COMPLETERS] + [
    (AIRCompleter, {"fixed_laplacians": {"rows": sp.csr_array((12, 12))}}),
    (DMFCompleter, {"random_state": np.random.RandomState(3)}),
]


@pytest.mark.filterwarnings("ignore:.* of X has no observed cell")
@pytest.mark.parametrize(
    ("cls", "params"),
    VARIANTS,
    ids=lambda v: ",".join(v) if isinstance(v, dict) else v.__name__,
)
def test_save_and_load_restore_a_completer(cls, params, frame, tmp_path, device):
    old, new = frame
    completer = make(cls, add_indicator=True, device=device, **params)
    completer.set_output(transform="pandas")
    completer.fit(old)
    save(completer, tmp_path / "c.skmc")
    again = load(tmp_path / "c.skmc")
    assert type(again) is cls
    assert same(again.get_params(), completer.get_params())
    assert vars(again).keys() == vars(completer).keys()
    assert list(again.feature_names_in_) == list("abcdef")
    for X in (old, new, old[::-1]):
        pd.testing.assert_frame_equal(again.transform(X), completer.transform(X))
    assert again.score(old) == completer.score(old)
    assert np.array_equal(again.reconstruction_, completer.reconstruction_)
    assert again.reconstruction_.dtype == np.float32
    assert again.fit(old).transform(old).shape == completer.transform(old).shape
    assert [f.name for f in tmp_path.iterdir()] == ["c.skmc"]


class Declared(MeanCompleter):
    """A completer whose parameters are fields and whose fitted attributes are not."""

    note: str = ""


def test_fitted_attributes_are_not_fields(frame, tmp_path):
    old, new = frame
    completer = Declared("fitted", keep_observed=False).fit(old.drop(columns="d"))
    save(completer, tmp_path / "c")
    again = load(tmp_path / "c")
    assert vars(again).keys() == vars(completer).keys()
    for X in (old.drop(columns="d"), new.drop(columns="d")):
        np.testing.assert_array_equal(again.transform(X), completer.transform(X))


def test_unfitted_and_with_callbacks(tmp_path):
    """Callbacks are not stored."""
    path = tmp_path / "c"
    save(SVDCompleter(rank=2).set_callbacks(ProgressBar()), path)
    again = load(path)
    assert again.rank == 2
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(again)


def test_mixed_tables(tmp_path):
    """The callbacks of the inner completer are not stored."""
    table = pd.DataFrame(
        {
            "number": [1.0, 2.0, np.nan, 4.0],
            "flag": pd.array([True, None, False, True], "boolean"),
            "kind": pd.Categorical(["a", None, "b", "a"]),
            "size": pd.Categorical(["S", "L", None, "S"], ["S", "L"], ordered=True),
        }
    )
    table = pd.concat([table, table], ignore_index=True)
    inner = SVDCompleter(rank=1).set_callbacks(ProgressBar())
    completer = MixedCompleter(inner).fit(table)
    save(completer, tmp_path / "c")
    again = load(tmp_path / "c")
    pd.testing.assert_frame_equal(again.transform(table), completer.transform(table))
    assert again.get_params()["completer__rank"] == 1


def test_ratings_stay_sparse(tmp_path):
    from skmc import SoftImputeCompleter

    truth = low_rank(40, 30)
    X = np.where(patterns.random(truth, 0.5, random_state=0), np.nan, truth)
    completer = SoftImputeCompleter(0.05).fit(Entries(X))
    save(completer, tmp_path / "c")
    assert load(tmp_path / "c").predict_entries(3, range(30)) == pytest.approx(
        completer.predict_entries(3, range(30)), abs=0
    )


@pytest.mark.filterwarnings("ignore:.* takes all columns as having one unit")
def test_every_candidate_of_a_stack(tmp_path):
    """Also those of scikit-learn."""
    truth = low_rank(40, 6) + 3
    X = np.where(patterns.random(truth, 0.2, random_state=0), np.nan, truth)
    own = [IterativeImputer(random_state=0), KNNImputer(), SimpleImputer()]
    forest = IterativeImputer(ExtraTreesRegressor(3), max_iter=2, random_state=0)
    found = {
        **candidates_for(X, random_state=0),
        **{type(c).__name__: c for c in own},
        "forest": forest,
    }
    for name, candidate in found.items():
        if (
            isinstance(candidate, IterativeCompleter)
            and "max_iter" in candidate.get_params()
        ):
            candidate.set_params(max_iter=3)
        candidate.fit(X)
        save(candidate, tmp_path / "c")
        again = load(tmp_path / "c")
        for rows in (X, X[:9] + 0.1):
            same = np.array_equal(again.transform(rows), candidate.transform(rows))
            assert same, name


def test_the_default_is_small_and_quick_to_load(tmp_path):
    truth = load_wine().data
    hidden = patterns.random(truth, 0.1, random_state=0)
    X = np.where(hidden, np.nan, truth)
    completer = AutoCompleter(random_state=0).fit(X)
    save(completer, tmp_path / "c")
    assert (tmp_path / "c").stat().st_size < 3e6
    start = time.process_time()
    again = load(tmp_path / "c")
    assert time.process_time() - start < 1
    for rows in (X, X[:9] * 1.01):
        np.testing.assert_array_equal(again.transform(rows), completer.transform(rows))
    for old, new in zip(
        completer.predict_interval(X), again.predict_interval(X), strict=True
    ):
        np.testing.assert_array_equal(new, old)


def test_pipelines_and_searches(tmp_path):
    X = low_rank(30, 6)
    X[3, 4] = np.nan
    for outer in (
        make_pipeline(StandardScaler(), SVDCompleter(2)),
        make_pipeline(KNNCompleter(), HistGradientBoostingRegressor(max_iter=5)),
        GridSearchCV(SVDCompleter(tol=0.1), {"rank": [1, 2]}, cv=3),
    ):
        outer.fit(X, np.arange(30.0))
        save(outer, tmp_path / "c")
        again = load(tmp_path / "c")
        answer = "transform" if hasattr(outer, "transform") else "predict"
        expected = getattr(outer, answer)(X)
        np.testing.assert_array_equal(getattr(again, answer)(X), expected)


def test_another_version_of_scikit_learn_is_told(tmp_path, monkeypatch):
    completer = SVDCompleter(1)
    completer.model = StandardScaler().fit(low_rank(9, 4))
    monkeypatch.setattr("sklearn.base.__version__", "1.0")
    save(completer, tmp_path / "c")
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match="Scaler from version 1.0"):
        load(tmp_path / "c")


@pytest.fixture
def saved(tmp_path):
    X = low_rank(12, 6)
    X[3, 4] = np.nan
    path = tmp_path / "c.skmc"
    save(SVDCompleter(rank=2).fit(X), path)
    return path


def test_every_changed_byte_is_noticed(saved):
    """Of what is read: each byte in turn is another one, and never passes."""
    whole = saved.read_bytes()
    for place in np.random.RandomState(0).permutation(len(whole))[:300]:
        wrong = bytearray(whole)
        wrong[place] ^= 1 << (place % 8)
        saved.write_bytes(wrong)
        with pytest.raises((StorageError, MemoryError)):
            load(saved)
    for end in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:end])
        with pytest.raises(StorageError, match="damaged"):
            load(saved)
    saved.write_bytes(whole + b"more")
    with pytest.raises(StorageError, match="damaged"):
        load(saved)
    saved.write_bytes(whole)
    load(saved)


def forge(path, change):
    """A file with a correct checksum, whose content was changed on purpose."""
    header, arrays = archive.read_packed(path, "completer")
    archive.write_packed(path, "completer", change(header["content"]), arrays)


def test_a_file_names_only_classes_of_skmc(saved):
    def evil(content):
        return {**content, "class": "os.system"}

    forge(saved, evil)
    with pytest.raises(StorageError, match=r"names the class os\.system, which"):
        load(saved)


@pytest.mark.parametrize(
    "name",
    [
        "subprocess.Popen",
        "torch.fx.graph_module.GraphModule",
        "torch.jit._script.RecursiveScriptModule",
        "skmc.distributed.cluster.Client",  # runs code when it is deleted
        "skmc.persistence.archive.Path",
        "skmc.__main__.main",  # the command
        "test_persistence.Deleted",
        "test_persistence.Point",
        "builtins.eval",
        "sklearn.utils._show_versions.platform",
        "sklearn.utils.no_such_module.Name",
        "",
    ],
)
def test_forbidden_classes_in_files(saved, name):
    import skmc.distributed  # noqa: F401 - so that the class is there

    forge(saved, lambda content: {**content, "class": name})
    with pytest.raises(StorageError, match=f"names the class {re.escape(name)}, which"):
        load(saved)


class Deleted(SVDCompleter):
    def __del__(self): ...


def test_a_user_defined_method(tmp_path):
    """Its completer, and parts of other classes that derive from the base classes."""
    X = own_method.problem()
    completer = OwnCompleter().fit(X)
    completer.solver_ = completer._make_solver  # a method; see below
    with pytest.raises(TypeError, match=r"builtins\.method cannot be stored"):
        save(completer, tmp_path / "c")
    model = own_method.Product(torch.ones(3, 1), torch.ones(1, 2))
    completer.solver_ = own_method.NoisyDescent(model, [own_method.Ridge(0.5)])
    save(completer, tmp_path / "c")
    again = load(tmp_path / "c")
    assert type(again) is OwnCompleter
    for new in (X, -X):
        assert np.array_equal(again.transform(new), completer.transform(new))
    assert torch.equal(again.solver_.model(), model())
    assert again.solver_.terms[0](torch.ones(2, 2)) == 1


OTHER_PROCESS = """
import sys
import numpy as np
from skmc.persistence import StorageError, load

try:
    load(sys.argv[1])
except StorageError as error:
    print(error)
assert "own_method" not in sys.modules
import own_method
completer, X = load(sys.argv[1]), own_method.problem()
np.save(sys.argv[1], np.vstack([completer.transform(X), completer.transform(-X)]))
"""


def test_a_user_defined_method_in_another_process(tmp_path):
    """Loading builds its classes if they are imported, and never imports them."""
    X = own_method.problem()
    completer = OwnCompleter().fit(X)
    save(completer, tmp_path / "c")
    ran = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, tmp_path / "c"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stderr
    assert "names the class own_method.OwnCompleter, which this" in ran.stdout
    assert "import own_method first" in ran.stdout
    expected = np.vstack([completer.transform(X), completer.transform(-X)])
    assert np.array_equal(np.load(tmp_path / "c.npy"), expected)


def test_errors_explain_why_a_class_cannot_be_stored(tmp_path):
    class Inside(SVDCompleter): ...

    with pytest.raises(TypeError, match=r"Inside cannot be stored: it is defined ins"):
        save(Inside(), tmp_path / "c")
    with pytest.raises(TypeError, match=r"Other cannot be stored: only numbers, str.*"):
        save(SVDCompleter(rank=Other()), tmp_path / "c")
    older = Redefined()
    newer = type("Redefined", (SVDCompleter,), {"__module__": __name__})
    with pytest.raises(TypeError, match="another class of this name was defined later"):
        save(older, tmp_path / "c")
    save(newer(), tmp_path / "c")
    assert type(load(tmp_path / "c")) is newer
    with pytest.raises(TypeError, match="cannot be stored"):
        save(SVDCompleter(rank=lambda: 2), tmp_path / "c")


class Other: ...


class Redefined(SVDCompleter): ...


def test_a_file_without_a_parameter(saved):
    def poorer(content):
        content["attributes"].pop("tol")
        return content

    forge(saved, poorer)
    with pytest.raises(StorageError, match=r"lacks the parameters \['tol'\]"):
        load(saved)


@pytest.mark.parametrize(
    "content",
    [
        {"$": "system", "name": "ls"},
        {"$": "dtype", "items": ["os"]},
        {"$": "enum", "id": 0, "class": "skmc.completers.svd.SVDCompleter", "value": 1},
        {"$": "again", "id": 7},
        {"$": "tuple", "items": [{"$": "array", "array": 999, "dtype": "<f8"}]},
        {"$": "optimizer", "items": ["Optimizer", {"$": "system"}]},
        {"$": "optimizer", "items": ["swa_utils", {}]},
        {
            "$": "object",
            "id": 0,
            "class": "skmc.new_rows.folding.FoldIn",
            "attributes": {},
        },
        {
            "$": "object",
            "id": 0,
            "class": "skmc.cells.scaling.Scaling",
            "attributes": {"shift": 1},
        },
        {
            "$": "extension",
            "id": 0,
            "class": "skmc.cells.scaling.Scaling",
            "items": [[], None],
        },
        {
            "$": "record",
            "class": "skmc.cells.scaling.Scaling",
            "items": [],
        },
        {"$": "numpy_generator", "id": 0, "items": ["RandomState", {}]},
        "a string",
    ],
    ids=str,
)
def test_forged_content(saved, content):
    forge(saved, lambda _: content)
    with pytest.raises(StorageError):
        load(saved)


def test_a_tensor_cannot_reach_beyond_its_memory(saved):
    def greedy(content):
        text = json.dumps(content)
        assert '"shape": [1, 6], "stride": [6, 1]' in text
        return json.loads(text.replace('"shape": [1, 6]', '"shape": [1, 6000]'))

    forge(saved, greedy)
    with pytest.raises(StorageError, match="out of bounds"):
        load(saved)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (archive.FORMAT + 1, r"format 5, newer than 4.*newer skmc"),
        (
            archive.FORMAT - 1,
            "format 3, which .* no longer reads; fit the completer again",
        ),
    ],
)
def test_other_formats_are_refused(saved, monkeypatch, number, message):
    completer = load(saved)
    monkeypatch.setattr(archive, "FORMAT", number)
    save(completer, saved)
    monkeypatch.undo()
    with pytest.raises(StorageError, match=message):
        load(saved)


def test_other_files(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with open(saved, "wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(StorageError, match="not written by skmc"):
        load(saved)
    archive.write(saved, "checkpoint", 1)
    with pytest.raises(StorageError, match="holds a checkpoint, not a completer"):
        load(saved)


def test_objects_that_cannot_be_stored_are_named(tmp_path):
    class Own:
        pass

    with pytest.raises(TypeError, match=r"Own cannot be stored: it is defined inside"):
        save(SVDCompleter(rank=Own()), tmp_path / "c")
    with pytest.raises(TypeError, match="save stores completers, got dict"):
        save({}, tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(archive.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(SVDCompleter(), saved)
    assert saved.read_bytes() == before
    assert [f.name for f in saved.parent.iterdir()] == [saved.name]


def test_new_files_have_the_usual_permissions(tmp_path):
    usual, path = tmp_path / "usual", tmp_path / "c"
    usual.touch()
    save(SVDCompleter(), path)
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o400)
    save(MeanCompleter(), path)
    assert path.stat().st_mode & 0o777 == 0o400


def test_write_errors_name_the_target_file(tmp_path):
    def fill(part):
        raise OSError(errno.ENOSPC, "No space left on device", str(part))

    path = tmp_path / "c"
    with pytest.raises(OSError, match="No space left") as caught:
        archive.replace_file(path, fill)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert not list(tmp_path.iterdir())


def roundtrip(value, **supplied):
    packer = Packer(supplied=supplied)
    content = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    return Unpacker(packer.arrays, supplied=supplied).unpack(content)


def test_numbers_are_restored_exactly():
    values = [0.1, -0.0, np.inf, -np.inf, 2**70, True, None, "ä", (1, [2.5]), {1: 2}]
    values += [np.float32(0.1), np.int8(3), np.bool_(True), slice(1, None)]
    again = roundtrip(values)
    assert repr(again) == repr(values)
    assert np.isnan(roundtrip(np.nan))
    for array in (
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(12)[::2],
        np.array(["a", None, 1.5], object),
        np.array([["a", "bc"]]),
        np.zeros((0, 3), np.uint64),
        np.arange(3, dtype=">f8"),
    ):
        found = roundtrip(array)
        assert found.dtype == array.dtype.newbyteorder("=")
        assert found.tolist() == array.tolist()
        assert found.flags.fnc == array.flags.fnc


DTYPES = {str(d) for d in vars(torch).values() if isinstance(d, torch.dtype)}
QUANTIZED = {name for name in DTYPES if name.startswith("torch.q")}


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("name", sorted(DTYPES - QUANTIZED))
def test_tensors_of_every_dtype(name, tmp_path):
    """Also through a file, and as views of the same memory in another dtype."""
    dtype = getattr(torch, name.removeprefix("torch."))
    data = torch.arange(64, dtype=torch.uint8) % 2
    expected = data[:32].clone()
    values = [data[:32].view(dtype), data, dtype]
    archive.write(tmp_path / "x", "test", values)
    for again, memory, same_dtype in (
        roundtrip(values),
        archive.read(tmp_path / "x", "test"),
    ):
        assert same_dtype is again.dtype is dtype
        assert again.view(torch.uint8).equal(expected)
        memory[0] = 1
        assert again.view(torch.uint8)[0] == 1


@pytest.mark.parametrize(
    "dtype", ["f2", "c8", "c16", "g", "u2", "u4", "U3", "M8[s]", "u1,f4"]
)
def test_arrays_of_every_dtype(dtype, tmp_path):
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(dtype))
    values = [array, array[0, 1]]
    archive.write(tmp_path / "x", "test", values)
    for again, scalar in (roundtrip(values), archive.read(tmp_path / "x", "test")):
        assert again.dtype == array.dtype
        assert again.flags.fnc
        assert np.array_equal(again, array)
        assert type(scalar) is type(array[0, 1])
        assert scalar == array[0, 1]


def test_containers_come_back_as_they_were():
    mixed = {1, "a", None, (2, "b"), 2.5}
    assert roundtrip(mixed) == mixed
    assert archive.fingerprint({"b", 1, "a"}) == archive.fingerprint({"a", "b", 1})
    shared, table = [1], {"x": 1}
    a, b, c, d, e = roundtrip([shared, (shared,), {"k": table}, table, list(shared)])
    assert a is b[0]
    assert a is not e
    assert c["k"] is d
    loop: list = []
    loop.append(loop)
    again = roundtrip(loop)
    assert again[0] is again
    ordered = OrderedDict([("b", 1), ("a", 2)])
    assert type(roundtrip(ordered)) is OrderedDict


class Point(NamedTuple):
    x: float


@pytest.mark.parametrize(
    "value",
    [
        Point(1.0),
        np.zeros(2, [("a", object)]),
        torch.eye(2).to_sparse(),
        len,
        lambda: None,
        b"bytes",
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_that_would_change_are_refused(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        roundtrip([value])


def test_views_share_memory_after_loading():
    whole = torch.arange(12.0).view(3, 4)
    a, b, c = roundtrip([whole, whole[1], whole.mT])
    b[0] = -1.0
    assert a[1, 0] == c[0, 1] == -1
    assert c.stride() == (1, 4)


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.Adam, {"betas": (0.8, 0.9), "fused": True}),
        (torch.optim.AdamW, {"amsgrad": True}),
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.LBFGS, {}),
    ],
)
def test_optimizers_continue_after_loading(optimizer, options):
    def step(weight, adam):
        def gradient():
            weight.grad = weight.detach() ** 2 - 1
            return float((weight.detach() ** 3 / 3 - weight.detach()).sum())

        adam.step(gradient)

    weight = torch.nn.Parameter(torch.tensor([0.5, 2.0]))
    adam = optimizer([weight], lr=0.1, **options)
    step(weight, adam)
    twin, other = roundtrip([weight, adam])
    assert other.param_groups[0]["params"][0] is twin
    for _ in range(3):
        step(weight, adam)
        step(twin, other)
        assert torch.equal(weight, twin)


def test_generators_continue_after_loading():
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    other = roundtrip(generator)
    assert other.initial_seed() == 3
    assert torch.equal(
        torch.rand(5, generator=generator), torch.rand(5, generator=other)
    )


def test_supplied_objects_are_not_stored():
    data = torch.ones(3)
    packer = Packer(supplied={"data": data})
    node = packer.pack([data])
    assert not packer.arrays
    assert Unpacker([], supplied={"data": data}).unpack(node)[0] is data


def test_a_pickle_file_is_named_as_such(tmp_path):
    (tmp_path / "fit.pkl").write_bytes(pickle.dumps({}))
    with pytest.raises(StorageError, match="is a pickle file"):
        load(tmp_path / "fit.pkl")
