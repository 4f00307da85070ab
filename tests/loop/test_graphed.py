"""Steps as one graph: replays equal single steps.

Without a CUDA device, a graph is imitated: a mode records all operators with their
tensors, and a replay runs them again and writes the results into the same tensors.
Python code is not run again, numbers that it computed stay as they were, and nothing
may be read. As with CUDA, a capture itself computes nothing.
"""

from __future__ import annotations

import copy
import logging
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import DEVICES, low_rank, make
from test_steps import WAITING, all_solvers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    BiBNNCompleter,
    DMFCompleter,
    LinkedFactorizationCompleter,
    NSRCompleter,
    Observed,
    SNNCompleter,
    SVDCompleter,
)
from skmc.linalg import Randomness
from skmc.loop import Run, cuda_graphs, graphed
from skmc.loop.contents import Contents
from skmc.models import FactorProduct
from skmc.sensing import FactorizedSensingRegressor
from skmc.solvers import Descent, Solver
from skmc.terms import AdaptiveDirichletEnergy, SquaredError


def tensors_in(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def memory(tensor) -> int:
    if tensor.layout is torch.sparse_csr:
        tensor = tensor.values()
    return tensor.untyped_storage().data_ptr()


def bare(leaf):
    """The same memory, without a graph and without a count of versions."""
    return leaf.data if isinstance(leaf, torch.Tensor) else leaf


class Recorded(TorchDispatchMode):
    """All operators, and the memory that was there before as it was."""

    def __init__(self):
        super().__init__()
        self.calls, self.before, self.own = [], {}, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if {func.__name__, func.overloadpacket.__name__} & WAITING:
            raise RuntimeError(f"{func} waits for the device")
        given = tensors_in((args, kwargs))
        for tensor in given:
            if tensor.layout is torch.strided and memory(tensor) not in self.own:
                whole = torch.empty(0, dtype=torch.uint8)
                whole.set_(tensor.untyped_storage())
                self.before.setdefault(memory(tensor), (whole, whole.clone()))
        now = tree_map(bare, (args, kwargs))  # with the present shapes
        result = func(*args, **kwargs)
        old = {memory(tensor) for tensor in given}
        fresh = [memory(tensor) not in old for tensor in tensors_in(result)]
        self.own |= {memory(t) for t in tensors_in(result)} - old - set(self.before)
        self.calls.append((func, *now, tree_map(bare, tensors_in(result)), fresh))
        return result


def imitated(function, generators):
    """A `Capture`."""
    with Recorded() as record:
        function()
    for now, before in record.before.values():
        now.copy_(before)

    @torch.no_grad()
    def replay():
        for func, args, kwargs, results, fresh in record.calls:
            again = func(*tree_map(bare, args), **tree_map(bare, kwargs))
            for old, new, own in zip(results, tensors_in(again), fresh, strict=True):
                if own:
                    old.copy_(new)

    return replay


@pytest.fixture
def graphs(monkeypatch):
    """Run everything with graphs; the solvers that were replayed."""
    found, call = set(), graphed.Graphed.__call__

    def watched(self, state):
        answer = call(self, state)
        if self.replay is not None:
            found.add(type(self.solver))
        return answer

    monkeypatch.setattr(graphed.Graphed, "__call__", watched)
    monkeypatch.setattr("skmc.loop.graphed.capture_for", lambda data: imitated)
    return found


# Fits, and the solver whose steps are replayed; None where they are taken one by one.
CASES = [
    (AIRCompleter, {}, "Descent"),
    (
        AIRCompleter,
        {"depth": 3, "adjacency": "global", "blocks": {3: 0.1}},
        "Descent",
    ),
    (AIRCompleter, {"depth": 1, "early_stopping": True}, "Descent"),
    (AIRCompleter, {"laplacian_every": 3}, None),  # 25 is no multiple
    (AIRCompleter, {"neighbors": 4}, None),  # they are found again in between
    (DMFCompleter, {"regularizer": "tv"}, "Descent"),
    (DMFCompleter, {"regularizer": "dirichlet"}, "Descent"),
    (BiBNNCompleter, {}, "Descent"),
    (
        LinkedFactorizationCompleter,
        {"rank": 2, "lambda_ridge": 0.1},
        "_LinkedDescent",
    ),
    (AutoencoderCompleter, {"hidden": (8, 4), "batch_size": 11}, "RowDescent"),
    (NSRCompleter, {"rank": 2, "lambda_decoder": 0.01}, "CodeDescent"),
    (SNNCompleter, {}, None),  # its network follows a spectrum
    (SVDCompleter, {}, None),
    (FactorizedSensingRegressor, {}, "GradientFlow"),
]


def matrix():
    rng = np.random.RandomState(0)
    X = low_rank(30, 12) + 0.1 * rng.randn(30, 12)
    return np.where(rng.rand(30, 12) < 0.3, np.nan, X)


def fitted(cls, params):
    if cls is FactorizedSensingRegressor:
        A = np.random.RandomState(0).randn(40, 6, 5)
        problem = A, np.tensordot(A, low_rank(6, 5, 1))
    else:
        problem = (matrix(),)
    return make(cls, max_iter=110, tol=0.0, **params).fit(*problem)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "params", "solver"), CASES)
def test_replays_equal_ordinary_steps(cls, params, solver, graphs, monkeypatch):
    """A run has 25 ordinary steps, three replays of 25, and ten ordinary ones."""
    ours = fitted(cls, params)
    assert {each.__name__ for each in graphs} == ({solver} if solver else set())
    monkeypatch.setattr("skmc.loop.graphed.capture_for", lambda data: None)
    expected = fitted(cls, params)
    # Learning rates of a graph have single precision, as Adam has them on CUDA.
    close = {"rtol": 1e-4, "atol": 1e-5}
    name = "matrix_" if cls is FactorizedSensingRegressor else "reconstruction_"
    found, wanted = (getattr(fit, name) for fit in (ours, expected))
    np.testing.assert_allclose(found, wanted, **close)
    assert ours.history_.keys() == expected.history_.keys()
    for name, values in expected.history_.items():
        np.testing.assert_allclose(ours.history_[name], values, rtol=1e-3, atol=1e-6)


def same(graphed_run, run):
    ours, expected = graphed_run.solution(), run.solution()
    assert ours.status == expected.status
    close = {"rtol": 1e-4, "atol": 1e-6, "equal_nan": True}
    torch.testing.assert_close(ours.outputs["X"], expected.outputs["X"], **close)
    torch.testing.assert_close(ours.history, expected.history, **close)


def run_of(cls=Descent, batch=(), **params) -> Run:
    rng = Randomness.of(range((len(batch) and batch[0]) or 1), batch, torch.float64)
    values = rng.normal(9, 2, 1.0) @ rng.normal(2, 7, 1.0)
    data = Observed(values, rng.uniform(9, 7, 1.0) > -0.5)
    model = FactorProduct.random((9, 7), 2, 4, 0.3, rng)
    terms = [
        SquaredError(data),
        AdaptiveDirichletEnergy(rng.uniform(9, 9, 0.3), every=5),
    ]
    solver = cls(model, terms, lr=0.02, horizon=150)
    return Run(solver, data, check_every=5, **params)


def eager(*args, **params) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skmc.loop.graphed.capture_for", lambda data: None)
        return run_of(*args, **params)


RUNS = run_of, eager


def test_graphs_continue_after_ordinary_steps(graphs):
    """The run is advanced in parts, as in a search."""
    ours, expected = (make_run() for make_run in RUNS)
    for until in (23, 25, 61, 62, 100):
        ours.advance(until)
        expected.advance(until)
    same(ours, expected)
    assert graphs == {Descent}


def test_smaller_batches_have_their_own_graphs(graphs):
    class Leave:
        ends = torch.tensor([20, 200, 45])

        def __call__(self, progress):
            return progress.n_iter >= self.ends

        def select(self, members):
            self.ends = self.ends[members]

    runs = [make_run(batch=(3,), stop=[Leave()], compact=True) for make_run in RUNS]
    for run in runs:
        run.advance(80)
        assert len(run.answers.members) == 1
    same(*runs)


class Counting(Descent):
    """Every third step is twice as long, and only Python knows which."""

    def init(self, data):
        self.count = 0
        return super().init(data)

    def step(self, data, state):
        self.count = (self.count + 1) % 3
        if not self.count:
            state = super().step(data, state)
        return super().step(data, state)


class Reading(Descent):
    """Reads a number in its steps."""

    def step(self, data, state):
        float(state.X.sum())
        return super().step(data, state)


@pytest.mark.parametrize("cls", [Counting, Reading])
def test_states_with_other_changes_are_not_replayed(cls, graphs, caplog):
    ours, expected = (make_run(cls) for make_run in RUNS)
    with caplog.at_level(logging.DEBUG, "skmc.loop.graphed"):
        for run in (ours, expected):
            run.advance(60)
    same(ours, expected)
    assert not graphs
    assert f"steps of {cls.__name__} are not captured" in caplog.text


def test_graphs_are_used_only_on_request():
    on_cuda = SimpleNamespace(device=torch.device("cuda"))
    assert graphed.capture_for(on_cuda) is None and run_of().graphed.capture is None
    with cuda_graphs():
        assert graphed.capture_for(on_cuda) is graphed.cuda_capture
        assert run_of().graphed.capture is None  # there is nothing to capture on a CPU
    assert graphed.capture_for(on_cuda) is None


@pytest.mark.skipif("cuda" not in DEVICES, reason="no CUDA device")
def test_cuda_graphs():
    """This runs the operations that the tests above imitate."""
    completer = AIRCompleter(random_state=0, max_iter=110, tol=0.0)
    X, found = matrix(), []
    for context in (cuda_graphs(), nullcontext()):
        with context:
            found.append(copy.deepcopy(completer).set_params(device="cuda").fit(X))
    ours, expected = (fit.reconstruction_ for fit in found)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_tensors_may_change_places():
    """This happens in states that keep the previous iterate."""
    x, y = torch.ones(2), torch.zeros(2)
    Contents([x, y], None).take(Contents([y, x], None))
    assert (x.tolist(), y.tolist()) == ([0, 0], [1, 1])


def test_every_solver_is_replayed_or_gives_a_reason():
    replayed = {solver for _, _, solver in CASES}
    for cls in all_solvers():
        assert cls.eager != Solver.eager, f"{cls.__name__} does not say why"
        assert cls.eager or cls.__name__ in replayed
