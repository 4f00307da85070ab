"""The command ``skmc``: completes files, compares methods, reproduces papers."""

from skmc._command.main import main

__all__ = [
    "main",
]
