"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.messages import Messages
from skmc._command.picture_file import PictureFile


def run(options: Namespace, messages: Messages) -> None:
    if files.format_of(options.target) is not files.format_of(options.source):
        raise UsageError(f"{options.target} must have the format of {options.source}")
    files.check_target(options.target, options.force)
    file = files.read(options.source, options)
    if isinstance(file, PictureFile):
        file.check_target(options.target)
    for warning in file.warnings:
        messages.warn(warning)
    for note in file.notes():
        messages.note(note)
    completer = methods.make(
        options.method, dict(options.set), options.seed, options.device
    )
    start = time.perf_counter()
    with messages.progress() as progress:
        if progress:
            progress.watch(completer)
        n_filled = file.complete(completer)
    seconds = time.perf_counter() - start
    files.write_out(file, options.target, options.force)
    if not n_filled:
        messages.note(
            f"{options.target} is a copy of {options.source}: no cell is missing"
        )
        return
    unit = "pixels" if isinstance(file, PictureFile) else "cells"
    messages.note(
        f"{options.target}: {n_filled} of {file.n_cells} {unit} completed by "
        f"{options.method} in {seconds:.1f} s"
    )
