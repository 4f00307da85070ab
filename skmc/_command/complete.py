"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial
from pathlib import Path

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.messages import Messages


def run(options: Namespace, messages: Messages) -> None:
    if files.format_of(options.source) is not files.format_of(options.target):
        raise UsageError(f"{options.target} must have the format of {options.source}")
    targets = _targets(options)
    for target in targets:
        files.check_target(target, options.force)
    file = files.read(options.source, options)
    file.check_target(options.target)
    method = options.method or ("chained" if options.draws else file.method)
    settings = dict(options.set)
    if options.time_limit is not None:
        settings["max_time"] = options.time_limit
    if options.time is not None and options.method is None:
        if settings or options.draws:
            raise UsageError(
                "--time needs --method for --set, --time-limit and --draws"
            )
        completer, method = None, "series"
    else:
        completer = methods.make(method, settings, options.seed, options.device)
    if options.draws is not None and not hasattr(completer, "sample"):
        methods.refuse_draws(method, "--method")
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
    for k, target in enumerate(targets):
        if n_filled:
            file.choose(k)
        files.write_out(file, target, options.force)
    written = " ... ".join(dict.fromkeys([targets[0], targets[-1]]))
    if not n_filled:
        copies = "are copies" if targets[1:] else "is a copy"
        messages.note(
            f"{written} {copies} of {options.source}: no cell is missing that can be "
            "inferred"
        )
        return
    if hasattr(file.fitted, "verdict_"):
        if options.method == "auto":
            board = file.fitted.leaderboard_.drop(columns="warnings")
            messages.note(f"candidates\n{board.round(4).to_string(index=False)}")
        messages.note(file.fitted.verdict_)
    messages.note(
        f"{written}: {n_filled} of {file.n_cells} {file.unit} completed by "
        f"{method} in {seconds:.1f} s"
    )


def _targets(options: Namespace) -> list[str]:
    """Names of the files to write: OUT, or one for each draw."""
    if options.draws is None:
        return [options.target]
    if options.target == "-":
        raise UsageError("--draws needs a file name, not '-'")
    path = Path(options.target)
    return [
        str(path.with_stem(f"{path.stem}-{k}")) for k in range(1, options.draws + 1)
    ]
