"""`BayesianFactorizationCompleter`: factors averaged over posterior samples."""

from skmc.completers.bayesian.bayesian import BayesianFactorizationCompleter

__all__ = ["BayesianFactorizationCompleter"]
