"""Completers in files, and long fits that survive a crash."""

from skmc.persistence.archive import replace_file
from skmc.persistence.checkpoint import checkpoint
from skmc.persistence.classes import register
from skmc.persistence.save import load, save
from skmc.persistence.serialize import StorageError

__all__ = ["StorageError", "checkpoint", "load", "register", "save"]
