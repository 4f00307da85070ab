"""``skmc plot IN``: a picture of the missing cells of a table."""

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
    target = options.target or f"{Path(options.source).stem}-missing.png"
    if Path(target).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{target}: the name must end in .png, .svg or .pdf")
    files.check_target(target, options.force)
    file = files.read(options.source, options)
    if not isinstance(file, TableFile):
        raise UsageError(f"{options.source} is not a table (CSV, TSV, Parquet)")
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


def _drawn(missing: np.ndarray, names: list[str], title: str) -> Any:
    """Draw cells, the missing ones dark, with the share of them above each column."""
    plt = optional("matplotlib.pyplot", "plot", "Matplotlib")
    n_rows, n_cols = missing.shape
    parts = np.array_split(missing, min(n_rows, MAX_ROWS))
    shares = np.array([part.mean(0) for part in parts])
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
