"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.messages import Messages
from skmc._command.picture_file import PictureFile


def run(options: Namespace, messages: Messages) -> None:
    if files.format_of(options.source) is not files.format_of(options.target):
        raise UsageError(f"{options.target} must have the format of {options.source}")
    files.check_target(options.target, options.force)
    file = files.read(options.source, options)
    picture = isinstance(file, PictureFile)
    if picture:
        file.check_target(options.target)
    for warning in file.warnings:
        messages.warn(warning)
    told, level = len(file.warnings), options.intervals
    method = options.method or file.method
    settings = dict(options.set)
    if options.time_limit is not None:
        settings["max_time"] = options.time_limit
    completer = methods.make(method, settings, options.seed, options.device)
    large = file.estimate(completer) if picture else None
    if large:
        messages.note(large)
    start = time.perf_counter()
    with messages.progress() as progress:
        if large:
            blocks = partial(progress.count, "blocks") if progress else None
            n_filled = file.complete(completer, blocks)
        else:
            if progress:
                progress.watch(completer)
            n_filled = file.complete(completer, *([] if picture else [level]))
    seconds = time.perf_counter() - start
    for warning in file.warnings[told:]:
        messages.warn(warning)
    for note in file.notes():
        messages.note(note)
    files.write_out(file, options.target, options.force)
    if not n_filled:
        messages.note(
            f"{options.target} is a copy of {options.source}: no cell is missing that "
            "can be inferred"
        )
        return
    if hasattr(file.fitted, "verdict_"):
        if options.method == "auto":
            board = file.fitted.leaderboard_.drop(columns="warnings")
            messages.note(f"candidates\n{board.round(4).to_string(index=False)}")
        messages.note(file.fitted.verdict_)
    unit = "pixels" if picture else "cells"
    messages.note(
        f"{options.target}: {n_filled} of {file.n_cells} {unit} completed by "
        f"{method} in {seconds:.1f} s"
    )
