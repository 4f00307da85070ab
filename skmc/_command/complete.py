"""``skmc complete IN OUT``."""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skmc._command import files, methods
from skmc._command.failure import UsageError
from skmc._command.messages import Messages

if TYPE_CHECKING:
    from skmc import SeriesCompleter


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
    completer: Any
    if options.time is None:
        if options.unit is not None:
            raise UsageError("--unit needs --time, the column of times")
        made = methods.make(method, settings, options.seed, options.device)
        completer = file.completer_of(made)
    else:
        completer, method = _over_time(options, settings), options.method or "series"
    if options.draws is not None and not hasattr(completer, "sample"):
        methods.refuse_draws(method, "--method")
    large = file.estimate(completer)
    if large:
        messages.note(large)
    from skmc.compatibility import CALLBACKS

    start = time.perf_counter()
    with messages.progress() as progress:
        if progress and large:
            file.on_fit = partial(progress.count, "blocks")
        elif progress and CALLBACKS:
            completer.set_callbacks(progress)
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


def _over_time(options: Namespace, settings: dict[str, Any]) -> SeriesCompleter:
    """The completer of series, around the method if one is named."""
    from skmc import SeriesCompleter

    if options.draws is not None:
        raise UsageError("--draws: series have no draws; leave --time or --draws out")
    inner = None
    if options.method is not None:
        inner = methods.make(options.method, settings, options.seed, options.device)
    elif settings or options.device != "auto":
        raise UsageError("--set, --time-limit and --device with --time need --method")
    unit = None if options.unit is None else 1
    return SeriesCompleter(inner, time=0, unit=unit, random_state=options.seed)


def _targets(options: Namespace) -> list[str]:
    """Names of the files to write: OUT, or one for each draw."""
    if options.draws is None:
        return [options.target]
    if options.target == "-":
        raise UsageError("--draws needs a file name, not '-'")
    path = Path(options.target)
    stem, _ = files.stem_and_suffix(options.target)
    suffix = path.name.removeprefix(stem)
    return [
        str(path.with_name(f"{stem}-{k}{suffix}")) for k in range(1, options.draws + 1)
    ]
