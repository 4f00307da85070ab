"""What each step of a solver asks of a device, and what a device would wait for.

A GPU runs a queue of operations. Each takes some time to be launched, a copy from the
host takes longer, and an answer that the host waits for empties the queue. The table
limits the means of the second and later steps of the fits below.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
import pytest
from conftest import make
from second_device import DEVICE, backend
from test_fits import SETTINGS, matrix

from skmc import NonlocalCompleter, sensing
from skmc.base import IterativeCompleter
from skmc.solvers import Solver

pytestmark = pytest.mark.second_device


class Budget(NamedTuple):
    """Largest means per step."""

    calls: int
    waits: int = 0
    why: str = ""  # why it waits, or copies
    copies: int = 0  # from the host


SHAPE = "how many singular values remain is a shape"
CHOSEN = "the values decide which decomposition is precise enough and the cheapest"
LIMITED = "the number of cells with limits is a shape"
ROWS = "rows of similar length are solved together, and lengths are shapes"
RANDOM = "random numbers are drawn by the CPU, so that all devices have the same"
CG = "conjugate gradients end at a tolerance"
BUDGETS = {
    "ALS": Budget(560, 17, ROWS),
    "CensoredEM": Budget(680, 1, LIMITED),
    "CensoredFactorEM": Budget(570, 1, LIMITED),
    "CodeDescent": Budget(245),  # of 1 and of 8 mini-batches
    "Descent": Budget(34),
    "DouglasRachford": Budget(41, 4, CHOSEN),
    "EM": Budget(220),  # 35 for each group of rows with about as many holes
    "FactorEM": Budget(100),
    "Gibbs": Budget(400, 18, ROWS + "; " + RANDOM, copies=21),
    "GradientFlow": Budget(145, 4, SHAPE + ", of SpectralNetwork"),
    "HardRank": Budget(15),
    "InexactALM": Budget(65, 3, SHAPE),
    "LogDet": Budget(270, 12, f"{CG}, {SHAPE}; {RANDOM}", copies=1),
    "NCARL": Budget(110, 5, "decompositions report errors; CG ends at a tolerance"),
    "NonlocalLowRank": Budget(68, 1, "decompositions report errors"),
    "NonsmoothDescent": Budget(260, 18, "steps are tried until one is short enough"),
    "PatchTraining": Budget(82, 0, RANDOM, copies=3),
    "ProximalGradient": Budget(78, 4, CHOSEN),
    "RowDescent": Budget(42),
    "SingularValueThresholding": Budget(48, 3, SHAPE),
    "SoftImpute": Budget(160, 8, SHAPE + "; an objective that rises is seen"),
    "SpectralLowRank": Budget(105, 3, "decompositions and solutions report errors"),
    "TruncatedADMM": Budget(54, 5, SHAPE),
    "TruncatedAPGL": Budget(85, 3, SHAPE),
    "VariableProjection": Budget(  # 30 for the pseudo-inverses of rows with few cells
        200, 20, "a factorization can fail; damping follows the objective"
    ),
    "WeightedTruncated": Budget(19, 1, "decompositions report errors"),
    "_AdaptiveDescent": Budget(37),
    "_LinkedDescent": Budget(57),
}


def all_solvers() -> list[type[Solver]]:
    found, todo = [], [Solver]
    while todo:
        for cls in todo.pop().__subclasses__():
            todo.append(cls)
            if cls.__module__.startswith("skmc.") and not inspect.isabstract(cls):
                found.append(cls)
    # Those of blocks and chunks compute where these are, which is on the host.
    return [
        cls
        for cls in found
        if "skmc.blocks" not in cls.__module__ and "Chunked" not in cls.__name__
    ]


def fits():
    """Of every iterative completer and every sensing regressor."""
    X = matrix(60, 40)
    for cls, params in SETTINGS:
        if issubclass(cls, IterativeCompleter):
            quick = {"max_iter": 30, "early_stopping": False, "tol": 0.0, **params}
            known = cls().get_params()
            quick = {name: value for name, value in quick.items() if name in known}
            yield lambda c=make(cls, **quick, device=DEVICE): c.fit(X)
    cube = NonlocalCompleter(channels=5, n_spectra=3, device=DEVICE)
    yield lambda: cube.fit(X)
    rng = np.random.RandomState(0)
    A = rng.randn(30, 6, 5)
    y = np.tensordot(A, rng.randn(6, 1) @ rng.randn(1, 5))
    for name in sensing.__all__:
        cls = getattr(sensing, name)
        if name.endswith("Regressor"):
            nuclear = [{}, {"lambda_nuclear": 0}] if "Nuclear" in name else [{}]
            for params in nuclear:
                yield lambda c=make(cls, max_iter=30, device=DEVICE, **params): c.fit(
                    A, y
                )


def steps_of(fits):
    """Mean counts of the second and later steps, by the class of the solver."""
    device = backend()
    found, n_steps = defaultdict(Counter), Counter()
    begun = {}  # keeps the solvers, so that no other one gets the same id
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cls in all_solvers():
            if "step" not in vars(cls):
                continue

            def step(self, data, state, original=cls.step):
                before = Counter(device.counts())
                new = original(self, data, state)
                if id(self) in begun and data.device.type == "second":
                    name = type(self).__name__
                    after = Counter(device.counts())
                    after.subtract(before)
                    found[name].update(after)
                    n_steps[name] += 1
                begun[id(self)] = self
                return new

            patch.setattr(cls, "step", step)
        for fit in fits:
            fit()
    return {
        name: {what: n / n_steps[name] for what, n in counts.items() if n}
        for name, counts in found.items()
    }


@pytest.fixture(scope="module")
def steps():
    return steps_of(fits())


# Those that inherit a step have its budget, or one of their own.
SOLVERS = [
    cls
    for cls in all_solvers()
    if ("step" in vars(cls) and inspect.isfunction(cls.step)) or cls.__name__ in BUDGETS
]


@pytest.mark.parametrize("cls", SOLVERS, ids=lambda cls: cls.__name__)
def test_steps_keep_to_their_budget(cls, steps):
    assert cls.__name__ in steps, f"no fit of this test takes a step of {cls.__name__}"
    found, budget = steps[cls.__name__], BUDGETS[cls.__name__]
    assert found["calls"] <= budget.calls, found
    assert found.get("waits", 0) <= budget.waits, found
    assert found.get("from host", 0) <= budget.copies, found
