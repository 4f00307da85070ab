"""Weights of candidates by their errors on held-out cells, and spreads of errors."""

from skmc.stacking._mixtures import calibration
from skmc.stacking._spread import Spread
from skmc.stacking._weights import (
    MIN_WEIGHT,
    HeldOutCategory,
    PriorSizes,
    Stacking,
    rms,
    simplex_minimum,
)
