"""The estimator contract: base classes and mixins of completers."""

from skmc.base.batching import Batchable, CannotBatch
from skmc.base.chunked import ReadsChunks, first_rows, read_chunks, rows_in_memory
from skmc.base.completer import (
    HIDDEN_TO_SCORE,
    HOOKS,
    BaseCompleter,
    CompleterTags,
    Outcome,
    validated,
)
from skmc.base.device import memory_of, resolve_device
from skmc.base.early_stopping import EarlyStopping
from skmc.base.estimator import Estimator
from skmc.base.factored import FactoredCompleter, joined_cols, joined_rows
from skmc.base.informed import SideInformed
from skmc.base.iterative import POOR, IterativeCompleter, Prepared
from skmc.base.lazy import is_lazy
from skmc.base.learned_laplacians import LearnedLaplacians
from skmc.base.partial import LearnsMore, MoreCells
from skmc.base.pictures import pixels
from skmc.base.priors import Priors
from skmc.base.reading import ReadsCells, check_names
from skmc.base.recommending import Recommends
from skmc.base.reporting import (
    CallbackHooks,
    FitTasks,
    diverged,
    out_of_time,
    record,
    unfinished,
)
from skmc.base.shared_docs import documented
from skmc.base.side_information import known_of_rows, read_known
from skmc.base.stored import ReadsStored
from skmc.base.streaming import StreamsRows
from skmc.base.summary import ShowsFit
from skmc.base.trials import Trials
from skmc.base.warm_start import WarmStart
from skmc.base.warning import warn_user
from skmc.base.weighted import TakesWeights

__all__ = [
    "HIDDEN_TO_SCORE",
    "HOOKS",
    "POOR",
    "BaseCompleter",
    "Batchable",
    "CallbackHooks",
    "CannotBatch",
    "CompleterTags",
    "EarlyStopping",
    "Estimator",
    "FactoredCompleter",
    "FitTasks",
    "IterativeCompleter",
    "LearnedLaplacians",
    "LearnsMore",
    "MoreCells",
    "Outcome",
    "Prepared",
    "Priors",
    "ReadsCells",
    "ReadsChunks",
    "ReadsStored",
    "Recommends",
    "ShowsFit",
    "SideInformed",
    "StreamsRows",
    "TakesWeights",
    "Trials",
    "WarmStart",
    "check_names",
    "diverged",
    "documented",
    "first_rows",
    "is_lazy",
    "joined_cols",
    "joined_rows",
    "known_of_rows",
    "memory_of",
    "out_of_time",
    "pixels",
    "read_chunks",
    "read_known",
    "record",
    "resolve_device",
    "rows_in_memory",
    "unfinished",
    "validated",
    "warn_user",
]
