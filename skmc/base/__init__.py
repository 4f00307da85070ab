"""The estimator contract: base classes of completers, and what they are made of."""

from skmc.base.batching import Batchable
from skmc.base.completer import (
    HIDDEN_TO_SCORE,
    HOOKS,
    BaseCompleter,
    CompleterTags,
    Outcome,
)
from skmc.base.estimator import Estimator
from skmc.base.factored import (
    FittedFactors,
    RowModels,
    common_parts,
    joined_cols,
    joined_rows,
    preferences,
)
from skmc.base.fit_methods import (
    fit,
    fit_informed,
    fit_weighted,
    fit_with_graphs,
    fit_with_sides,
)
from skmc.base.fitted import NOT_IN_MEMORY, Completion, Fitted, RowsOnly, ScaledRows
from skmc.base.fitting import POOR
from skmc.base.iterative import EDGES, IterativeCompleter
from skmc.base.lazy import is_lazy
from skmc.base.partial import MoreCells, partial_fit
from skmc.base.pictures import pixels
from skmc.base.reading import check_names, read, read_rows
from skmc.base.recommending import recommend_from_factors, transform_with_features
from skmc.base.reporting import (
    CallbackHooks,
    FitTasks,
    diverged,
    out_of_time,
    record,
    unfinished,
)
from skmc.base.shared_docs import documented
from skmc.base.side_information import known_of_rows, laplacian_of, read_known
from skmc.base.streaming import with_more
from skmc.base.summary import fit_html, fit_summary
from skmc.base.trials import CannotBatch, Trials
from skmc.base.warning import warn_user

__all__ = [
    "EDGES",
    "HIDDEN_TO_SCORE",
    "HOOKS",
    "NOT_IN_MEMORY",
    "POOR",
    "BaseCompleter",
    "Batchable",
    "CallbackHooks",
    "CannotBatch",
    "CompleterTags",
    "Completion",
    "Estimator",
    "FitTasks",
    "Fitted",
    "FittedFactors",
    "IterativeCompleter",
    "MoreCells",
    "Outcome",
    "RowModels",
    "RowsOnly",
    "ScaledRows",
    "Trials",
    "check_names",
    "common_parts",
    "diverged",
    "documented",
    "fit",
    "fit_html",
    "fit_informed",
    "fit_summary",
    "fit_weighted",
    "fit_with_graphs",
    "fit_with_sides",
    "is_lazy",
    "joined_cols",
    "joined_rows",
    "known_of_rows",
    "laplacian_of",
    "out_of_time",
    "partial_fit",
    "pixels",
    "preferences",
    "read",
    "read_known",
    "read_rows",
    "recommend_from_factors",
    "record",
    "transform_with_features",
    "unfinished",
    "warn_user",
    "with_more",
]
