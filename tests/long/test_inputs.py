"""Inputs that are odd or wrong, each drawn from its number.

Each is completed, with its cells as they were, or refused by an error that names the
fault. Refusals are expected of what is wrong, and of nothing else. ``--inputs N`` tries
N inputs of each completer, ``--input NUMBER`` repeats one.
"""

from __future__ import annotations

import re
import signal
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS
from containers import (
    BUILD,
    NOT_IN_FRAMES,
    QUICK,
    check_completion,
    content,
    lists,
    pandas_frame,
    sparse,
    with_nan,
)

from skmc import Entries
from skmc.checks import quick

pd = import_module("pandas")
pytestmark = pytest.mark.long
SECONDS = 60  # of processor time, for one input

FLOATS = [np.float64, np.float32, np.float16, np.longdouble, ">f8", ">f4", object]
INTEGERS = [np.int8, np.int16, np.int64, np.uint8, np.uint32, np.uint64, ">i4"]
DTYPES = [*FLOATS, *INTEGERS, np.bool_]


def _read_only(values, observed):
    array = with_nan(values, observed).copy()
    array.flags.writeable = False
    return array


def _shuffled(values, observed):
    rows, cols = np.nonzero(observed)
    order = np.argsort((rows * 31 + cols * 17) % 7)
    rows, cols = rows[order], cols[order]
    cells = values[rows, cols].astype(float)
    return Entries.from_triplets(rows, cols, cells, values.shape)


def _labeled(values, observed):
    frame = pandas_frame(values, observed)
    frame.columns = [f"column {k}\n" for k in range(frame.shape[1])]
    return frame.set_index(pd.Index(["twice"] * len(frame)))


CONTAINERS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    **BUILD,
    "Fortran": lambda v, o: np.asfortranarray(with_nan(v, o)),
    "reversed": lambda v, o: with_nan(v, o)[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
    "big-endian": lambda v, o: with_nan(v, o).astype(">f8"),
    "np.matrix": lambda v, o: np.asmatrix(with_nan(v, o)),
    "tuples": lambda v, o: tuple(map(tuple, lists(v, o))),
    "NaN under the mask": lambda v, o: np.ma.masked_array(
        np.where(o, v.astype(float), np.nan), ~o
    ),
    "infinity under the mask": lambda v, o: np.ma.masked_array(
        np.where(o, v.astype(float), np.inf), ~o, fill_value=-5.0, hard_mask=True
    ),
    "objects with pandas.NA": lambda v, o: np.where(
        o, v.astype(object), np.array(pd.NA, object)
    ),
    "pandas with labels": _labeled,
    "pandas nullable": lambda v, o: pandas_frame(v.astype(float), o).astype("Float64"),
    "pandas objects": lambda v, o: pandas_frame(v.astype(float), o).astype(object),
    "pandas of Arrow": lambda v, o: pandas_frame(v.astype(float), o).astype(
        "double[pyarrow]"
    ),
    "tensor with gradient": lambda v, o: torch.tensor(
        with_nan(v.astype(float), o), requires_grad=True
    ),
    "transposed tensor": lambda v, o: torch.tensor(with_nan(v.astype(float), o).T).T,
    "CSR": lambda v, o: sparse(v, o).tocsr(),
    "CSC matrix": lambda v, o: sp.csc_matrix(sparse(v, o)),
    "LIL": lambda v, o: sparse(v, o).tolil(),
    "shuffled entries": _shuffled,
}


class Fault(NamedTuple):
    """A wrong input, made of a valid one, and the message of its refusal."""

    make: Callable[[np.ndarray, np.ndarray, np.random.Generator], Any]
    message: str


def _with_cell(cell: object) -> Callable:
    def make(values, observed, rng):
        X = with_nan(values.astype(float), observed).astype(object)
        X[tuple(rng.integers(X.shape))] = cell
        # Inference of dates by pandas 2 fails on integers beyond floats.
        return pd.DataFrame(X, dtype=object) if rng.random() < 0.5 else X

    return make


def _nothing(values, observed, rng):
    names = sorted({*CONTAINERS} - {"polars", "pandas of Arrow"})
    name = names[rng.integers(len(names))]
    return CONTAINERS[name](values.astype(float), np.zeros_like(observed))


def _ragged(values, observed, rng):
    return [*lists(values.astype(float), observed), [1.0] * (values.shape[1] + 1)]


def _twice(values, observed, rng):
    row, col = rng.integers(values.shape)
    return sp.coo_array(([1.0, 2.0], ([row] * 2, [col] * 2)), shape=values.shape)


def _infinite(values, observed, rng):
    X = with_nan(values.astype(float), observed).copy()
    X[tuple(rng.integers(X.shape))] = rng.choice([np.inf, -np.inf])
    names = ["array", "list", "pandas", "polars", "tensor", "sparse", "masked"]
    return CONTAINERS[names[rng.integers(len(names))]](X, ~np.isnan(X))


def _too_large(values, observed, rng):
    X = with_nan(values.astype(float), observed).copy()
    X[tuple(rng.integers(X.shape))] = rng.choice([1e200, -1.7e308])
    return X


def _dates(values, observed, rng):
    days = np.datetime64("2020-01-01") + rng.integers(999, size=values.shape)
    return pd.DataFrame(days) if rng.random() < 0.5 else days


OTHERS = [None, "text", 5, {"a": [1.0]}, {1.0}, iter([[1.0]]), np.float64(3), object()]
FAULTS = {
    "text": Fault(_with_cell("four"), "'four' at row .* is not a number"),
    "a number as text": Fault(_with_cell("4"), "'4' at row .* is text; convert"),
    "bytes": Fault(_with_cell(b"4"), "b'4' at row .* is text; convert"),
    "an object": Fault(_with_cell({}), "holds {} at row .* is not a number"),
    "a long integer": Fault(
        _with_cell(10**400), "holds an integer of 401 digits at row"
    ),
    "a complex number": Fault(
        lambda v, o, rng: with_nan(v, o).astype(complex) * 1j, "Complex data not"
    ),
    "dates": Fault(_dates, "X holds dates or durations"),
    "infinity": Fault(_infinite, "contains infinity at row"),
    "a square that overflows": Fault(_too_large, "contains a number above 1e.154"),
    "nothing observed": Fault(_nothing, "no observed cell"),
    "a ragged list": Fault(_ragged, "is not rectangular|numbers? of cells"),
    "one axis": Fault(lambda v, o, rng: v[0].astype(float), "Expected 2D array"),
    "three axes": Fault(lambda v, o, rng: v[None].astype(float), "with dim 3"),
    "no rows": Fault(lambda v, o, rng: v[:0].astype(float), "0 sample"),
    "no columns": Fault(lambda v, o, rng: v[:, :0].astype(float), "0 feature"),
    "a cell twice": Fault(_twice, "some cells more than once"),
    "a column's name twice": Fault(
        lambda v, o, rng: pd.concat([pandas_frame(v.astype(float), o)] * 2, axis=1),
        "X has 2 columns named",
    ),
    "a sparse tensor": Fault(
        lambda v, o, rng: torch.tensor(v.astype(float)).to_sparse(), "sparse tensor"
    ),
    "no container": Fault(
        lambda v, o, rng: OTHERS[rng.integers(len(OTHERS))], "must be a matrix in"
    ),
}


def numbers(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Floats of one kind: usual, constant, tiny, huge, of all sizes, repeated."""
    X = rng.standard_normal(shape)
    kind = rng.integers(10)
    if kind == 0:
        X[:] = rng.choice([0.0, -0.0, 1.0, -7.5, 1e100, 1e-300])
    elif kind == 1:
        X *= rng.choice([5e-324, 1e-310, 1e-150, 1e-30])
    elif kind == 2:
        X *= rng.choice([1e18, 1e100, 1e150])
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-150, 150, shape)
    elif kind == 4:
        X *= 10.0 ** rng.uniform(-9, 9, shape[1])  # columns of different units
    elif kind == 5:
        X = np.round(X)
    elif kind == 6:
        X = X[rng.integers(shape[0], size=shape[0])]  # rows that occur twice
    elif kind == 7:
        X[:, rng.integers(shape[1], size=shape[1])] = X[:, :1]
    elif kind == 8:
        X = X[:, :1] @ X[:1] + 1e9
    return X


def table(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values and observed cells."""
    side = [1, 2, 3, 5, 8, 13]
    shape = (int(rng.choice(side)), int(rng.choice(side)))
    if rng.random() < 0.03:
        shape = (40, 2) if rng.random() < 0.5 else (2, 40)
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if rng.random() < 0.3 else (0, 5)
        values = rng.integers(low, high, shape, dtype.newbyteorder("="), endpoint=True)
    elif dtype.kind == "b":
        values = rng.random(shape) < 0.5
    else:
        values = numbers(rng, shape)
        if dtype.kind == "f" and dtype.itemsize <= 4:
            largest = 6e4 if dtype.itemsize == 2 else 1e18
            values = values.clip(-largest, largest)
    observed = rng.random(shape) < rng.choice([0.2, 0.5, 0.75, 0.75, 0.9, 1.0])
    if rng.random() < 0.1:
        observed[:] = False
    if rng.random() < 0.2:
        observed[rng.integers(shape[0])] = False
    if rng.random() < 0.2:
        observed[:, rng.integers(shape[1])] = False
    if not observed.any():
        observed[tuple(rng.integers(shape))] = True
    return values.astype(dtype), observed


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(cls: type, number: int) -> str:
    """Fit a completer to the input of this number: "completed" or "refused".

    Another error, an expected one that does not come, or a wrong completion is raised.
    """
    rng = np.random.default_rng([zlib.crc32(cls.__name__.encode()), number])
    completer = quick(
        cls(),
        **QUICK,
        scaling=["auto", "columns", "global", None][rng.integers(4)],
        early_stopping=bool(rng.random() < 0.3),
        keep_empty_features=bool(rng.random() < 0.7),
    )
    values, observed = table(rng)
    with warnings.catch_warnings(), time_limit():
        warnings.simplefilter("ignore")
        if rng.random() < 0.2:
            name = sorted(FAULTS)[rng.integers(len(FAULTS))]
            return wrong(completer, FAULTS[name], values, observed, rng)
        name = sorted(CONTAINERS)[rng.integers(len(CONTAINERS))]
        frame = next((kind for kind in NOT_IN_FRAMES if kind in name), "")
        if frame and values.dtype not in (np.float64, np.float32, np.int64):
            values = values.astype(float)
        if "tensor" in name and values.dtype.kind == "f":
            values = values.astype(values.dtype.newbyteorder("=")).astype(float)
        elif name == "tensor":
            values = values.astype(float)
        try:
            check_completion(completer, CONTAINERS[name], values, observed)
        except ValueError as error:  # integers above 2**53 among objects
            if "which a float cannot represent" not in str(error):
                raise
            return "refused"
        return "completed"


def wrong(
    completer: Any,
    fault: Fault,
    values: np.ndarray,
    observed: np.ndarray,
    rng: np.random.Generator,
) -> str:
    """See that a wrong input is refused, and not changed."""
    X = fault.make(values, observed, rng)
    before = content(X)
    try:
        completer.fit_transform(X)
    except (ValueError, TypeError) as error:
        if not re.search(fault.message, str(error)):
            raise
        assert content(X) == before, "the input is changed"
        return "refused"
    raise AssertionError("a wrong input is completed")


@pytest.mark.parametrize("cls", COMPLETERS)
def test_odd_and_wrong_inputs(cls, pytestconfig):
    if (one := pytestconfig.getoption("--input")) is not None:
        attempt(cls, one)
        return
    lost = []
    for number in range(pytestconfig.getoption("--inputs")):
        try:
            attempt(cls, number)
        except Exception as error:
            lost.append(f"--input {number}: {type(error).__name__}: {error}")
    assert not lost, "\n".join(lost)
