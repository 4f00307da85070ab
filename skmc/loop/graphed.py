"""The steps between two checks as one graph of device operations."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed, SparseObserved
from skmc.loop.contents import Contents
from skmc.solvers import Solver, State

# Records the computation of a function, and returns a function that repeats it in the
# same memory. The generators are those that it may use.
Capture = Callable[[Callable[[], None], list[torch.Generator]], Callable[[], None]]

log = logging.getLogger(__name__)
_one_at_a_time = threading.Lock()
_WANTED: ContextVar[bool] = ContextVar("skmc_cuda_graphs", default=False)


def cuda_capture(
    function: Callable[[], None], generators: list[torch.Generator]
) -> Callable[[], None]:
    """Capture a function as a CUDA graph, without running it.

    Parameters
    ----------
    function : callable
        Function that never waits for the device and has been called before.
    generators : list of Generator
        Random generators that the function may use.

    Returns
    -------
    callable
        Function that launches the recorded operations.
    """
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        if generator.device.type == "cuda":
            graph.register_generator_state(generator)
    # Meanwhile, other threads may fit and capture, one after the other.
    stream = torch.cuda.Stream()
    with (
        _one_at_a_time,
        torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
    ):
        function()
    return graph.replay


@contextmanager
def cuda_graphs() -> Iterator[None]:
    """Run the steps of fits on CUDA as graphs in this block, if the solver allows it.

    This affects fits in the same thread. Other steps are ordinary ones.

    Yields
    ------
    None

    Examples
    --------
    >>> from skmc import AIRCompleter
    >>> from skmc.loop import cuda_graphs
    >>> with cuda_graphs():
    ...     completer = AIRCompleter(max_iter=50).fit([[1.0, 2.0], [2.0, float("nan")]])
    """
    token = _WANTED.set(True)
    try:
        yield
    finally:
        _WANTED.reset(token)


def capture_for(data: Observed | SparseObserved) -> Capture | None:
    """The capture function for the data; None outside of `cuda_graphs`.

    Parameters
    ----------
    data : Observed or SparseObserved
        Observed cells.

    Returns
    -------
    callable or None
    """
    return cuda_capture if _WANTED.get() and data.device.type == "cuda" else None


class Graphed:
    """A fixed number of steps, captured at the second call and replayed from then on.

    A step on CUDA is a sequence of short kernels, and launching them one by one from
    Python takes longer than running them. The first call takes ordinary steps on
    another stream, as Torch requires before a capture. The captured steps are those of
    a copy of the state, whose tensors become the buffers of the graph. At the end of a
    replay, the numbers of the last state are copied to those of the first, so that the
    next replay continues. Numbers of the state, such as its iteration, become tensors.

    A replay repeats device operations and no Python code. It is equivalent to steps
    only if everything in the state other than tensors is the same before and after.
    This is checked. If it differs, or if a step cannot be captured, all steps are
    ordinary ones.

    Parameters
    ----------
    solver : Solver
        Defines one step.
    data : Observed or SparseObserved
        Observed cells.
    n_steps : int
        Number of steps per call.
    """

    def __init__(self, solver: Solver, data: Observed | SparseObserved, n_steps: int):
        self.solver, self.data, self.n_steps = solver, data, n_steps
        self.capture = None if solver.eager else capture_for(data)
        self.warm = False
        self.replay: Callable[[], None] | None = None
        self.last: tuple[State, State] | None = None

    def __call__(self, state: State) -> tuple[State, State] | None:
        """Take the steps.

        Parameters
        ----------
        state : State
            Current state, which the call may overwrite.

        Returns
        -------
        tuple of State or None
            The states before and after the last step, whose tensors the next call
            overwrites. None if these steps must be taken one by one.
        """
        if self.capture is None:
            return None
        if not self.warm:
            self.warm = True
            return self._warm_up(state)
        if self.replay is None:
            before = dict(vars(self.solver))
            try:
                self._capture(self.capture, state)
            except Exception as error:
                name = type(self.solver).__name__
                log.debug("steps of %s are not captured: %s", name, error)
                vars(self.solver).update(before)
                self.capture = self.replay = None
                return None
        elif self.last and state is not self.last[1] and not self._load(state):
            return None
        assert self.replay is not None
        self.replay()
        self.after.put_back()
        previous, current = self.states
        self.last = _shallow(previous), _shallow(current)
        return self.last

    def kept(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """Outputs of a state, copied so that a replay does not change them.

        Parameters
        ----------
        outputs : dict
            Outputs by name.

        Returns
        -------
        dict
        """
        if self.replay is None:
            return outputs
        return {
            name: value.clone() if isinstance(value, Tensor) else value
            for name, value in outputs.items()
        }

    def _steps(self, state: State) -> tuple[State, State]:
        previous = state
        for _ in range(self.n_steps):
            previous, state = state, self.solver.step(self.data, state)
        return previous, state

    def _warm_up(self, state: State) -> tuple[State, State]:
        state = _with_tensors(state, self.data.device)
        if self.data.device.type != "cuda":
            return self._steps(state)
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            states = self._steps(state)
        main.wait_stream(side)
        return states

    def _capture(self, capture: Capture, state: State) -> None:
        data = self.data
        memo = {id(t): t for t in (data, data.values)}
        first = copy.deepcopy(_with_tensors(state, data.device), memo)
        generators = Contents(first, data).generators
        solver = Contents(vars(self.solver), data)

        def steps() -> None:
            start = self.solver.resume(data, first)
            self.buffers = Contents(start, data)
            self.states = self._steps(start)
            self.after = Contents(self.states[1], data)
            self.buffers.take(self.after)

        replay = capture(steps, generators)
        unchanged = solver.like(Contents(vars(self.solver), data))
        if not (unchanged and self.buffers.like(self.after)):
            raise ValueError("they change more than numbers in tensors")
        self.replay = replay

    def _load(self, state: State) -> bool:
        """Load a state that ordinary steps have reached into the graph."""
        contents = Contents(self.solver.resume(self.data, state), self.data)
        if not self.buffers.like(contents):
            return False
        self.buffers.take(contents)
        return True


def _shallow(state: State) -> State:
    """A shallow copy of an object, whose attributes can be replaced independently."""
    other = object.__new__(type(state))
    vars(other).update(vars(state))
    return other


def _with_tensors(state: State, device: torch.device) -> State:
    """A state whose numbers are tensors, so that a graph can change them."""
    other = _shallow(state)
    for name, value in vars(state).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            dtype = torch.int64 if isinstance(value, int) else torch.float64
            vars(other)[name] = torch.tensor(value, dtype=dtype, device=device)
    return other
