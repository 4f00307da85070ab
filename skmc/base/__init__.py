"""The estimator contract: base classes of completers, and what they are made of."""

from skmc.base.batching import Batchable
from skmc.base.bounds import Limits, TakesBounds, bounds_of, position_of
from skmc.base.capabilities import (
    MoreCells,
    partial_fit,
    transform_with_features,
    with_more,
)
from skmc.base.completer import HOOKS, BaseCompleter
from skmc.base.estimator import CompleterTags, Estimator, fit_html, fit_summary
from skmc.base.factored import (
    FittedFactors,
    RowModels,
    common_parts,
    joined_cols,
    joined_rows,
)
from skmc.base.fit_methods import (
    fit,
    fit_informed,
    fit_weighted,
    fit_with_graphs,
    fit_with_sides,
)
from skmc.base.fitted import (
    NOT_IN_MEMORY,
    Completion,
    Fitted,
    Outcome,
    RowsOnly,
    ScaledRows,
    missing_indicator,
)
from skmc.base.fitting import POOR
from skmc.base.iterative import EDGES, IterativeCompleter
from skmc.base.predicting import (
    HIDDEN_TO_SCORE,
    positions,
    positions_of_cells,
    sample,
)
from skmc.base.reading import check_names, read, read_rows, read_weights
from skmc.base.reporting import (
    KeepsEmpty,
    diverged,
    limit_of,
    out_of_time,
    record,
    unfinished,
    warn_of_empty_columns,
    warn_of_units,
    warn_user,
)
from skmc.base.shared_docs import documented
from skmc.base.side_information import known_of_rows, laplacian_of, read_known
from skmc.base.trials import CannotBatch, Trials, choose

__all__ = [
    "BaseCompleter",
    "CompleterTags",
    "Fitted",
    "IterativeCompleter",
    "Outcome",
    "Trials",
    "fit_informed",
    "fit_weighted",
    "fit_with_graphs",
]
