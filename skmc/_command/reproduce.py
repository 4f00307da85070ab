"""``skmc reproduce NAME``: the repository's benchmarks, which no wheel has."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from argparse import Namespace
from pathlib import Path

import skmc
from skmc._command.failure import CommandError, UsageError
from skmc._command.telling import Teller

MAIN = Path("benchmarks", "reproduce", "__main__.py")
FOLDER = "SKMC_REPRODUCTION"  # the benchmarks' environment variable


def run(options: Namespace, teller: Teller) -> None:
    repository = _repository()
    sys.path.insert(0, str(repository))
    try:
        if options.name is None:
            print("\n".join(_commands()))
            return
        folder = Path(options.out).resolve()
        if folder.is_dir() and any(folder.iterdir()) and not options.force:
            raise CommandError(
                f"{options.out} has files in it; --force goes on with them and "
                "overwrites pages, --out names another folder"
            )
        os.environ[FOLDER] = str(folder)  # before the benchmarks are imported
        commands = _commands()
        if options.name not in commands:
            raise UsageError(f"no {options.name!r}; there are {', '.join(commands)}")
        folder.mkdir(parents=True, exist_ok=True)
        quiet = contextlib.redirect_stdout(None) if options.quiet else None
        with quiet or contextlib.nullcontext():
            commands[options.name](*options.parts)
    finally:
        sys.path.remove(str(repository))


def _repository() -> Path:
    """Where the benchmarks are: beside the package, or the current folder."""
    for folder in (Path(skmc.__file__).parents[1], Path.cwd()):
        if (folder / MAIN).is_file():
            return folder
    raise CommandError(
        "the benchmarks are in skmc's repository and not in what pip installs; get a "
        "copy of it and run the command in there"
    )


def _commands() -> dict:
    module = importlib.import_module("benchmarks.reproduce.__main__")
    return module.COMMANDS
