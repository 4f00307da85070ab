"""``skmc plot IN``: a picture of the missing or of the imputed cells of a table."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from skmc._command import files
from skmc._command.failure import UsageError, optional
from skmc._command.messages import Messages
from skmc._command.tables import TableFile

MAX_ROWS = 500  # rows of the picture; more rows are averaged
MAX_NAMES = 60


def run(options: Namespace, messages: Messages) -> None:
    what = "imputed" if options.completed else "missing"
    target = options.target or f"{files.stem_and_suffix(options.source)[0]}-{what}.png"
    if Path(target).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{target}: the name must end in .png, .svg or .pdf")
    files.check_target(target, options.force)
    file = _table(options.source, options)
    if options.completed:
        after = [_table(path, options) for path in options.completed]
        n_columns = _draw_imputed(file, after, target, options)
        messages.note(f"{target}: imputed and observed values of {n_columns} columns")
        return
    missing = np.array([[v is None for v in c.values] for c in file.columns]).T
    optional("matplotlib", "plot", "Matplotlib").use("Agg")
    figure = _drawn(missing, file.names, options.source)
    kind = Path(target).suffix[1:].lower()
    files.write(
        target,
        lambda path: figure.savefig(path, format=kind, dpi=150),
        options.force,
    )
    messages.note(
        f"{target}: {missing.sum()} of {missing.size} cells are missing, in "
        f"{missing.any(0).sum()} of {missing.shape[1]} columns and "
        f"{missing.any(1).sum()} of {missing.shape[0]} rows"
    )


def _table(path: str, options: Namespace) -> TableFile:
    file = files.read(path, options)
    if not isinstance(file, TableFile):
        raise UsageError(f"{path} is not a table (CSV, TSV, Parquet)")
    return file


def _draw_imputed(
    before: TableFile, after: list[TableFile], target: str, options: Namespace
) -> int:
    """Draw the imputed values of one or several files, and count the columns."""
    pandas = optional("pandas", "--completed", "pandas")
    optional("matplotlib", "plot", "Matplotlib").use("Agg")
    from skmc.plot import DistributionDisplay

    tables = []
    for file in (before, *after):
        unknown = [name for name in before.names if name not in file.names]
        if unknown:
            raise UsageError(
                f"--completed {file.path}: there is no column {unknown[0]!r}, unlike "
                f"in {before.path}"
            )
        if len(file.columns[0].values) != len(before.columns[0].values):
            raise UsageError(
                f"--completed {file.path}: the number of rows is not that of "
                f"{before.path}"
            )
        values = dict(zip(file.names, file.columns, strict=True))
        tables.append(
            pandas.DataFrame(
                {name: pandas.Series(values[name].values) for name in before.names}
            )
        )
    try:
        display = DistributionDisplay.from_completion(tables[0], tables[1:])
    except ValueError as error:
        raise UsageError(
            f"--completed {after[0].path}: no missing cell of {before.path} is filled "
            "in it; pass the file that 'skmc complete' has written"
        ) from error
    kind = Path(target).suffix[1:].lower()
    files.write(
        target,
        lambda path: display.figure_.savefig(path, format=kind, dpi=150),
        options.force,
    )
    return len(display.observed)


def _drawn(missing: np.ndarray, names: list[str], title: str) -> Any:
    """Draw cells, the missing ones dark, with the share of them above each column."""
    plt = optional("matplotlib.pyplot", "plot", "Matplotlib")
    n_rows, n_cols = missing.shape
    bands = np.array_split(missing, min(n_rows, MAX_ROWS))
    shares = np.array([part.mean(0) for part in bands])
    width = min(max(4.0, 0.35 * n_cols + 1.5), 16.0)
    figure, (top, ax) = plt.subplots(
        2,
        sharex=True,
        figsize=(width, 6),
        height_ratios=[1, 5],
        layout="constrained",
    )
    top.bar(range(n_cols), 100 * missing.mean(0), color="tab:blue", width=0.9)
    top.set(ylabel="% missing", ylim=(0, 100), title=title)
    ax.imshow(
        shares,
        aspect="auto",
        cmap="Blues",
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(-0.5, n_cols - 0.5, n_rows + 0.5, 0.5),
    )
    ax.set(ylabel="row (missing cells are dark)")
    if n_cols <= MAX_NAMES:
        ax.set_xticks(range(n_cols), names, rotation=90)
    else:
        ax.set(xlabel="column")
    return figure
