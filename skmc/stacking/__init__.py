"""Weights of candidates by their errors on held-out cells, and spreads of errors."""

from skmc.stacking.mixtures import calibration
from skmc.stacking.spread import Spread
from skmc.stacking.weights import (
    MIN_WEIGHT,
    HeldOutCategory,
    Priors,
    Stacking,
    rms,
    simplex_minimum,
)
