"""How long fits take: estimates from the shape and the number of observed cells."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

MOST_PAIRED = 2000  # rows, or columns, of which `AIRCompleter` compares all pairs
MOST_COLUMNS, RANK = 300, 20  # of a full covariance; of the factors above


class Size(NamedTuple):
    """Rows, columns and observed cells of a matrix, and what costs are made of.

    Parameters
    ----------
    n_rows, n_cols : int
        Shape of the matrix. Costs grow with them where there is a step for each row or
        batch of rows, or a model for each column, whatever their size.
    n_observed : int
        Number of observed cells.
    """

    n_rows: int
    n_cols: int
    n_observed: int

    @property
    def cells(self) -> int:
        """Number of cells, the missing ones included."""
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
        """A sparse factorization on a grid, of as many missing cells as are connected.

        About those by which the missing cells outnumber the observed ones.
        """
        return max(0, self.cells - 2 * self.n_observed) ** 1.5

    @property
    def trees(self) -> int:
        """Models of each column whose inputs are the other columns."""
        return self.cells * self.n_cols

    @property
    def systems(self) -> float:
        """Linear systems of the columns, or of their factors, one for each row.

        EM solves them more often the smaller the observed share of the cells: what is
        missing slows it down in proportion.
        """
        side = self.n_cols if self.n_cols <= MOST_COLUMNS else RANK
        return self.cells * side**2 * self.cells / max(1, self.n_observed)

    @property
    def pairs(self) -> int:
        """Pairs of rows and of columns that `AIRCompleter` compares."""
        return sum(n * min(n, MOST_PAIRED) for n in (self.n_rows, self.n_cols))

    @property
    def factors(self) -> int:
        """A sweep over factors of rank 30, which visits observed cells alone."""
        rank = min(30, self.n_rows, self.n_cols)
        return 2 * self.n_observed * rank**2 + (self.n_rows + self.n_cols) * rank**3


class Cost:
    """The time of a fit with one thread, as the class attribute ``cost`` has it.

    The units follow from the algorithm. The seconds of the classes fit the times of
    docs/reproduction/growth.md, one core of an AMD EPYC, by least squares of their
    logarithms.

    Parameters
    ----------
    fixed : float, default=0.0
        Seconds of any fit.
    informed : float, default=1.0
        How many times as long a fit takes with graphs of rows and columns: geometric
        means of MovieLens-100K and Flixster.
    **seconds : float
        Seconds for each unit of what grows, by the name of an attribute of `Size`.
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
    """Parameters of a completer with which `AutoCompleter` tries it.

    Parameters
    ----------
    name : str
        Name of the candidate.
    params : dict, default={}
        Parameters that differ from the defaults.
    cost : Cost or None, default=None
        The time of a fit; None stands for that of the class.
    needs : str or None, default=None
        A module without which the candidate is left out.
    """

    name: str
    params: Mapping[str, Any] = MappingProxyType({})
    cost: Cost | None = None
    needs: str | None = None
