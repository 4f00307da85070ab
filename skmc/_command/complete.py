"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.messages import Messages


def run(options: Namespace, messages: Messages) -> None:
    if files.format_of(options.source) is not files.format_of(options.target):
        raise UsageError(f"{options.target} must have the format of {options.source}")
    files.check_target(options.target, options.force)
    file = files.read(options.source, options)
    file.check_target(options.target)
    method = options.method or file.method
    settings = dict(options.set)
    if options.time_limit is not None:
        settings["max_time"] = options.time_limit
    completer = methods.make(method, settings, options.seed, options.device)
    large = file.estimate(completer)
    if large:
        messages.note(large)
    start = time.perf_counter()
    with messages.progress() as progress:
        if progress and large:
            file.on_fit = partial(progress.count, "blocks")
        elif progress:
            progress.watch(completer)
        n_filled = file.complete(completer)
    seconds = time.perf_counter() - start
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
    messages.note(
        f"{options.target}: {n_filled} of {file.n_cells} {file.unit} completed by "
        f"{method} in {seconds:.1f} s"
    )
