"""Contributions to a cell of a table, from those to a cell of its matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skmc.base import (
    BOUNDS,
    NO_POSITION,
    Contribution,
    Explanation,
    by_size,
    check_missing,
    column_of,
    labeled,
    name_of_row,
    row_of,
)
from skmc.tables.column import Standardized
from skmc.tables.source import Source


def explained_in_table(
    source: Source,
    row: Any,
    column: Any,
    explain: Callable[[int, int], Explanation],
    row_names: np.ndarray | None = None,
) -> Explanation:
    """Explain a missing number of a table."""
    names, table = source.names, source.table
    i = row_of(source.X, row, len(source.numbers), None)
    k = column_of(column, names, len(names))
    own, name = table.columns[k], name_of_row(source.X, i, None)
    if own is None:
        raise ValueError(f"Column {names[k]!r} is returned as it is, not completed.")
    if own.kind != "numeric" or not isinstance(own, Standardized):
        numeric = [names[n] for n in np.flatnonzero(table.numeric)]
        raise ValueError(
            f"Column {names[k]!r} is {own.kind}: its completed values are mapped to "
            "levels or dates and are not sums of contributions. Explain a column of "
            f"numbers, such as {numeric[:3]}."
        )
    if not source.missing[i, k]:
        check_missing(source.numbers[i, k], name, names[k])
    of = np.repeat([n for n, _ in table.used], [c.width for _, c in table.used])
    inner = explain(i, int(np.flatnonzero(of == k)[0]))
    unit, mean = own.deviation, own.mean
    contributions = [
        c._replace(amount=unit * c.amount, cell=unit * c.cell + mean)
        for c in inner.contributions
    ]
    if inner.kind == "columns":
        contributions = _joined(contributions, source, of, i, own)
    elif inner.kind == "rows":
        contributions = labeled(contributions, row_names)
    base = unit * inner.base + mean
    total = base + sum(c.amount for c in contributions)
    value = float(own.rounded(np.array([total]))[0])
    if value != total:
        contributions.append(Contribution(BOUNDS, NO_POSITION, value - total))
    return Explanation(name, names[k], value, base, inner.kind, tuple(contributions))


def _joined(
    found: list[Contribution],
    source: Source,
    of: np.ndarray,
    i: int,
    own: Standardized,
) -> list[Contribution]:
    """Add up the contributions of the matrix columns of each column of the table."""
    without_column = [c for c in found if c.position == NO_POSITION]
    amounts: dict[int, float] = {}
    weights: dict[int, float] = {}
    for c in found:
        if c.position != NO_POSITION:
            k = int(of[c.position])
            amounts[k] = amounts.get(k, 0.0) + c.amount
            weights[k] = c.weight
    single = []
    for k, amount in amounts.items():
        column, cell, weight = source.table.columns[k], np.nan, np.nan
        if isinstance(column, Standardized) and column.kind == "numeric":
            cell = float(source.numbers[i, k])
            weight = weights[k] * own.deviation / column.deviation
        single.append(Contribution(source.names[k], k, amount, cell, weight))
    return [*by_size(single), *without_column]
