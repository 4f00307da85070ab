"""``skmc compare IN``: a table of methods, the best first."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from skmc._command import files, methods
from skmc._command.failure import CommandError, UsageError, optional
from skmc._command.messages import Messages
from skmc.completers import name_of

if TYPE_CHECKING:
    import numpy as np


def run(options: argparse.Namespace, messages: Messages) -> None:
    if options.html == "-":
        raise UsageError("--html needs a file name, not '-'")
    if options.draws is not None and options.metric:
        raise UsageError("--draws compares by the CRPS; leave --metric out")
    if options.html:
        files.check_target(options.html, options.force)
    file = files.read(options.source, options)
    for package in ("pandas", "rich"):
        optional(package, "compare", package)
    if options.html:
        optional("matplotlib", "--html", "Matplotlib")
    matrix = file.matrix()
    from skmc._command.report import Report
    from skmc.cells import Entries
    from skmc.model_selection import compare

    completers = _chosen(matrix, options, messages)
    cells = Entries.of_matrix(matrix, one_unit=True) if file.one_unit else matrix
    with messages.progress() as progress:
        table = compare(
            completers,
            cells,
            cv=options.splits,
            patterns=[options.pattern],
            metrics=[options.metric or "nmae"],
            draws=options.draws,
            random_state=options.seed,
            on_fit=partial(progress.count, "fits") if progress else None,
        )
    report = Report(table, file, matrix, options)
    report.print()
    for row in table[table["mean"].isna()].itertuples():
        messages.warn(f"{row.completer} failed: {row.error}")
    if table["mean"].isna().all():
        raise CommandError("all methods failed")
    if hint := _command_of(completers[table["completer"].iloc[0]], options):
        messages.note(f"the best one completes the file: {hint}")
    if options.html:
        page = report.html()
        files.write(
            options.html,
            lambda path: Path(path).write_text(page, "utf-8"),
            options.force,
        )
        messages.note(f"report written to {options.html}")


def _chosen(
    matrix: np.ndarray, options: argparse.Namespace, messages: Messages
) -> dict[str, Any]:
    """Methods that the user names, or the candidates of "auto"."""
    if options.methods:
        found = {name: _make(name, options) for name in options.methods}
        return _with_draws(found, options, messages)
    from skmc.completers import candidates_for

    found = candidates_for(matrix, random_state=options.seed, device=options.device)
    found = _with_draws(found, options, messages)
    messages.note(
        f"{len(found)} methods are fitted {options.splits} times each; --methods "
        "selects fewer"
    )
    return found


def _with_draws(
    found: dict[str, Any], options: argparse.Namespace, messages: Messages
) -> dict[str, Any]:
    """Methods that can be compared by their draws, if draws are compared."""
    if options.draws is None:
        return found
    without = [name for name, one in found.items() if not hasattr(one, "sample")]
    if len(without) == len(found):
        methods.refuse_draws(",".join(without), "--methods")
    if without:
        messages.note(f"not compared, because they have no draws: {'; '.join(without)}")
    return {name: one for name, one in found.items() if name not in without}


def _command_of(best: Any, options: argparse.Namespace) -> str | None:
    """Command that completes a file by a method; imputers have none."""
    if type(best).__name__ not in methods.METHODS.values():
        return None
    name = name_of(type(best).__name__)
    usual = _make(name, options).get_params()
    chosen = {k: v for k, v in best.get_params().items() if repr(v) != repr(usual[k])}
    own = {k: v for k, v in chosen.items() if k not in ("random_state", "device")}
    settings = "".join(f" --set {quote(f'{k}={v}')}" for k, v in own.items())
    if options.draws is not None:
        settings += f" --draws {options.draws}"
    return f"skmc complete {quote(options.source)} OUT --method {name}{settings}"


def _make(name: str, options: argparse.Namespace) -> Any:
    if name != methods.IMPUTER:
        return methods.make(name, {}, options.seed, options.device)
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=options.seed, keep_empty_features=True)
