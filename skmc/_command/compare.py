"""``skmc compare IN``: a table of methods, best first."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skmc._command import files, methods
from skmc._command.failure import CommandError, UsageError, optional
from skmc._command.messages import Messages
from skmc._command.picture_file import PictureFile

MAX_IMPUTER_COLUMNS = 50  # its time grows with their third power
# Methods that take seconds where others take minutes.
QUICK = ("air", "ialm", "knn", "mean", "ncarl", "svd", "tnnr")
QUICK_FOR_TABLES = (*QUICK, "bayesian-factorization", "dmf", "snn")
QUICK_FOR_PICTURES = (*QUICK, "nonlocal")


def run(options: argparse.Namespace, messages: Messages) -> None:
    if options.html == "-":
        raise UsageError("--html needs a file name, not '-'")
    if options.html:
        files.check_target(options.html, options.force)
    file = files.read(options.source, options)
    for package in ("pandas", "rich"):
        optional(package, "compare", package)
    if options.html:
        optional("matplotlib", "--html", "Matplotlib")
    matrix = file.matrix()
    from skmc._command.report import Report
    from skmc.model_selection import compare

    names = options.methods or _usual(isinstance(file, PictureFile), matrix.shape[1])
    with messages.progress() as progress:
        table = compare(
            {name: _make(name, options) for name in names},
            matrix,
            cv=options.splits,
            patterns=[options.pattern],
            metrics=[options.metric],
            random_state=options.seed,
            on_fit=partial(progress.count, "fits") if progress else None,
        )
    report = Report(table, file, matrix, options)
    report.print()
    for row in table[table["mean"].isna()].itertuples():
        messages.warn(f"{row.completer} failed: {row.error}")
    if table["mean"].isna().all():
        raise CommandError("all methods failed")
    if options.html:
        page = report.html()
        files.write(
            options.html,
            lambda path: Path(path).write_text(page, "utf-8"),
            options.force,
        )
        messages.note(f"report written to {options.html}")


def _usual(picture: bool, n_columns: int) -> list[str]:
    if picture:
        skimage = ["biharmonic"] if find_spec("skimage") else []
        return sorted([*QUICK_FOR_PICTURES, *skimage])
    imputer = [methods.IMPUTER] if n_columns <= MAX_IMPUTER_COLUMNS else []
    return sorted([*QUICK_FOR_TABLES, *imputer])


def _make(name: str, options: argparse.Namespace) -> Any:
    if name != methods.IMPUTER:
        return methods.make(name, {}, options.seed, options.device)
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=options.seed, keep_empty_features=True)
