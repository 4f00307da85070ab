"""Checks of what every completer promises, and the list of all completers."""

from skmc.checks.check import CompleterCheck, check_completer, completer_checks
from skmc.checks.discovery import all_completers
from skmc.checks.problems import low_rank as low_rank
from skmc.checks.problems import quick as quick

__all__ = ["all_completers", "check_completer", "completer_checks"]
