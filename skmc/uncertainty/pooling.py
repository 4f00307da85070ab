"""Estimates that are pooled over several completed matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Pooled(NamedTuple):
    """A pooled estimate, see `pool`.

    Parameters
    ----------
    estimate : float or ndarray
        Mean of the estimates.
    std_error : float or ndarray
        Standard error of the pooled estimate.
    dof : float or ndarray
        Degrees of freedom of the t distribution of the pooled estimate.
    missing_information : float or ndarray
        Share of the information that is missing.

    See Also
    --------
    pool : Makes it.
    """

    estimate: Any
    std_error: Any
    dof: Any
    missing_information: Any


def pool(
    estimates: Sequence[Any], variances: Sequence[Any], dof: float | None = None
) -> Pooled:
    """Pool the estimates of several completed matrices by Rubin's rules.

    With ``B`` the variance between the ``k`` estimates and ``W`` the mean of their own
    variances, the total variance is ``T = W + (1 + 1/k) B``. The share of missing
    information is approximately ``l = (1 + 1/k) B / T``.

    The estimate minus its target, divided by the standard error, has approximately a t
    distribution. An interval of ``95 %`` is the estimate plus or minus the standard
    error times ``scipy.stats.t.ppf(0.975, pooled.dof)``. The degrees of freedom are

    - ``r = (k - 1) / l^2`` for a large table (Rubin 1987). They say how well ``B`` is
      known from ``k`` completions, and exceed the number of rows if ``l`` is small;
    - ``1 / (1/r + 1/o)`` with ``o = (dof + 1) / (dof + 3) * dof * (1 - l)`` if ``dof``
      is given (Barnard and Rubin 1999). They also say how well ``W`` is known from the
      rows, and are always less than ``dof``.

    Parameters
    ----------
    estimates : sequence of float or arrays of equal shape, at least two
        Estimates from the completed matrices.
    variances : sequence of the same
        Squared standard errors of the estimates.
    dof : float > 0 or None, default=None
        Degrees of freedom that the analysis has if no cell is missing: for a
        regression, the number of rows minus that of coefficients, with the intercept.
        None stands for infinitely many, which makes the intervals of small tables too
        narrow.

    Returns
    -------
    Pooled
        ``estimate``, ``std_error``, ``dof``, ``missing_information``, each in the shape
        of one estimate.

    See Also
    --------
    MultipleCompletion : Draws from any completer.
    skmc.ChainedCompleter : Draws for tables.

    References
    ----------
    Rubin. Multiple imputation for nonresponse in surveys. Wiley 1987.

    Barnard, Rubin. Small-sample degrees of freedom with multiple imputation. Biometrika
    86 (1999).

    Examples
    --------
    >>> from skmc.uncertainty import pool
    >>> pooled = pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03], dof=20)
    >>> print(pooled.estimate.round(3), pooled.std_error.round(3), pooled.dof.round(1))
    1.0 0.306 3.4
    """
    Q, U = np.asarray(estimates, float), np.asarray(variances, float)
    if Q.shape != U.shape or len(Q) < 2:
        raise ValueError(
            "estimates and variances must have the same shape and at least two items, "
            f"got {Q.shape} and {U.shape}."
        )
    if dof is not None and not dof > 0:
        raise ValueError(f"dof must be positive, got {dof!r}.")
    k = len(Q)
    between = (1 + 1 / k) * Q.var(0, ddof=1)
    within = U.mean(0)
    total = within + between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, between / total, 0.0)
        found = (k - 1) / np.square(share)
        if dof is not None:
            observed = (dof + 1) / (dof + 3) * dof * (1 - share)
            found = 1 / (1 / found + 1 / observed)
    return Pooled(Q.mean(0)[()], np.sqrt(total)[()], found[()], share[()])
