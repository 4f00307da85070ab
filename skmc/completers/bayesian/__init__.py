"""`BayesianFactorizationCompleter`: factors averaged over posterior samples."""

from skmc.completers.bayesian.completer import BayesianFactorizationCompleter

__all__ = ["BayesianFactorizationCompleter"]
