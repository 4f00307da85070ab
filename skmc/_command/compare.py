"""``skmc compare IN``: a table of methods, the best first."""

from __future__ import annotations

import argparse
import re
import warnings
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from skmc._command import files, methods
from skmc._command.arguments import repeated
from skmc._command.failure import CommandError, UsageError, optional
from skmc._command.messages import Messages


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
    matrix, table = file.compared()
    from skmc._command.report import Report
    from skmc._command.tables import TOLD_OF_COLUMNS
    from skmc.cells import Entries, to_cells
    from skmc.model_selection import compare
    from skmc.tables import missing_cells

    if table is not None and options.metric not in (None, "nmae"):
        raise UsageError(
            f"--metric {options.metric}: {options.source} has columns that are not "
            "numbers, whose error is nmae; leave --metric out, or name the columns of "
            "numbers that you want to compare by --index of the others"
        )
    completers = _chosen(matrix, options, messages)
    cells: Any = table
    if table is None:
        cells = Entries.of_matrix(matrix, one_unit=True) if file.one_unit else matrix
    else:
        completers = {k: _of_table(file, k, one) for k, one in completers.items()}
    completers = _with_draws(completers, options, messages)
    with messages.progress() as progress:
        results = compare(
            completers,
            cells,
            cv=options.splits,
            patterns=[options.pattern],
            metrics=[options.metric or "nmae"],
            draws=options.draws,
            random_state=options.seed,
            on_fit=partial(progress.count, "fits") if progress else None,
        )
    # The command has told of columns and cells, with its own options as remedies.
    results["messages"] = [
        [text for text in texts if not re.match(TOLD_OF_COLUMNS, text)]
        for texts in results["messages"]
    ]
    results["warnings"] = results["warnings"].where(results["messages"].map(len) > 0, 0)
    seen = ~missing_cells(to_cells(matrix) if table is None else table)
    report = Report(results, file, matrix if table is None else table, seen, options)
    report.print()
    for row in results[results["mean"].isna()].itertuples():
        messages.warn(f"{row.completer} failed: {row.error}")
    if results["mean"].isna().all():
        raise CommandError("all methods failed")
    if hint := _command_of(results["completer"].iloc[0], options):
        messages.note(f"the best one completes the file: {hint}")
    if options.html:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", TOLD_OF_COLUMNS, UserWarning)
            page = report.html(completers[results["completer"].iloc[0]])
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
        return {name: _make(name, options) for name in options.methods}
    from skmc.completers import candidates_for

    candidates = candidates_for(
        matrix, random_state=options.seed, device=options.device
    )
    messages.note(
        f"{len(candidates)} methods are fitted {options.splits} times each; --methods "
        "selects fewer"
    )
    return candidates


def _of_table(file: Any, name: str, method: Any) -> Any:
    """The method for a table; imputers are the only candidate of a stack."""
    from skmc import AutoCompleter
    from skmc.base import BaseCompleter

    if not isinstance(method, BaseCompleter):
        method = AutoCompleter({name: method}, random_state=file.seed)
    return file.completer_of(method)


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


def _command_of(name: str, options: argparse.Namespace) -> str | None:
    """Command that completes the file by a method; scikit-learn's imputer has none."""
    if name == methods.IMPUTER:
        return None
    given = [*repeated(options)]
    if options.draws is not None:
        given.append(f"--draws={options.draws}")
    words = ["skmc", "complete", options.source, "OUT", "--method", name, *given]
    return " ".join(map(quote, words))


def _make(name: str, options: argparse.Namespace) -> Any:
    if name != methods.IMPUTER:
        return methods.make(name, {}, options.seed, options.device)
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=options.seed, keep_empty_features=True)
