"""Estimates of the time of a fit from the shape and the number of observed cells."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

MOST_PAIRED = 2000  # largest number of rows or columns whose pairs are all compared
LOW_RANK = ("svd", "ialm", "tnnr", "ncarl")  # cheap candidates of low rank
MOST_COLUMNS, RANK = 300, 20  # columns of a full covariance, else rank of the factors


class Size(NamedTuple):
    """Rows, columns and observed cells of a matrix, and the units of costs.

    Parameters
    ----------
    n_rows, n_cols : int
        Shape of the matrix. Costs grow with them if there is a step for each row or
        batch of rows, or a model for each column, whatever their size.
    n_observed : int
        Number of observed cells.
    """

    n_rows: int
    n_cols: int
    n_observed: int

    @property
    def cells(self) -> int:
        """Number of cells, including the missing ones."""
        return self.n_rows * self.n_cols

    @property
    def svd(self) -> int:
        """A singular value decomposition, or a product with a square matrix."""
        return self.cells * min(self.n_rows, self.n_cols)

    @property
    def rows_compared(self) -> int:
        """Comparisons of all pairs of rows."""
        return self.n_rows * self.cells

    @property
    def lookups(self) -> float:
        """Donors of single cells: 15 that have the column, or all that have it."""
        share = self.n_observed / self.cells
        return self.cells * min(15 / share, share * self.n_rows) if share else 0.0

    @property
    def holes(self) -> float:
        """A sparse factorization on a grid of the connected missing cells.

        Their number is about the excess of missing over observed cells.
        """
        return max(0, self.cells - 2 * self.n_observed) ** 1.5

    @property
    def trees(self) -> int:
        """Models of each column whose inputs are the other columns."""
        return self.cells * self.n_cols

    @property
    def sampled_trees(self) -> int:
        """Models of each column, each split of which tries ten of the others."""
        return self.cells * min(self.n_cols, 10)

    @property
    def systems(self) -> float:
        """Linear systems of the columns, or of their factors, one for each row.

        EM needs more steps for a smaller observed share of the cells, in inverse
        proportion.
        """
        side = self.n_cols if self.n_cols <= MOST_COLUMNS else RANK
        return self.cells * side**2 * self.cells / max(1, self.n_observed)

    @property
    def pairs(self) -> int:
        """Pairs of rows and of columns that `AIRCompleter` compares."""
        return sum(n * min(n, MOST_PAIRED) for n in (self.n_rows, self.n_cols))

    @property
    def factors(self) -> int:
        """A sweep over factors of rank 30, which visits only observed cells."""
        rank = min(30, self.n_rows, self.n_cols)
        return 2 * self.n_observed * rank**2 + (self.n_rows + self.n_cols) * rank**3


class Cost:
    """The time of a fit with one thread, for the class attribute ``cost``.

    The units follow from the algorithm. The seconds of the classes fit the times of
    ``benchmarks/scaling.py``, one core of an AMD EPYC, by least squares of their
    logarithms.

    Parameters
    ----------
    fixed : float, default=0.0
        Seconds of any fit.
    informed : float, default=1.0
        Factor of the time of a fit with graphs of rows and columns: geometric
        means of MovieLens-100K and Flixster.
    **seconds : float
        Seconds for each unit of a cost, by the name of an attribute of `Size`.

    See Also
    --------
    skmc.completers.Variant : A set of parameters to try.
    """

    def __init__(
        self, fixed: float = 0.0, informed: float = 1.0, **seconds: float
    ) -> None:
        self.fixed, self.informed, self.seconds = fixed, informed, seconds

    def __call__(self, size: Size) -> float:
        return self.fixed + sum(
            s * getattr(size, unit) for unit, s in self.seconds.items()
        )


class Variant(NamedTuple):
    """A set of parameters with which `AutoCompleter` tries a completer.

    Parameters
    ----------
    name : str
        Name of the candidate.
    params : dict, default={}
        Parameters that differ from the defaults.
    cost : Cost or None, default=None
        Time of a fit; None is the cost of the class.
    comparing : dict, default={}
        Parameters of fits that take about half the time, for the comparison.
    after : tuple of str, default=()
        Names of cheaper candidates that find the same structure. If they have weight, a
        completer for pictures is tried at any price.
    only_after : bool, default=True
        Whether this one is not tried if they have no weight.

    See Also
    --------
    skmc.completers.Cost : The time of a fit.
    """

    name: str
    params: Mapping[str, Any] = MappingProxyType({})
    cost: Cost | None = None
    comparing: Mapping[str, Any] = MappingProxyType({})
    after: tuple[str, ...] = ()
    only_after: bool = True
