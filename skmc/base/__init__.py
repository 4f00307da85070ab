"""The estimator contract: base classes of completers, and what they are made of."""

from skmc.base.bounds import (
    Limits,
    TakesBounds,
    bounds_of,
    limits_of,
    position_of,
)
from skmc.base.completer import (
    HIDDEN_TO_SCORE,
    HOOKS,
    BaseCompleter,
    missing_indicator,
    validated,
)
from skmc.base.doubts import doubtful_number
from skmc.base.estimator import (
    CHOICES,
    FOR_AUTHORS,
    CompleterTags,
    Estimator,
    FitSummary,
)
from skmc.base.explanation import (
    BOUNDS,
    NO_POSITION,
    Contribution,
    Explains,
    Explanation,
    by_size,
    by_weight,
    check_in_memory,
    check_missing,
    column_of,
    labeled,
    name_of_row,
    row_names,
    row_of,
)
from skmc.base.factored import (
    FittedFactors,
    RowModels,
    common_parts,
    joined_cols,
    joined_rows,
    without_constants,
)
from skmc.base.fitted import (
    NOT_IN_MEMORY,
    Completion,
    Fitted,
    MissingCells,
    Outcome,
    RowsOnly,
    ScaledRows,
)
from skmc.base.identifiers import positions
from skmc.base.inner import BOUNDS_AND_MARKS, refuse_parameters
from skmc.base.iterative import POOR, CannotBatch, IterativeCompleter
from skmc.base.partial_fit import MoreCells, PartialFit
from skmc.base.reading import (
    check_names,
    read_matrix,
    read_row_weights,
    read_rows,
    read_weights,
)
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
from skmc.base.sampling import Samples
from skmc.base.side_information import known_of_rows, laplacian_of, read_known
from skmc.base.takes import (
    TakesFeatures,
    TakesGraphs,
    TakesRowWeights,
    TakesWeights,
)
from skmc.base.trials import Choice, Trials

__all__ = [
    "BaseCompleter",
    "Choice",
    "CompleterTags",
    "Contribution",
    "Explains",
    "Explanation",
    "Fitted",
    "IterativeCompleter",
    "Outcome",
    "PartialFit",
    "Samples",
    "TakesFeatures",
    "TakesGraphs",
    "TakesRowWeights",
    "TakesWeights",
    "Trials",
]
