"""Contributions that add up to a completed value, and the mixin that asks for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skmc.base.completer import BaseCompleter
from skmc.base.identifiers import as_array
from skmc.base.reading import read_rows
from skmc.blocks import is_lazy
from skmc.cells import Container, as_frame

Kind = Literal["rows", "columns", "completers"]
SHOWN = 10  # largest number of contributions in a text
NO_POSITION = -1  # of a contribution that is of no single row, column or completer
BOUNDS = "rounding and bounds"


class Contribution(NamedTuple):
    """What one row, column or completer adds to a completed value.

    Parameters
    ----------
    label : object
        Name of the row, the column or the completer; a position if it has no name.
    position : int
        Position among the rows of the fit, the columns or the completers. -1 for the
        contribution of something else, which the label describes.
    amount : float
        Contribution in the units of the explained cell.
    cell : float
        The cell that contributes: that of the donor in the explained column, that of
        the other column in the explained row, or the completer's value. NaN if there is
        none.
    weight : float
        Factor of the deviation of ``cell``, in the contribution of a donor, a completer
        or a column; see the notes of the completer. NaN if there is none.
    distance : float
        Distance of a donor; NaN for others.

    See Also
    --------
    skmc.Explanation : Lists them.
    """

    label: Any
    position: int
    amount: float
    cell: float = np.nan
    weight: float = np.nan
    distance: float = np.nan


@dataclass(frozen=True)
class Explanation:
    r"""A completed value as a sum of contributions.

    .. math::

        \text{value} = \text{base} + \sum_k \text{amount}_k

    The base is what the completer predicts for the column without knowing anything of
    the row. Contributions are computed from the formula of the completer, not estimated
    by sampling. They say how the completer made the value, not what caused the quantity
    in the cell.

    Parameters
    ----------
    row, column : object
        Names of the row and the column; positions if they have no names.
    value : float
        The completed value.
    base : float
        Value without contributions.
    kind : {"rows", "columns", "completers"}
        What contributes: rows of the fit (donors), other columns of the row, or members
        of a stack.
    contributions : tuple of Contribution
        Rows and completers by decreasing weight, columns by decreasing size of the
        amount. Parts that belong to none of them are last.

    See Also
    --------
    skmc.plot.ExplanationDisplay : Draws the contributions.
    skmc.KNNCompleter.explain : Makes an explanation.

    Examples
    --------
    >>> from skmc import KNNCompleter
    >>> X = [[1.0, 2.0], [1.1, 2.2], [9.0, 9.0], [1.2, float("nan")]]
    >>> explanation = KNNCompleter(n_neighbors=2).fit(X).explain(X, 3, 1)
    >>> print(explanation)
    column 1 of row 3: 2.1
      base    4.4
      row 1  -1.1  2.2 (weight 0.5, distance 0.04133)
      row 0  -1.2  2 (weight 0.5, distance 0.08267)
    >>> [(c.label, c.cell, c.weight) for c in explanation.contributions]
    [(1, 2.2, 0.5), (0, 2.0, 0.5)]
    """

    row: Any
    column: Any
    value: float
    base: float
    kind: Kind
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        lines = [("base", f"{self.base:.4g}", "")]
        shown = self.summarized(SHOWN)
        lines += [(self.name_of(c), f"{c.amount:+.4g}", _detail(c)) for c in shown]
        first, second = (
            max(map(len, part)) for part in list(zip(*lines, strict=True))[:2]
        )
        texts = [f"  {a:{first}}  {b:>{second}}{c}" for a, b, c in lines]
        return "\n".join([f"{self.title}: {self.value:.4g}", *texts])

    @property
    def title(self) -> str:
        """The names of the column and the row."""
        return f"{_named('column', self.column)} of {_named('row', self.row)}"

    def summarized(self, n: int) -> list[Contribution]:
        """The first contributions, and the sum of the others.

        Parameters
        ----------
        n : int >= 1
            Number of rows, columns or completers to keep.

        Returns
        -------
        list of Contribution
            Their sum is that of all contributions.
        """
        single = [c for c in self.contributions if c.position != NO_POSITION]
        without_column = [c for c in self.contributions if c.position == NO_POSITION]
        if rest := single[n:]:
            amount = sum(c.amount for c in rest)
            noun = self.kind if len(rest) > 1 else self.kind.removesuffix("s")
            without_column.insert(
                0, Contribution(f"{len(rest)} other {noun}", NO_POSITION, amount)
            )
        return [*single[:n], *without_column]

    def name_of(self, contribution: Contribution) -> str:
        """Describe what contributes in a word or two.

        Parameters
        ----------
        contribution : Contribution
            One of the contributions.

        Returns
        -------
        str
        """
        if contribution.position == NO_POSITION:
            return str(contribution.label)
        return _named(self.kind.removesuffix("s"), contribution.label)


def _named(noun: str, label: Any) -> str:
    """A name that says that a number is a position or an identifier."""
    number = isinstance(label, (int, np.integer))
    return f"{noun} {label}" if number else str(label)


def _detail(c: Contribution) -> str:
    numbers = [(name, getattr(c, name)) for name in ("weight", "distance")]
    text = ", ".join(f"{name} {x:.4g}" for name, x in numbers if not np.isnan(x))
    cell = "" if np.isnan(c.cell) else f"  {c.cell:.4g}"
    return cell + (f" ({text})" if text else "")


class Explains(BaseCompleter):
    """Mixin of completers whose values are sums of contributions.

    See Also
    --------
    skmc.Explanation : What `explain` returns.
    """

    _kind = cast(Any, "columns")  # what contributes, a `Kind`
    # Names of the rows of the fit, if donors contribute and X had an index.
    _row_names = cast("np.ndarray | None", None)

    def explain(self, X: Container, row: Any, column: Any) -> Explanation:
        """Say why a missing cell gets its value.

        The value is that of ``transform(X)``, as a sum of contributions; the notes of
        the class say which.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows of the fitted matrix or new rows.
        row : int or label
            Row of ``X``: its position, or its label in the index of a DataFrame. An
            integer is a label if the index holds other integers than the positions.
            Identifier of a row of `Entries` that has identifiers.
        column : int or str
            Column: its position or its name.

        Returns
        -------
        Explanation
            Without contributions if the row has no observed cell or the column had
            none in the fit: means fill these.

        Raises
        ------
        ValueError
            The cell is observed, or there is no such row or column.
        """
        check_is_fitted(self)
        check_in_memory(X)
        cells = read_rows(self, X)
        ids = self._priors.ids
        i = row_of(X, row, len(cells), None if ids is None else ids[0])
        j = column_of(column, self._column_names(), cells.shape[1])
        name = name_of_row(X, i, None if ids is None else ids[0])
        if not self._priors.counts:
            check_missing(cells[i, j], name, self._named_column(j))
        return self._explained(cells, i, j, name)

    @abstractmethod
    def _contributions(
        self, cells: np.ndarray, i: int, j: int
    ) -> tuple[float, list[Contribution]]:
        """The base, and contributions whose labels are positions, of a missing cell."""

    def _explained(self, cells: np.ndarray, i: int, j: int, name: Any) -> Explanation:
        """Explain a cell of rows that were read."""
        base, contributions = self._by_means(cells[[i]], j), list[Contribution]()
        if base is None:
            base, contributions = self._contributions(cells, i, j)
        return self._explanation(name, j, base, contributions)

    def _by_means(self, row: np.ndarray, j: int) -> float | None:
        """Value of a cell of a row (1, n_cols), if means fill its row or its column."""
        priors = self._priors
        some = priors.informative(row).any() or priors.informed_rows
        if some and not priors.empty_cols[j]:
            return None
        return float(priors.fill(row, np.zeros(row.shape))[0, j])

    def _explanation(
        self, name: Any, j: int, base: float, found: list[Contribution]
    ) -> Explanation:
        """Name what contributes, and round and bound the value like `transform`."""
        priors, names = self._priors, None
        if self._kind == "columns":
            names = self._column_names()
        elif self._kind == "rows":
            names = priors.ids[0] if priors.ids is not None else self._row_names
        found = labeled(found, names)
        total = base + sum(c.amount for c in found)
        values = np.full((1, priors.shape[1]), np.nan)
        values[0, j] = total
        if self._like is not None:
            values = self._like.apply(values)
        value = float(values[0, j])
        if value != total:
            found.append(Contribution(BOUNDS, NO_POSITION, value - total))
        column = self._named_column(j)
        return Explanation(name, column, value, base, self._kind, tuple(found))

    def _column_names(self) -> np.ndarray | None:
        if self._priors.ids is not None:
            return self._priors.ids[1]
        return getattr(self, "feature_names_in_", None)

    def _named_column(self, j: int) -> Any:
        names = self._column_names()
        return j if names is None else names[j : j + 1].tolist()[0]


def by_weight(found: Sequence[Contribution]) -> list[Contribution]:
    """Sort donors or completers: larger weights first, and then nearer donors."""
    return sorted(found, key=lambda c: (-c.weight, np.nan_to_num(c.distance)))


def by_size(found: Sequence[Contribution]) -> list[Contribution]:
    """Sort columns: larger amounts first, whatever their sign."""
    return sorted(found, key=lambda c: -abs(c.amount))


def labeled(
    found: Sequence[Contribution], names: np.ndarray | None
) -> list[Contribution]:
    """Replace the positions in the labels by names, if there are names."""
    if names is None:
        return list(found)
    plain = names.tolist()
    return [
        c if c.position == NO_POSITION else c._replace(label=plain[c.position])
        for c in found
    ]


def row_names(X: Container) -> np.ndarray | None:  # (n_rows,)
    """Labels of the rows of a DataFrame, as integers or strings."""
    labels = _labels(X)
    if labels is None:
        return None
    integers = all(isinstance(label, (int, np.integer)) for label in labels)
    return as_array(labels if integers else [str(label) for label in labels])


def name_of_row(
    X: Container,
    i: int,
    ids: np.ndarray | None,  # (n_rows,)
) -> Any:
    """Name a row of a matrix or table, by its position if it has no label."""
    names = row_names(X) if ids is None else ids
    return i if names is None else names[i : i + 1].tolist()[0]


def row_of(
    X: Any,
    row: Any,
    n_rows: int,
    ids: np.ndarray | None,  # (n_rows,)
) -> int:
    """Find the position of a row."""
    labels = _labels(X) if ids is None else ids.tolist()
    number = isinstance(row, (int, np.integer)) and not isinstance(row, bool)
    if labels is not None:
        same = [
            k
            for k, label in enumerate(labels)
            if label == row or (isinstance(row, str) and str(label) == row)
        ]
        if len(same) > 1:
            raise ValueError(
                f"row={row!r} is the label of {len(same)} rows of X; give the rows "
                "different labels (X.reset_index(drop=True))."
            )
        if same:
            return same[0]
        if ids is not None or any(isinstance(k, (int, np.integer)) for k in labels):
            raise ValueError(
                f"row={row!r} is not a label of X, whose labels are such as "
                f"{list(labels[:3])}."
            )
    if number and 0 <= row < n_rows:
        return int(row)
    what = (
        "a position from 0" if labels is None else "a label of X or a position from 0"
    )
    raise ValueError(
        f"row={row!r} must be {what} to {n_rows - 1}, because X has {n_rows} rows."
    )


def column_of(column: Any, names: Sequence[Any] | np.ndarray | None, n: int) -> int:
    """Find the position of a column."""
    columns = [] if names is None else np.asarray(names, object).tolist()
    same = [k for k, name in enumerate(columns) if name == column]
    if same:
        return same[0]
    number = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    integers = any(isinstance(name, (int, np.integer)) for name in columns)
    if number and 0 <= column < n and not integers:
        return int(column)
    which = f"columns such as {columns[:3]}" if columns else f"{n} columns"
    raise ValueError(
        f"column={column!r} is not a column: the fit had {which}; pass a name or a "
        f"position from 0 to {n - 1}."
    )


def check_missing(cell: Any, row: Any, column: Any) -> None:
    """Raise an error if a cell is observed."""
    if not np.isnan(cell):
        raise ValueError(
            f"X is observed at row {row!r}, column {column!r} ({cell:g}), so nothing "
            "completes this cell. Replace it by NaN in X to see what it would be."
        )


def check_in_memory(X: Container) -> None:
    """Raise an error for a collection of Dask."""
    if is_lazy(X):
        raise ValueError("explain needs rows in memory; pass X.compute().")


def _labels(X: Container) -> list[Any] | None:
    """Labels of the rows of a DataFrame, if they are not positions."""
    X = as_frame(X)
    index = getattr(X, "index", None) if hasattr(X, "columns") else None
    if index is None:
        return None
    labels = list(index)
    return None if labels == list(range(len(labels))) else labels
