"""Errors of a completion ``X`` with respect to the truth ``M``, of draws, and rankings.

Matrices may be in any container. Errors never compare cells where ``M`` is missing.
``cells`` is a boolean array, True at the cells to compare or to rank. By default, all
cells where ``M`` is known are compared, and all cells are ranked.
"""

from skmc.metrics.draws import (
    check_level,
    crps,
    energy_distance,
    interval_score,
    scale_reduction,
)
from skmc.metrics.errors import (
    mae,
    nmae,
    psnr,
    relative_error,
    rmse,
    ssim,
)
from skmc.metrics.ranking import (
    RANKING,
    Ranking,
    auc,
    map_at_k,
    ndcg_at_k,
    ranked_gains,
    recall_at_k,
)

__all__ = [
    "auc",
    "crps",
    "energy_distance",
    "interval_score",
    "mae",
    "map_at_k",
    "ndcg_at_k",
    "nmae",
    "psnr",
    "recall_at_k",
    "relative_error",
    "rmse",
    "scale_reduction",
    "ssim",
]
