"""The command ``skmc``: complete files and compare methods."""

from skmc._command.main import main

__all__ = [
    "main",
]
