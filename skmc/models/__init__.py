"""Models: modules whose ``forward()`` is the completion, or maps rows to it."""

from skmc.models.autoencoder import Autoencoder, bent, hidden_layers, slope_at
from skmc.models.factors import FactorProduct
from skmc.models.link import LinkedFactorization
from skmc.models.patch_network import PatchCNN, Patches, filling_order
from skmc.models.skip_network import SkipNetwork
from skmc.models.spectral_network import SpectralNetwork
from skmc.models.two_branches import BiBranch, Branch
from skmc.models.widths import checked_widths

__all__ = ["FactorProduct", "filling_order"]
