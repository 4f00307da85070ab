"""Uncertainty: multiple completion, intervals, pooled estimates, Little's test."""

from skmc.uncertainty.little import LittleTest, little_test
from skmc.uncertainty.multiple import MultipleCompletion
from skmc.uncertainty.pooling import Pooled, pool, pooled_fit

__all__ = [
    "LittleTest",
    "MultipleCompletion",
    "Pooled",
    "little_test",
    "pool",
    "pooled_fit",
]
