"""The iteration loop: statuses, history, stop rules, time limits and recorders."""

from skmc.loop.recorder import TITLE, SpectrumRecorder, matrix_of
from skmc.loop.run import Run, solve, solve_part
from skmc.loop.scope import STORE, OutOfTime, Work, fit_scope, seconds_left, time_limit
from skmc.loop.solution import Callback, Progress, Solution, Status, tensorwise
from skmc.loop.stop import HeldOut
from skmc.loop.tasks import CallbackHooks, FitTasks

__all__ = ["Callback", "Solution", "SpectrumRecorder"]
