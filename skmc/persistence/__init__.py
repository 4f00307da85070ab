"""Completers in files, and long fits that survive a crash."""

from skmc.persistence.archive import replace_file
from skmc.persistence.checkpoint import checkpoint
from skmc.persistence.save import load, save
from skmc.serialization import StorageError, register

__all__ = ["StorageError", "checkpoint", "load", "register", "save"]
