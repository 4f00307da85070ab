"""The iteration loop: statuses, history, stop rules, checkpoints and recorders."""

from skmc.loop.recorder import TITLE, SpectrumRecorder, matrix_of
from skmc.loop.run import Run
from skmc.loop.scope import STORE, CheckpointStore, Work, fit_scope
from skmc.loop.solution import Callback, Progress, Solution, Status, StopRule
from skmc.loop.solve import solve, solve_part
from skmc.loop.stop import HeldOut

__all__ = [
    "STORE",
    "TITLE",
    "Callback",
    "CheckpointStore",
    "HeldOut",
    "Progress",
    "Run",
    "Solution",
    "SpectrumRecorder",
    "Status",
    "StopRule",
    "Work",
    "fit_scope",
    "matrix_of",
    "solve",
    "solve_part",
]
