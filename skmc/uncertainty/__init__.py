"""Uncertainty of completions: multiple completion, intervals, pooled estimates."""

from skmc.uncertainty.multiple import MultipleCompletion
from skmc.uncertainty.pooling import Pooled, pool

__all__ = ["MultipleCompletion", "Pooled", "pool"]
