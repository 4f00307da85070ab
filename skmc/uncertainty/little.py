"""Little's test of whether cells are missing completely at random."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from skmc.cells import Container, to_cells
from skmc.completers import GaussianCompleter

TOL, MAX_ITER = 1e-8, 10_000  # of the maximum of the likelihood
SINGULAR = 1e-6  # smallest eigenvalue of the correlations


class LittleTest(NamedTuple):
    """Result of `little_test`.

    Parameters
    ----------
    statistic : float
        Squared distance of the means of the patterns from the common means.
    dof : int
        Degrees of freedom of the chi-squared distribution.
    pvalue : float
        Probability of a larger statistic if cells are missing completely at random.
    n_patterns : int
        Number of patterns of observed columns.

    See Also
    --------
    little_test : Makes it.
    """

    statistic: float
    dof: int
    pvalue: float
    n_patterns: int


def little_test(X: Container, *, missing_values: float = np.nan) -> LittleTest:
    r"""Test whether the cells of a table are missing completely at random (MCAR).

    Rows with the same observed columns :math:`o_j` form the pattern :math:`j`. If cells
    are missing completely at random, the means :math:`\bar x_j` of the :math:`n_j` rows
    of each pattern estimate the same means. The statistic is

    .. math::

        d^2 = \sum_j n_j (\bar x_j - \hat\mu_{o_j})^\top \hat S_{o_j o_j}^{-1}
        (\bar x_j - \hat\mu_{o_j}),

    with the maximum-likelihood estimates :math:`\hat\mu` and :math:`\hat S` of a normal
    distribution from all observed cells. For many rows, it has a chi-squared
    distribution with :math:`\sum_j |o_j| - p` degrees of freedom, where :math:`p` is
    the number of columns.

    Parameters
    ----------
    X : container as for completers, of shape (n_samples, n_features)
        Table of numbers. Rows without an observed cell do not count.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.

    Returns
    -------
    LittleTest

    Raises
    ------
    ValueError
        A column is constant or has no observed cell, all rows have the same pattern, or
        there are so few rows that the covariance is singular.

    See Also
    --------
    skmc.plot.MissingnessDisplay : Shows which columns are missing together.
    skmc.patterns.mar : Hides cells at random given others.

    Notes
    -----
    A small p-value says that cells are not missing completely at random. The test
    cannot tell MAR from MNAR, that is, whether the reason is in observed cells, which
    completers take into account, or in the missing values themselves, which nobody
    sees. A large p-value does not prove MCAR. The test compares means only, and it
    finds nothing if a column is missing because of its own value and is unrelated to
    all others.

    The chi-squared distribution is an approximation for many rows. P-values are less
    exact if most patterns have few rows or if the columns have heavy tails.

    References
    ----------
    Little. A test of missing completely at random for multivariate data with missing
    values. Journal of the American Statistical Association 83 (1988).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> from skmc.uncertainty import little_test
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(500, 1) + rng.randn(500, 4)
    >>> for hide in (patterns.random, patterns.mar):
    ...     holed = np.where(hide(X, 0.2, random_state=0), np.nan, X)
    ...     print(bool(little_test(holed).pvalue > 0.05))
    True
    False
    """
    cells = to_cells(X, missing_values=missing_values).astype(float)
    if cells.ndim != 2:
        raise ValueError(f"X must be a matrix, got {cells.ndim} dimensions.")
    cells = cells[~np.isnan(cells).all(1)]
    names: Any = getattr(X, "columns", range(cells.shape[1]))
    for name, column in zip(names, cells.T, strict=True):
        observed = column[~np.isnan(column)]
        if not len(observed) or observed.min() == observed.max():
            what = "is constant" if len(observed) else "has no observed cell"
            raise ValueError(f"Column {name!r} of X {what}; leave it out of the test.")
    seen, pattern = np.unique(~np.isnan(cells), axis=0, return_inverse=True)
    if len(seen) < 2:
        raise ValueError(
            "All rows of X have the same observed columns, so there are no patterns to "
            "compare; the test needs columns of which only some cells are missing."
        )
    gaussian = GaussianCompleter(0.0, rank=None, tol=TOL, max_iter=MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of singular covariances
        gaussian.fit(cells)
    mean, covariance = gaussian.location_, gaussian.covariance_
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    finite = np.isfinite(correlation).all()
    if not finite or np.linalg.eigvalsh(correlation)[0] < SINGULAR:
        raise ValueError(
            f"The covariance of the {cells.shape[1]} columns of X is singular, because "
            f"columns depend linearly on each other or {len(cells)} rows are too few; "
            "leave columns out."
        )
    z = (cells - mean) / scale
    statistic = 0.0
    for k, in_pattern in enumerate(seen):
        rows = z[pattern.ravel() == k][:, in_pattern]
        off = rows.mean(0)
        root = cho_factor(correlation[np.ix_(in_pattern, in_pattern)])
        statistic += len(rows) * float(off @ cho_solve(root, off))
    dof = int(seen.sum()) - cells.shape[1]
    return LittleTest(statistic, dof, float(chi2.sf(statistic, dof)), len(seen))
