"""The command ``skmc``: completes files, compares methods, reproduces papers."""

from skmc.command.main import main

__all__ = ["main"]
