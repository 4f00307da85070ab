"""Models: modules whose ``forward()`` is the completion."""

from skmc.models.factors import FactorProduct

__all__ = ["FactorProduct"]
