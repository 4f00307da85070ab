"""``skmc reproduce NAME``: run the benchmarks of the repository."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from argparse import Namespace
from pathlib import Path

import skmc
from skmc._command.failure import CommandError, UsageError
from skmc._command.messages import Messages

MAIN = Path("benchmarks", "reproduce", "__main__.py")
FOLDER = "SKMC_REPRODUCTION"  # environment variable that the benchmarks read


def run(options: Namespace, messages: Messages) -> None:
    repository = _repository()
    sys.path.insert(0, str(repository))
    try:
        if options.name is None:
            print("\n".join(_commands()))
            return
        folder = Path(options.out).resolve()
        if folder.is_dir() and any(folder.iterdir()) and not options.force:
            raise CommandError(
                f"{options.out} is not empty; --force continues from its records and "
                "overwrites its pages, --out names another folder"
            )
        os.environ[FOLDER] = str(folder)  # before the benchmarks are imported
        commands = _commands()
        if options.name not in commands:
            raise UsageError(
                f"there is no {options.name!r}; choose one of {', '.join(commands)}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        quiet = contextlib.redirect_stdout(None) if options.quiet else None
        with quiet or contextlib.nullcontext():
            commands[options.name](*options.parts)
    finally:
        sys.path.remove(str(repository))


def _repository() -> Path:
    """Find the benchmarks next to the package or in the current folder."""
    for folder in (Path(skmc.__file__).parents[1], Path.cwd()):
        if (folder / MAIN).is_file():
            return folder
    raise CommandError(
        "pip does not install the benchmarks; clone skmc's repository and run the "
        "command there"
    )


def _commands() -> dict:
    module = importlib.import_module("benchmarks.reproduce.__main__")
    return module.COMMANDS
