"""Models: modules whose ``forward()`` is the completion, or maps rows to it."""

from skmc.models.autoencoder import Autoencoder
from skmc.models.bibranch import BiBranch, Branch
from skmc.models.factors import FactorProduct
from skmc.models.link import LinkedFactorization
from skmc.models.skip_network import SkipNetwork

__all__ = [
    "Autoencoder",
    "BiBranch",
    "Branch",
    "FactorProduct",
    "LinkedFactorization",
    "SkipNetwork",
]
