"""How long fits take: estimates from the shape and the number of observed cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST_PAIRED = 2000  # rows, or columns, of which `AIRCompleter` compares all pairs
MOST_COLUMNS, RANK = 300, 20  # of a full covariance; of the factors above


class Size(NamedTuple):
    """Rows, columns and observed cells of a matrix, and what costs are made of.

    Parameters
    ----------
    n_rows, n_cols : int
        Shape of the matrix.
    n_observed : int
        Number of observed cells.
    """

    n_rows: int
    n_cols: int
    n_observed: int

    @classmethod
    def of(cls, cells: np.ndarray) -> Size:
        """Return the size of a matrix.

        Parameters
        ----------
        cells : ndarray of shape (n_rows, n_cols)
            The matrix, NaN where a cell is missing.

        Returns
        -------
        Size
        """
        n_rows, n_cols = cells.shape
        return cls(n_rows, n_cols, int(np.count_nonzero(~np.isnan(cells))))

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
    def rows(self) -> int:
        """Steps, one for each row or batch of rows, whatever their length."""
        return self.n_rows

    @property
    def columns(self) -> int:
        """Models, one for each column, whatever their size."""
        return self.n_cols

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
    """The time of a fit with one thread.

    Parameters
    ----------
    fixed : float
        Seconds of any fit.
    **seconds : float
        Seconds for each unit of what grows, by the name of a property of `Size`.
    """

    def __init__(self, fixed: float, **seconds: float) -> None:
        self.fixed, self.seconds = fixed, seconds

    def growing(self, size: Size) -> float:
        """Return the seconds that grow with the matrix.

        Parameters
        ----------
        size : Size
            Size of the matrix.

        Returns
        -------
        float
        """
        return sum(s * getattr(size, unit) for unit, s in self.seconds.items())

    def __call__(self, size: Size) -> float:
        return self.fixed + self.growing(size)


# Of the defaults of each class. Units follow from the algorithms. Seconds fit the times
# of docs/reproduction/growth.md, one core of an AMD EPYC, by least squares of their
# logarithms.
COSTS = {
    "AIRCompleter": Cost(0.07, pairs=2e-7, svd=2e-7),
    "AutoencoderCompleter": Cost(0.1, cells=3e-6, rows=0.002),
    "BayesianFactorizationCompleter": Cost(0.4, factors=6e-8),
    "BiBNNCompleter": Cost(0.09, cells=1e-5, rows=0.001),
    "BiharmonicCompleter": Cost(0.003, cells=8e-7, holes=9.5e-8),
    "DMFCompleter": Cost(0.05, svd=3e-7),
    "FactorizationCompleter": Cost(0.3, factors=5e-9),
    "GaussianCompleter": Cost(0.05, systems=2.4e-9),
    "IALMCompleter": Cost(0.03, svd=3e-8),
    "KNNCompleter": Cost(0.009, rows_compared=6e-10, lookups=5e-8),
    "LinkedFactorizationCompleter": Cost(0.6, cells=0.0001),
    "MeanCompleter": Cost(0.001, cells=4e-8),
    "NCARLCompleter": Cost(0.04, svd=1e-7),
    "NSRCompleter": Cost(0.2, cells=0.0001),
    "NonlocalCompleter": Cost(0.02, cells=9e-5),
    "PatchCNNCompleter": Cost(0.06, cells=0.0001),
    "SNNCompleter": Cost(0.3, svd=3e-7, rows=0.0006),
    "SVDCompleter": Cost(0.03, cells=6e-6),
    "SVTCompleter": Cost(0.05, svd=1e-7),
    "SoftImputeCompleter": Cost(0.06, cells=1e-5, rows=0.0006),
    "TNNRCompleter": Cost(0.08, svd=4e-7),
    "TreesCompleter": Cost(0.3, columns=0.002, trees=7e-6),
}
# How many times as long a fit takes with graphs of rows and columns: geometric means of
# MovieLens-100K and Flixster.
INFORMED = {"BayesianFactorizationCompleter": 2.0, "FactorizationCompleter": 15.0}
