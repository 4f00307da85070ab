"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.picture_file import PictureFile
from skmc._command.telling import Teller


def run(options: Namespace, teller: Teller) -> None:
    completer = methods.make(
        options.method, dict(options.set), options.seed, options.device
    )
    if files.format_of(options.target) is not files.format_of(options.source):
        raise UsageError(
            f"{options.target} is another kind of file than {options.source}"
        )
    files.check_target(options.target, options.force)
    file = files.read(options.source, options)
    for note in file.notes():
        teller.note(note)
    if isinstance(file, PictureFile):
        loss = file.check_target(options.target)
        if loss:
            teller.note(loss)
    start = time.perf_counter()
    with teller.progress() as progress:
        if progress:
            progress.watch(completer)
        n_filled = file.complete(completer)
    seconds = time.perf_counter() - start
    files.write_out(file, options.target, options.force)
    if not n_filled:
        teller.note(
            f"{options.target} is a copy of {options.source}: there was nothing to "
            "complete"
        )
        return
    unit = "pixels" if isinstance(file, PictureFile) else "cells"
    teller.note(
        f"{options.target}: {n_filled} of {file.n_cells} {unit} completed by "
        f"{options.method} in {seconds:.1f} s"
    )
