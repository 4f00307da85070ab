"""Problems and containers that several test files share."""

from __future__ import annotations

import os
from functools import cache, wraps

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_limits

from skmc import Entries, patterns
from skmc.checks import all_completers

COMPLETERS = all_completers()

# One thread in each process and in those that it starts: the matrices here are far too
# small to share out.
THREADS = int(os.environ.setdefault("SKMC_TEST_THREADS", "1"))
os.environ["OMP_NUM_THREADS"] = str(THREADS)
torch.set_num_threads(THREADS)
threadpool_limits(THREADS)  # NumPy and SciPy

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
ROUNDING = 1e-6  # the largest relative tolerance that stands for rounding


def pytest_addoption(parser):
    parser.addoption(
        "--margin",
        action="store_true",
        help="divide tolerances of rounding in assert_allclose by ten, so that no test "
        "passes on one processor and fails on another",
    )


def pytest_configure(config):
    if not config.getoption("--margin"):
        return
    plain = np.testing.assert_allclose

    @wraps(plain)
    def with_margin(actual, desired, rtol=1e-7, atol=0, **options):
        if rtol <= ROUNDING:
            rtol, atol = rtol / 10, atol / 10
        plain(actual, desired, rtol, atol, **options)

    np.testing.assert_allclose = with_margin


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that there is."""
    return request.param


def pytest_terminal_summary(terminalreporter):
    if "cuda" not in DEVICES:
        terminalreporter.write_line("No CUDA device: tests that take one ran on a CPU.")


def make(cls, **params):
    """An instance that is quick and reproducible, whatever it has parameters for."""
    quick = {
        "random_state": 0,
        "max_iter": 60,
        "n_draws": 20,
        "n_burn_in": 5,
        "n_estimators": 5,
        "device": "cpu",
        "candidates": ("means", "SVD", "KNN"),
        **params,
    }
    names = cls().get_params()
    return cls(**{name: value for name, value in quick.items() if name in names})


def low_rank(n_rows=60, n_cols=40, rank=2, seed=0):
    rng = np.random.RandomState(seed)
    return rng.randn(n_rows, rank) @ rng.randn(rank, n_cols)


@pytest.fixture(scope="session")
def recovery():
    """The shared problem: 60 x 40 of rank 2, 30 % hidden at random."""
    truth = low_rank()
    return truth, patterns.random(truth, 0.3, random_state=1)


def small_problem():
    truth = low_rank(12, 6) + 3
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    return truth, np.ma.masked_array(np.where(hidden, 1e9, truth), hidden)


@pytest.fixture
def small():
    """12 x 6 with every fifth cell missing; the truth and the masked array."""
    return small_problem()


@cache
def fitted_on_small(cls):
    """``make(cls)``, fitted on ``small``; shared, so it must not be changed."""
    return make(cls).fit(small_problem()[1])


def _sparse(masked):
    rows, cols = np.nonzero(~masked.mask)
    return sp.csr_array((masked.data[rows, cols], (rows, cols)), shape=masked.shape)


def _nan(masked):
    return masked.filled(np.nan)


CONTAINERS = {
    "masked": lambda masked: masked,
    "array": _nan,
    "list with None": lambda masked: [
        [None if np.isnan(cell) else cell for cell in row]
        for row in _nan(masked).tolist()
    ],
    "fortran": lambda masked: np.asfortranarray(_nan(masked)),
    "pandas": lambda masked: pd.DataFrame(_nan(masked)).set_axis(
        list("abcdef"), axis=1
    ),
    "pandas NA": lambda masked: pd.DataFrame(
        _nan(masked), columns=list("abcdef")
    ).astype("Float64"),
    "polars": lambda masked: pl.DataFrame(
        _nan(masked), schema=list("abcdef"), nan_to_null=True
    ),
    "sparse csr": _sparse,
    "sparse coo": lambda masked: _sparse(masked).tocoo(),
    "tensor": lambda masked: torch.tensor(_nan(masked)),
    "entries": Entries,
}
