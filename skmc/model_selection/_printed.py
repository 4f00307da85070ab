"""The printed table of a comparison, imported only if pandas is installed."""

from __future__ import annotations

import importlib
from typing import Any

pandas: Any = importlib.import_module("pandas")
SHOWN = ["pattern", "metric", "completer", "mean", "std_error", "p_value", "seconds"]
MEANINGS = {
    "crps": "score of the draws (CRPS), in standard deviations of the columns",
    "energy_i_score": "CRPS of draws of whole columns, in standard deviations",
}
TERMINAL_WIDTH, NAME_WIDTH = 80, 24  # so that the means fit beside the names


def _printed(table: Any) -> str:
    """Put first the columns that are read first; pandas omits those in the middle."""
    plain = pandas.DataFrame(table)
    if not set(SHOWN) <= set(plain):
        return str(plain)
    text: str = plain[SHOWN].to_string(
        index=False,
        float_format="{:.4g}".format,
        line_width=TERMINAL_WIDTH,
        max_colwidth=NAME_WIDTH,
    )
    others = ", ".join(name for name in plain if name not in SHOWN)
    metrics = [metric for metric in plain["metric"].unique() if metric in MEANINGS]
    lines = [text, *(f"{metric}: {MEANINGS[metric]}" for metric in metrics)]
    failed = plain.loc[plain["mean"].isna(), "completer"].unique()
    if len(failed):
        lines.append(f"without a result, see error: {', '.join(failed)}")
    return "\n".join([*lines, f"further columns: {others}"])


# Selections of rows or columns are ordinary data frames.
Comparison = type("Comparison", (pandas.DataFrame,), {"__repr__": _printed})
