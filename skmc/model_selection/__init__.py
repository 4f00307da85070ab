"""Searches, splitters and comparisons that hold out cells."""

from skmc.model_selection.batch import batch_pays, fit_batch
from skmc.model_selection.comparison import METRICS, compare, predict_cells
from skmc.model_selection.comparison_display import ComparisonDisplay
from skmc.model_selection.error_scorer import ErrorScorer
from skmc.model_selection.grid import BatchedGridSearchCV
from skmc.model_selection.held_out_errors import HeldOutErrors
from skmc.model_selection.i_score import energy_i_score
from skmc.model_selection.ranking_scorer import RankingScorer
from skmc.model_selection.splitters import PATTERNS, CellSplit, CountSplit, LeaveLastOut

__all__ = [
    "BatchedGridSearchCV",
    "CellSplit",
    "ComparisonDisplay",
    "CountSplit",
    "ErrorScorer",
    "LeaveLastOut",
    "RankingScorer",
    "compare",
    "fit_batch",
]
