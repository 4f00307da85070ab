"""The path from ``fit`` to the solver: one read, few steps, few classes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import COMPLETERS, low_rank, make

import skmc
from skmc import AIRCompleter, AutoCompleter, Entries, FactorizationCompleter
from skmc.cells import containers

ROOT = Path(skmc.__file__).parent
FILES = list(ROOT.rglob("*.py"))
STORAGES = {"Observed", "SparseObserved", "BlockObserved", "ChunkedRows", "Measured"}
MOST_CLASSES, MOST_FUNCTIONS, MOST_FILES, MOST_IGNORED = 4, 80, 25, 15
LINES_OF_FILE, LINES_OF_CLASS = 350, 250

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no observed cell",
    "ignore::sklearn.exceptions.ConvergenceWarning",  # fits are cut short
)


def holed(dtype=float):
    """A matrix with equal rows, an empty row, an empty and a constant column."""
    X = (low_rank(24, 7) + 3).astype(dtype)
    X[np.random.RandomState(0).uniform(size=X.shape) < 0.2] = np.nan
    X[5] = X[4]
    X[9] = np.nan
    X[:, 3] = np.nan
    X[~np.isnan(X[:, 2]), 2] = 2.0
    return X


KINDS = {
    "float64": (holed, {}),
    "float32": (lambda: holed(np.float32), {}),
    "frame": (lambda: pd.DataFrame(holed()).add_prefix("c"), {}),
    "masked": (lambda: np.ma.masked_invalid(holed()), {}),
    "sparse": (lambda: Entries(holed()), {}),
    "every value": (holed, {"keep_observed": False}),
    "columns dropped": (holed, {"keep_empty_features": False, "add_indicator": True}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_fit_transform_is_fit_and_transform(cls, kind):
    """The results are equal to the last bit."""
    data, params = KINDS[kind]
    # "apgl" takes weights.
    completer, X = make(cls, max_iter=8, solver="apgl", **params), data()
    known = [{}]
    if "cell_weight" in cls.takes() and kind in ("float64", "float32"):
        known.append({"cell_weight": np.random.RandomState(1).randint(3, size=X.shape)})
    for given in known:
        at_once = completer.fit_transform(X, **given)
        again = completer.fit(X, **given).transform(X)
        np.testing.assert_array_equal(np.asarray(at_once), np.asarray(again))
        assert np.asarray(at_once).dtype == np.asarray(again).dtype


@pytest.mark.parametrize(
    ("completer", "most"),
    [
        (AIRCompleter(max_iter=5), 1),
        (FactorizationCompleter(2, lambda_ridge=0.1), 1),
        (AutoCompleter({"a": make(AIRCompleter), "b": make(AIRCompleter)}), None),
    ],
    ids=["AIR", "factorization", "stack"],
)
def test_cells_are_read_once(completer, most, monkeypatch):
    """A stack reads them once, and each of its fits once more."""
    reads, fits = [], []
    real, fit = containers._as_array, type(make(AIRCompleter))._run_fit
    monkeypatch.setattr(
        containers, "_as_array", lambda *args: reads.append(1) or real(*args)
    )

    def counting(self, *args, **known):
        fits.append(1)
        return fit(self, *args, **known)

    monkeypatch.setattr(skmc.base.BaseCompleter, "_run_fit", counting)
    completer.fit_transform(holed()[:, :3])
    assert len(reads) <= (most or len(fits))


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_few_classes(cls):
    own = [base for base in cls.__mro__ if base.__module__.startswith("skmc")]
    assert len(own) <= MOST_CLASSES, own


def test_no_isinstance_checks_of_storage():
    for path in FILES:
        if path.relative_to(ROOT).parts[0] in ("cells", "blocks"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "isinstance":
                asked = set(re.findall(r"\w+", ast.unparse(node.args[1])))
                assert not asked & STORAGES, f"{path}:{node.lineno}"
            if called == "getattr":
                assert ast.unparse(node.args[0]) not in ("cells", "data"), path


def test_files_and_classes_are_short():
    """Docstrings count; the long files have long ones."""
    for path in FILES:
        source = path.read_text()
        assert len(source.splitlines()) <= LINES_OF_FILE, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                length = node.end_lineno - node.lineno + 1
                assert length <= LINES_OF_CLASS, f"{path}: {node.name}"


def test_few_exceptions_from_type_checks():
    ignored = sum(path.read_text().count("type: ignore") for path in FILES)
    assert ignored <= MOST_IGNORED


WAY = """
import sys, pathlib, numpy as np, skmc
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = str(pathlib.Path(skmc.__file__).parent)
PRODUCTS = ("mm", "matmul", "linear", "einsum", "linalg_")


class Product(Exception):
    pass


class Stop(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(name in str(function) for name in PRODUCTS):
            raise Product
        return function(*args, **(kwargs or {}))


def getters():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("skmc")]
    for module in modules:
        for cls in vars(module).values():
            for member in vars(cls).values() if isinstance(cls, type) else ():
                getter = getattr(member, "fget", None) or getattr(member, "func", None)
                yield getattr(getter, "__code__", None)


completer = skmc.CLASS(random_state=0)
X = np.random.RandomState(0).randn(30, 20)
X[np.random.RandomState(1).uniform(size=X.shape) < 0.3] = np.nan
properties, seen = set(getters()), set()


def profile(frame, event, argument):
    code = frame.f_code
    own = code.co_filename.startswith(ROOT) and code.co_name[0] != "<"
    if event == "call" and own and code not in properties:
        seen.add(code)


sys.setprofile(profile)
try:
    with Stop():
        completer.fit_transform(X)
except Product:
    sys.setprofile(None)
print(len(seen), len({code.co_filename for code in seen}))
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["AIRCompleter", "FactorizationCompleter"])
def test_few_steps_to_the_first_product(name):
    """Counts distinct functions, without comprehensions and properties, and files."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WAY.replace("CLASS", name)],
        check=True,
        capture_output=True,
        text=True,
    )
    functions, files = map(int, done.stdout.split())
    assert functions <= MOST_FUNCTIONS and files <= MOST_FILES
