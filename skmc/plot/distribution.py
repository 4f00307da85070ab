"""Imputed values of a table beside the observed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from skmc.base import warn_user
from skmc.cells import in_order_of
from skmc.plot.panels import axes_for
from skmc.tables import RawColumn, as_table, marks_of_columns, positions_of, raw_columns

MAX_COLUMNS = 12  # drawn unless columns are chosen
PER_ROW = 4
MAX_BARS = 10  # numbers with more distinct values get densities, categories "others"
MAX_PATTERNS = 3  # of a column; further ones share a curve
N_BINS = 400  # of a density

Values = np.ndarray  # of float or datetime64, or of objects, which are categories


@dataclass(eq=False, repr=False)
class DistributionDisplay:
    """The imputed values of each column of a table beside the observed ones.

    This plot shows at a glance whether a completion is plausible: imputed values
    outside of the range of the observed ones, a peak at the mean, or a category that is
    never imputed. Numbers and dates have densities, categories and numbers of at most
    ten distinct values have bars.

    Two differences are no fault. Means, as of ``transform``, vary less than the
    observed values, and draws, as of ``sample``, vary as much. And values that are
    missing in rows of a certain kind are distributed as in these rows.

    Parameters
    ----------
    observed : mapping of str to ndarray
        Observed values of each column: numbers, dates, or objects, which are
        categories.
    imputed : mapping of str to mapping of str to sequence of ndarray
        Imputed values of each column and group of cells, one array for each draw.
    shares : mapping of str to float
        Share of the cells of each column that are imputed.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the panels.
    axes_ : ndarray of matplotlib Axes, shape (n_columns,)
        Axes of each column.

    See Also
    --------
    ConvergenceDisplay : Whether chains of draws have converged.
    MissingnessDisplay : Which cells are missing, and which columns together.
    skmc.model_selection.compare : Measures errors on held-out cells.

    References
    ----------
    van Buuren. Flexible imputation of missing data, section 6.6. CRC Press 2018.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skmc import GaussianCompleter
    >>> from skmc.plot import DistributionDisplay
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(200, 1) + rng.randn(200, 3)
    >>> X[:50, 1] = np.nan
    >>> gaussian = GaussianCompleter().fit(X)
    >>> draws = gaussian.sample(X, 5, random_state=0)
    >>> display = DistributionDisplay.from_completion(X, draws)
    >>> display.axes_[0].get_title()
    'column 1 (25% imputed)'
    """

    observed: Mapping[str, Values]
    imputed: Mapping[str, Mapping[str, Sequence[Values]]]
    shares: Mapping[str, float]

    @classmethod
    def from_completion(
        cls,
        before: Any,
        after: Any,
        *,
        columns: Any = None,
        by_pattern: bool = False,
        missing_values: Any = np.nan,
        **params: Any,
    ) -> DistributionDisplay:
        """Draw the columns of a table that have been completed.

        Parameters
        ----------
        before : DataFrame, or container as for completers, of shape (n_rows, n_cols)
            The table with its missing cells.
        after : table of the same shape, or sequence of them
            The completed table, or several draws: a list, or an array of shape
            (n_draws, n_rows, n_cols).
        columns : str, int, sequence of them, slice, mask or callable, default=None
            Columns to draw, as in `sklearn.compose.ColumnTransformer`. None draws those
            with imputed cells, at most twelve with the most of them.
        by_pattern : bool, default=False
            Whether cells have a curve for each pattern of missing cells in their row,
            that is, of the other columns that are missing, too. The three most frequent
            patterns of a column are drawn, and all others together; of several draws,
            all values together.
        missing_values : object or sequence of objects, default=numpy.nan
            Values that mark missing cells, in addition to NaN, None and pandas' NA.
        **params : dict
            Parameters of `plot`.

        Returns
        -------
        DistributionDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the shapes differ, if a column is unknown, or if there is no column with
            both observed and imputed cells.
        """
        marks = marks_of_columns(missing_values)
        before = as_table(before)
        draws = [
            as_table(in_order_of(draw, before, "after", "before"))
            for draw in _draws_of(after)
        ]
        for draw in draws:
            if draw.shape != before.shape:
                raise ValueError(
                    f"after has shape {draw.shape}, before {before.shape}; pass the "
                    "completion of the same rows and columns, without indicators."
                )
        old = raw_columns(before, marks)
        new = [raw_columns(draw, marks) for draw in draws]
        names = getattr(before, "columns", [f"column {k}" for k in range(len(old))])
        names = [str(name) for name in names]
        missing = np.stack([raw.missing for raw in old], 1)
        filled = [[~raw.missing for raw in raws] for raws in new]
        count = (missing & np.stack(filled[0], 1)).sum(0) * ~missing.all(0)
        if columns is None:
            chosen = np.argsort(-count, kind="stable")[:MAX_COLUMNS]
            places = sorted(k for k in chosen.tolist() if count[k])
            if (n_imputed := int((count > 0).sum())) > len(places):
                warn_user(
                    f"{len(places)} of {n_imputed} columns with imputed cells are "
                    "drawn, those with most of them; pass columns to choose others."
                )
        else:
            places = positions_of(before, columns, "columns")
        if not places or not count[places].all():
            who = [names[k] for k in places if not count[k]]
            raise ValueError(
                f"{f'columns {who}' if who else 'before'} has no column with both "
                "observed cells and missing cells that are filled in after; pass the "
                "table before its completion first."
            )
        observed: dict[str, Values] = {}
        imputed: dict[str, dict[str, list[Values]]] = {}
        shares: dict[str, float] = {}
        for k in places:
            original, *drawn = _values([old[k], *(raws[k] for raws in new)])
            observed[names[k]], of_groups = original[~missing[:, k]], {}
            for label, rows in _groups(missing, k, names, by_pattern).items():
                pairs = zip(drawn, filled, strict=True)
                of_groups[label] = [values[rows & seen[k]] for values, seen in pairs]
                if by_pattern:
                    of_groups[label] = [np.concatenate(of_groups[label])]
            imputed[names[k]] = of_groups
            shares[names[k]] = count[k] / (count[k] + len(observed[names[k]]))
        return cls(observed, imputed, shares).plot(**params)

    def plot(self, *, ax: Any = None) -> DistributionDisplay:
        """Draw a panel for each column.

        The observed values are filled. Each draw has a line of its own. The bars of
        several draws are their mean.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of them, one for each column, default=None
            Axes of the panels; None makes a figure.

        Returns
        -------
        DistributionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If the number of Axes differs from the number of columns.
        """
        alike = len({tuple(groups) for groups in self.imputed.values()}) == 1
        below = 0.0 if alike else 0.2 * max(map(len, self.imputed.values()))
        self.figure_, self.axes_ = axes_for(
            ax, len(self.observed), 3.1, 0.75, per_row=PER_ROW, below=below
        )
        for axis, (name, values) in zip(self.axes_, self.observed.items(), strict=True):
            groups = self.imputed[name]
            if _is_discrete([values, *(v for draws in groups.values() for v in draws)]):
                _draw_bars(axis, values, groups)
            else:
                _draw_densities(axis, values, groups)
            share = self.shares[name]
            title = f"{name} ({share:.{0 if share > 0.01 else 1}%} imputed)"
            axis.set_title(title, fontsize="medium", parse_math=False)
            if not alike:
                under = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
                axis.legend(fontsize="small", frameon=False, **under)
        if alike:
            self.axes_[0].legend(fontsize="small", framealpha=0.6)
        return self


def _draws_of(after: Any) -> list[Any]:
    """The completed tables; a list of rows is one table."""
    if getattr(after, "ndim", 2) == 3:
        return list(after)
    if isinstance(after, (list, tuple)) and len(getattr(after[0], "shape", ())) == 2:
        return list(after)
    return [after]


def _groups(
    missing: np.ndarray, k: int, names: list[str], by_pattern: bool
) -> dict[str, np.ndarray]:
    """Rows in which a column is missing, by the other columns that are, too."""
    rows = missing[:, k]
    if not by_pattern:
        return {"imputed": rows}
    others_missing = np.delete(missing[rows], k, 1)
    patterns, which, sizes = np.unique(
        others_missing, axis=0, return_inverse=True, return_counts=True
    )
    others = np.delete(np.array(names, object), k)
    common = np.argsort(-sizes, kind="stable")[:MAX_PATTERNS].tolist()
    groups = {}
    for pattern in common:
        also = others[patterns[pattern]].tolist()
        what = ", ".join(also[:2]) + ("" if len(also) < 3 else f" + {len(also) - 2}")
        label = f"imputed, with {what}" if also else "imputed, alone"
        groups[label] = np.zeros(len(rows), bool)
        groups[label][rows] = which == pattern
    if len(patterns) > MAX_PATTERNS:
        groups["imputed, other patterns"] = rows & ~np.any([*groups.values()], axis=0)
    return groups


def _values(raws: list[RawColumn]) -> list[Values]:
    """One column of several tables: numbers, dates, or objects."""
    if all(raw.numeric for raw in raws):
        return [raw.floats for raw in raws]
    times = [raw.times for raw in raws]
    if all(column is not None and column.dtype.kind == "M" for column in times):
        return times  # type: ignore[return-value]
    columns = []
    for raw in raws:
        column = np.empty(len(raw.values), object)
        column[:] = raw.values
        columns.append(column)
    return columns


def _is_discrete(values: list[Values]) -> bool:
    if values[0].dtype.kind in "OM":
        return values[0].dtype.kind == "O"
    return len(np.unique(np.concatenate(values))) <= MAX_BARS


def _draw_bars(
    axis: Any, observed: Values, groups: Mapping[str, Sequence[Values]]
) -> None:
    """Draw the shares of the values: numbers in order, others by their frequency."""
    counts = {"observed": Counter(observed.tolist())}
    for label, draws in groups.items():
        counts[label] = Counter(v for draw in draws for v in draw.tolist())
    total = sum(counts.values(), Counter())
    if observed.dtype.kind == "O":
        levels = [v for v, _ in counts["observed"].most_common()]
        levels += [v for v in total if v not in counts["observed"]]
    else:
        levels = sorted(total)
    shown = levels[: MAX_BARS if len(levels) <= MAX_BARS else MAX_BARS - 1]
    width = 0.8 / len(counts)
    for i, (label, count) in enumerate(counts.items()):
        shares = [count[level] for level in shown]
        if len(shown) < len(levels):
            shares.append(count.total() - sum(shares))
        axis.bar(
            np.arange(len(shares)) + (i - (len(counts) - 1) / 2) * width,
            np.array(shares) / max(count.total(), 1),
            width,
            color=f"C{i}",
            alpha=0.4 if i == 0 else 0.9,
            label=label,
        )
    texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in shown]
    texts += ["others"] * (len(shown) < len(levels))
    turned = max(map(len, texts)) * len(texts) > 24
    axis.set_xticks(
        range(len(texts)), texts, rotation=90 if turned else 0, parse_math=False
    )
    axis.set_ylabel("share")


def _draw_densities(
    axis: Any, observed: Values, groups: Mapping[str, Sequence[Values]]
) -> None:
    """Draw kernel densities, whose width is that for the observed values."""
    if observed.dtype.kind == "M":
        import matplotlib.dates

        as_floats = matplotlib.dates.date2num
        observed = as_floats(observed)
        groups = {k: [as_floats(v) for v in draws] for k, draws in groups.items()}
        locator = matplotlib.dates.AutoDateLocator(minticks=3, maxticks=5)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))
    drawn = [observed, *(v for draws in groups.values() for v in draws if len(v))]
    low, high = min(map(np.min, drawn)), max(map(np.max, drawn))
    edges = np.linspace(low, high, N_BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    quarters = np.subtract(*np.quantile(observed, [0.75, 0.25])) / 1.34
    deviation = min(filter(None, (np.std(observed), quarters)), default=high - low)
    bandwidth = 0.9 * deviation * len(observed) ** -0.2  # by Silverman

    def density(values: Values) -> np.ndarray:
        counts, _ = np.histogram(values, edges)
        scaled = counts / (max(len(values), 1) * (edges[1] - edges[0]))
        # Reflected at the ends, as values beyond them need not exist.
        return gaussian_filter1d(
            scaled.astype(float), bandwidth / (edges[1] - edges[0]), mode="reflect"
        )

    heights = density(observed)
    axis.fill_between(middles, heights, color="C0", alpha=0.25, linewidth=0)
    axis.plot(middles, heights, color="C0", label="observed")
    for i, (label, draws) in enumerate(groups.items(), 1):
        for k, values in enumerate(draws):
            axis.plot(
                middles,
                density(values),
                color=f"C{i}",
                linewidth=1.5 if len(draws) == 1 else 0.8,
                alpha=1.0 if len(draws) == 1 else 0.6,
                label=None if k else label,
            )
    axis.set_ylim(bottom=0)
    axis.set(ylabel="density")
