"""The command ``skmc``: complete files, compare methods, reproduce papers."""

from skmc._command.main import main

__all__ = [
    "main",
]
