"""Errors of the command, each printed in one line."""

from __future__ import annotations

import importlib
from typing import Any


class CommandError(Exception):
    """The data or the environment is wrong: exit code 1."""


class UsageError(Exception):
    """The arguments are invalid: exit code 2."""


def optional(module: str, what: str, package: str) -> Any:
    """Import a module that the extra "cli" installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CommandError(
            f"{what} needs {package}, which is not installed: pip install 'skmc[cli]'"
        ) from error


def one_line(error: BaseException) -> str:
    """Describe an exception in one line for users of the program."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, CommandError):
        return str(error)  # several problems have one line each
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"there is not enough memory {text and f'({text})'}".strip()
    # The messages of other errors are clear only with their type.
    expected = (UsageError, ValueError, TypeError, OSError, ImportError, RuntimeError)
    if not isinstance(error, expected) or not text:
        return f"{type(error).__name__}: {text}".removesuffix(": ")
    return text
