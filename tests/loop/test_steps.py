"""Between two checks of the loop, no solver reads a number from the device.

On a CPU nothing waits for anything, but the operators that would are seen all the same:
each `Solver.step` of the fits below runs under a mode that counts them. The second
step of each solver is also taken on Torch's device "meta", which has shapes but no
numbers: it fails if a tensor of the CPU remains, or if a number is read.
"""

from __future__ import annotations

import copyreg
import inspect
import io
import warnings
from collections import defaultdict

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from conftest import COMPLETERS, low_rank, make
from torch.utils._python_dispatch import TorchDispatchMode

from skmc import (
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    SVDCompleter,
    sensing,
)
from skmc.base import IterativeCompleter
from skmc.solvers import Solver

# Operators whose answer the host has to wait for: numbers, and shapes that depend on
# values. `aten::index` counts with boolean masks.
WAITING = {
    "_local_scalar_dense",
    "item",
    "nonzero",
    "masked_select",
    "is_nonzero",
    "equal",
    "_unique2",
    "unique_dim",
    "repeat_interleave.Tensor",
}
# Solvers that have to wait, and why.
SHAPE = "how many singular values remain is a shape"
CHOSEN = "the values decide which decomposition is precise enough and the cheapest"
ROWS = (
    "rows of similar length are solved together, and lengths are shapes; a Cholesky "
    "factor that rounding made impossible is made again"
)
MAY_WAIT = {
    "InexactALM": SHAPE,
    "SingularValueThresholding": SHAPE,
    "TruncatedADMM": SHAPE,
    "TruncatedAPGL": SHAPE,
    "SoftImpute": SHAPE + "; a step that raises the objective is taken again",
    "ProximalGradient": CHOSEN,
    "DouglasRachford": CHOSEN,
    "GradientFlow": "only for `SpectralNetwork`: " + SHAPE,
    "ALS": ROWS,
    "ChunkedEM": "chunks are computed by Dask",
    "ChunkedSVD": "chunks are computed by Dask; " + ROWS,
    "Gibbs": ROWS,
    "NonsmoothDescent": "tries lengths of a step until one is short enough",
}
VARIANTS = {
    "BayesianFactorizationCompleter": [{}, {"heteroscedastic": True}],
    "TNNRCompleter": [{"rank": 2}, {"solver": "apgl"}, {"rank": 2, "weighted": True}],
    "SVTCompleter": [{}, {"delta": 1.2}],
    "DMFCompleter": [{"regularizer": "tv"}, {"regularizer": "dirichlet"}],
    "GaussianCompleter": [{}, {"rank": 2}],
    "NCARLCompleter": [{}, {"lambda_noise": 0.1}],
}


class Waits(TorchDispatchMode):
    """Counts what would wait for a device."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__
        masked = func.overloadpacket.__name__ in ("index", "index_put", "index_put_")
        if masked and any(
            index is not None and index.dtype in (torch.bool, torch.uint8)
            for index in args[1]
        ):
            self.found.append(name)
        if name in WAITING or func.overloadpacket.__name__ in WAITING:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def beginning():
    """A generator of the CPU."""
    return torch.Generator().manual_seed(0)


def on_meta(things):
    """A copy whose tensors are on the device "meta"; generators stay on the CPU."""
    file, table = io.BytesIO(), copyreg.dispatch_table
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(table, torch.Generator, lambda generator: (beginning, ()))
        torch.save(things, file)
    file.seek(0)
    return torch.load(file, map_location="meta", weights_only=False)


def all_solvers() -> list[type[Solver]]:
    found, todo = [], [Solver]
    while todo:
        for cls in todo.pop().__subclasses__():
            todo.append(cls)
            if cls.__module__.startswith("skmc.") and not inspect.isabstract(cls):
                found.append(cls)
    return found


def here(fit, collection):
    """Compute the chunks in the thread that watches."""
    with dask.config.set(scheduler="synchronous"):
        return fit(collection)


def fits():
    """Of every iterative completer and every sensing regressor."""
    rng = np.random.RandomState(0)
    X = low_rank(30, 12) + 0.1 * rng.randn(30, 12)
    holes = np.where(rng.rand(30, 12) < 0.3, np.nan, X)
    for cls in COMPLETERS:
        if issubclass(cls, IterativeCompleter):
            for params in VARIANTS.get(cls.__name__, [{}]):
                yield lambda c=make(cls, max_iter=30, **params): c.fit(holes)
    stored = Entries.from_memmap(sp.csr_array(X), block_cells=100)
    yield lambda: FactorizationCompleter(2, lambda_ridge=0.1, max_iter=3).fit(stored)
    for completer in (SVDCompleter(2, max_iter=3), GaussianCompleter(2.0, max_iter=3)):
        yield lambda c=completer: here(c.fit, da.from_array(holes, chunks=(10, 12)))
    A = rng.randn(30, 6, 5)
    y = np.tensordot(A, low_rank(6, 5, 1))
    for name in sensing.__all__:
        cls = getattr(sensing, name)
        if not name.endswith("Regressor"):
            continue
        variants = [{}, {"lambda_nuclear": 0}] if name.startswith("Nuclear") else [{}]
        for params in variants:
            yield lambda c=make(cls, max_iter=30, **params): c.fit(A, y)


@pytest.fixture(scope="module")
def waits():
    """What each solver waited for in its steps; a solver without steps is missing."""
    found, taken = defaultdict(list), defaultdict(int)
    patch = pytest.MonkeyPatch()
    for cls in all_solvers():
        if "step" not in vars(cls):
            continue

        def step(self, data, state, original=cls.step):
            name = type(self).__name__
            taken[self] += 1
            if name not in MAY_WAIT and taken[self] == 2:  # the optimizer has begun
                solver, cells, before = on_meta((self, data, state))
                original(solver, cells, solver.resume(cells, before))
            with Waits() as mode:
                new = original(self, data, state)
            found[name] += mode.found
            return new

        patch.setattr(cls, "step", step)
    with patch.context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in fits():
            fit()
    patch.undo()
    return dict(found)


@pytest.mark.parametrize("cls", all_solvers(), ids=lambda cls: cls.__name__)
def test_steps_do_not_synchronize_with_the_device(cls, waits):
    assert cls.__name__ in waits, f"no fit of this test takes a step of {cls.__name__}"
    waited = sorted(set(waits[cls.__name__]))
    if cls.__name__ in MAY_WAIT:
        assert waited, f"{cls.__name__} does not wait any more; take it off the list"
    else:
        assert not waited, f"{cls.__name__} waits for {waited}"
