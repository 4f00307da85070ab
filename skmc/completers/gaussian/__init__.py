"""`GaussianCompleter`: rows that are samples of a Gaussian, or of a copula."""

from skmc.completers.gaussian.gaussian import GaussianCompleter

__all__ = ["GaussianCompleter"]
