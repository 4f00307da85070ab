"""Models: modules whose ``forward()`` is the completion, or maps rows to it."""

from skmc.models.autoencoder import Autoencoder
from skmc.models.factors import FactorProduct

__all__ = ["Autoencoder", "FactorProduct"]
