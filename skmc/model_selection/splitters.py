"""Splitters: of cells by missingness patterns or by time, and of counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skmc import patterns
from skmc.cells import Container, Entries, is_na
from skmc.cells.copies import held_out_with_copies
from skmc.linalg import Seed
from skmc.tables import as_dates

PATTERNS = ("mcar", "patch", "rows", "mar", "mnar", "like_missing")


class CellSplitter:
    """Base class of splitters of cells, which know their number of splits."""

    n_splits: int

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : Ignored, default=None
            Present for compatibility with scikit-learn.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : Ignored, default=None
            Present for compatibility with scikit-learn.

        Returns
        -------
        int
        """
        return self.n_splits


@dataclass(eq=False)
class CellSplit(CellSplitter):
    """Splitter that holds out observed cells in patterns of missing cells in practice.

    Use it as ``cv`` of a search that is fitted to `Entries`, or in `compare`. The
    held-out cells of different splits are drawn independently and may overlap; use
    ``KFold(shuffle=True)`` for disjoint ones.

    Parameters
    ----------
    pattern : {"mcar", "patch", "rows", "mar", "mnar", "like_missing"}, default="mcar"
        Pattern of the held-out cells: "mcar" draws cells completely at random, "patch"
        a rectangle at a random place, and "rows" whole rows. "mar" draws cells with a
        probability that depends on another column, see `skmc.patterns.mar`; with "mnar"
        it depends on their own value, see `skmc.patterns.mnar`. "like_missing" follows
        the cells that are missing already, see `skmc.patterns.like_missing`. In rows
        that are copies, the same cells are held out.
    n_splits : int >= 1, default=5
        Number of splits.
    fraction : float in (0, 1), default=0.2
        Share of the observed cells to hold out; for "patch" the share of all cells, for
        "rows" the share of the rows.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers that draw the cells.

    See Also
    --------
    LeaveLastOut : Holds out the latest cells.
    compare : Uses this splitter.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import Entries
    >>> from skmc.model_selection import CellSplit
    >>> cells = Entries(np.arange(20.0).reshape(4, 5))
    >>> split = CellSplit("rows", n_splits=1, fraction=0.25, random_state=0)
    >>> [(train, test)] = split.split(cells)
    >>> np.unique(cells[test].rows)
    array([2])
    """

    pattern: str = "mcar"
    n_splits: int = 5
    _: KW_ONLY
    fraction: float = 0.2
    random_state: Seed = None

    def split(
        self, X: Container, y: object = None, groups: object = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate positions in ``Entries(X)`` to train on and to hold out.

        Parameters
        ----------
        X : container
            Matrix whose observed cells are split.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : Ignored, default=None
            Present for compatibility with scikit-learn.

        Yields
        ------
        train : int ndarray
        test : int ndarray
        """
        if self.pattern not in PATTERNS:
            raise ValueError(
                f"pattern must be one of {PATTERNS}, got {self.pattern!r}; 'mcar' "
                "hides cells at random."
            )
        if not 0 < self.fraction < 1:
            raise ValueError(f"fraction must lie in (0, 1), got {self.fraction}.")
        cells = X if isinstance(X, Entries) else Entries(X)
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            place = cells.rows, cells.cols, cells.values
            held_out = self._hide(cells, rng)
            held_out = held_out_with_copies(held_out, *place, cells.matrix_shape)
            if held_out.all() or not held_out.any():
                raise ValueError(
                    f"{self.pattern!r} with fraction={self.fraction} holds out "
                    f"{held_out.sum()} of {len(cells)} cells; change fraction."
                )
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def _hide(self, cells: Entries, rng: np.random.RandomState) -> np.ndarray:
        if self.pattern == "mcar":  # without a dense matrix
            held_out = np.zeros(len(cells), bool)
            count = round(self.fraction * len(cells))
            held_out[rng.permutation(len(cells))[:count]] = True
            return held_out
        if self.pattern == "rows":
            rows = np.unique(cells.rows)
            count = max(1, round(self.fraction * len(rows)))
            return np.isin(cells.rows, rng.permutation(rows)[:count])
        if self.pattern == "patch":
            inside = np.ones(len(cells), bool)
            for place, size in zip(
                (cells.rows, cells.cols), cells.matrix_shape, strict=True
            ):
                length = max(1, round(self.fraction**0.5 * size))
                start = rng.randint(size - length + 1)
                inside &= (place >= start) & (place < start + length)
            return inside
        hide = getattr(patterns, self.pattern)
        hidden = hide(cells.to_cells(), self.fraction, random_state=rng)
        return np.asarray(hidden[cells.rows, cells.cols])


@dataclass(eq=False)
class LeaveLastOut(CellSplitter):
    """Splitter that holds out the latest cells of each row.

    Use it as ``cv`` of a search that is fitted to `Entries`, with the time of each cell
    as ``groups``: ``search.fit(cells, groups=times)``.

    Parameters
    ----------
    n_last : int >= 1, default=1
        Number of cells of each row that a split holds out. A row keeps at least one
        cell to train on.
    n_splits : int >= 1, default=1
        Number of splits. The second one holds out the cells before those of the first
        one and trains on earlier ones, and so on.

    See Also
    --------
    CellSplit : Holds out cells whatever their time.

    Examples
    --------
    >>> from skmc import Entries
    >>> from skmc.model_selection import LeaveLastOut
    >>> cells = Entries([[5, 3, 4], [1, 2, 2]])
    >>> [(train, test)] = LeaveLastOut().split(cells, groups=[3, 1, 2, 7, 9, 8])
    >>> test
    array([0, 4])
    """

    n_last: int = 1
    n_splits: int = 1

    def split(
        self, X: Container, y: object = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate positions in ``Entries(X)`` to train on and to hold out.

        Parameters
        ----------
        X : container
            Matrix whose observed cells are split.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : array-like of numbers or dates, shape (n_cells,)
            Time of each cell. Of equal times, the later position is the last. Texts
            are read as dates if they have one format.

        Yields
        ------
        train : int ndarray
        test : int ndarray
        """
        if not (self.n_last >= 1 and self.n_splits >= 1):
            raise ValueError(
                f"n_last and n_splits must be at least 1, got {self.n_last} and "
                f"{self.n_splits}."
            )
        cells = X if isinstance(X, Entries) else Entries(X)
        times = None if groups is None else _times(groups)
        if times is None or times.shape != (len(cells),):
            raise ValueError(
                f"groups must be the time of each of the {len(cells)} cells, got "
                f"{'None' if times is None else f'shape {times.shape}'}."
            )
        missing = times != times  # NaN and NaT
        if missing.any():
            raise ValueError(f"groups has no time at position {missing.argmax()}.")
        order = np.lexsort((times, cells.rows))
        count = np.bincount(cells.rows, minlength=cells.matrix_shape[0])
        # Number of later cells of the same row.
        later = np.empty(len(cells), int)
        later[order] = count.cumsum()[cells.rows[order]] - 1 - np.arange(len(cells))
        first = later == count[cells.rows] - 1
        for k in range(self.n_splits):
            low, high = k * self.n_last, (k + 1) * self.n_last
            test = (later >= low) & (later < high) & ~first
            if not test.any():
                raise ValueError(
                    f"no row has {low + 2} cells for split {k}; lower n_splits."
                )
            yield np.flatnonzero((later >= high) | first), np.flatnonzero(test)


def _times(groups: Any) -> np.ndarray:
    """Times that can be compared; texts are read as dates."""
    if getattr(getattr(groups, "dtype", None), "ordered", False):  # of pandas
        codes = np.asarray(getattr(groups, "cat", groups).codes)
        return np.where(codes < 0, np.nan, codes)
    times = np.asarray(groups)
    if times.dtype.kind not in "OUST" or times.ndim != 1:
        return times
    dates = as_dates(times.tolist())
    missing = np.array([is_na(time) or time != time for time in dates], bool)
    if missing.any():
        return np.where(missing, np.nan, 0.0)
    for k, time in enumerate(dates):
        if isinstance(time, str):
            raise ValueError(
                f"groups has the text {time!r} at position {k}, and the times are not "
                "dates in one format; convert them to numbers or dates, or to ordered "
                "categories of pandas."
            )
    rank = {time: k for k, time in enumerate(sorted(set(dates)))}
    return np.array([rank[time] for time in dates])


@dataclass(eq=False)
class CountSplit(CellSplitter):
    r"""Splitter that divides the molecules of counts, and holds out no cells.

    For the choice of a smoothing of counts, as of single cells; not for matrices with
    missing cells, whose observed cells `CellSplit` holds out.

    Molecular cross-validation: each molecule of a count :math:`x` is held out with
    probability :math:`q`, so that

    .. math::

        x^{test} \sim Binomial(x, q), \qquad x^{train} = x - x^{test}.

    If :math:`x` has the distribution of Poisson with mean :math:`\lambda`, both parts
    are independent, with means :math:`q \lambda` and :math:`(1 - q) \lambda`. So the
    mean squared error of a completion of :math:`x^{train}` as a prediction of
    :math:`x^{test} (1 - q) / q` is, up to the same constant for all completions, the
    error of the expected counts. Held-out values are multiplied by
    :math:`(1 - q) / q`.

    Pass it to `compare` among ``patterns``, with ``metrics=["rmse"]``. For a search,
    pass it as ``cv``, and fit to ``thin(X)``.

    Parameters
    ----------
    fraction : float in (0, 1), default=0.1
        Probability :math:`q`. The completers are judged on counts that are smaller than
        yours by the factor :math:`1 - q`.
    n_splits : int >= 1, default=5
        Number of random splits.
    random_state : int, RandomState instance or None, default=None
        Source of the random numbers.

    See Also
    --------
    CellSplit : Holds out cells, whose values are then missing.

    Notes
    -----
    Zeros are counts: pass an array or AnnData, not a SciPy sparse matrix, whose zeros
    would be missing. A completer is judged by the values of its model in all cells.
    Counts with more variance than Poisson's have parts that are correlated, which
    favors completions that follow the data closely. Genes with large counts have most
    of the weight in the error.

    References
    ----------
    Batson, Royer, Webber. Molecular cross-validation for single-cell RNA-seq. bioRxiv
    (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import MeanCompleter, SVDCompleter
    >>> from skmc.model_selection import CountSplit, compare
    >>> rng = np.random.RandomState(0)
    >>> counts = rng.poisson(np.outer(rng.uniform(1, 9, 60), rng.uniform(1, 9, 30)))
    >>> split = CountSplit(n_splits=3, random_state=0)
    >>> ranked = compare(
    ...     {"rank 1": SVDCompleter(1), "rank 9": SVDCompleter(9)},
    ...     counts,
    ...     patterns=[split],
    ...     metrics=["rmse"],
    ... )
    >>> ranked["completer"].tolist()
    ['rank 1', 'rank 9']
    """

    fraction: float = 0.1
    n_splits: int = 5
    _: KW_ONLY
    random_state: Seed = None

    def thin(self, X: Container) -> Entries:
        """Draw the parts of the counts, and join them for searches.

        Parameters
        ----------
        X : container
            Counts: whole numbers of at least 0.

        Returns
        -------
        Entries
            Each observed cell with its count in training and its held-out one, for each
            split; and at last with its own count. Of a cell that occurs several times,
            completers use the last one: the best candidate of a search is fitted to the
            counts themselves.

        Raises
        ------
        ValueError
            A value is not a whole number of at least 0, or a parameter is outside of
            its range.
        """
        if not (0 < self.fraction < 1 and self.n_splits >= 1):
            raise ValueError(
                "fraction must lie in (0, 1) and n_splits be at least 1, got "
                f"{self.fraction} and {self.n_splits}."
            )
        cells = X if isinstance(X, Entries) else Entries(X)
        counts = cells.values
        wrong = (counts < 0) | (counts != np.rint(counts))
        if wrong.any():
            k = wrong.argmax()
            raise ValueError(
                f"X holds {counts[k]} at row {cells.rows[k]}, column {cells.cols[k]}, "
                "which is not a count; pass the counts before they are normalized."
            )
        rng = check_random_state(self.random_state)
        factor = (1 - self.fraction) / self.fraction
        pairs = []
        for _ in range(self.n_splits):
            held_out = rng.binomial(counts.astype(np.int64), self.fraction)
            pairs += [counts - held_out, held_out * factor]
        repeated = cells[np.tile(np.arange(len(cells)), 2 * self.n_splits + 1)]
        repeated.values = np.concatenate([*pairs, counts]).astype(counts.dtype)
        return repeated

    def split(
        self, X: Container, y: object = None, groups: object = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate positions in ``thin(X)`` to train on and to compare with.

        Parameters
        ----------
        X : Entries
            Result of `thin`.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        groups : Ignored, default=None
            Present for compatibility with scikit-learn.

        Yields
        ------
        train : int ndarray
        test : int ndarray
        """
        n_parts = 2 * self.n_splits + 1
        cells = X if isinstance(X, Entries) else Entries(X)
        n_cells = len(cells) // n_parts
        place = cells.rows * cells.matrix_shape[1] + cells.cols
        if (
            n_cells * n_parts != len(cells)
            or (place.reshape(n_parts, n_cells) != place[:n_cells]).any()
        ):
            raise ValueError(
                "CountSplit splits counts, not cells; fit the search to "
                "split.thin(X) with the same CountSplit."
            )
        positions = np.arange(n_cells)
        for k in range(self.n_splits):
            yield positions + 2 * k * n_cells, positions + (2 * k + 1) * n_cells
