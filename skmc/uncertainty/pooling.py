"""Estimates that are pooled over several completed matrices."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

from skmc.metrics import check_level


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
    names : sequence or None, default=None
        Names of the estimates.

    See Also
    --------
    pool, pooled_fit : Make it.
    """

    estimate: Any
    std_error: Any
    dof: Any
    missing_information: Any
    names: Sequence[Any] | None = None

    def summary(self, level: float = 0.95) -> Any:
        """Tabulate the estimates, with intervals and tests.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Share of intervals that contain the true value.

        Returns
        -------
        pandas.DataFrame
            One row for each estimate. The columns are

            - "estimate" and "std_error";
            - "low" and "high", the ends of the interval;
            - "statistic", the estimate divided by its standard error, and "p_value", of
              the two-sided test that the true value is 0;
            - "dof", the degrees of freedom of its t distribution;
            - "missing_information", as in `pool`, and "fmi", the same share corrected
              for the number of completions: ``(r + 2 / (dof + 3)) / (r + 1)`` with the
              relative increase of variance ``r = l / (1 - l)``.

        Raises
        ------
        ValueError
            ``level`` is not between 0 and 1.
        ImportError
            pandas is not installed.

        Examples
        --------
        >>> from skmc.uncertainty import pool
        >>> estimates = [[1.0, 5.0], [1.2, 5.5], [0.8, 5.1]]
        >>> variances = [[0.04, 0.1], [0.05, 0.1], [0.03, 0.1]]
        >>> pooled = pool(estimates, variances, dof=20, names=["age", "bmi"])
        >>> print(pooled.summary()[["estimate", "low", "high"]].round(2))
             estimate   low  high
        age       1.0  0.09  1.91
        bmi       5.2  4.03  6.37
        """
        check_level(level)
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError("summary needs pandas: pip install pandas.") from error
        estimate, std_error, dof, share = (np.ravel(values) for values in self[:4])
        half = stats.t.ppf((1 + level) / 2, dof) * std_error
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = estimate / std_error
            increase = share / (1 - share)
            fmi = np.where(share < 1, (increase + 2 / (dof + 3)) / (increase + 1), 1.0)
        return pandas.DataFrame(
            {
                "estimate": estimate,
                "std_error": std_error,
                "low": estimate - half,
                "high": estimate + half,
                "statistic": statistic,
                "p_value": 2 * stats.t.sf(np.abs(statistic), dof),
                "dof": dof,
                "missing_information": share,
                "fmi": fmi,
            },
            index=None if self.names is None else list(self.names),
        )


def pool(
    estimates: Sequence[Any],
    variances: Sequence[Any],
    dof: float | None = None,
    *,
    names: Sequence[Any] | None = None,
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
        None and infinity stand for a large table, which makes the intervals of small
        tables too narrow.
    names : sequence or None, default=None
        Names of the estimates in `Pooled.summary`. None takes the index of the first of
        them if it is a pandas Series.

    Returns
    -------
    Pooled
        ``estimate``, ``std_error``, ``dof``, ``missing_information``, each in the shape
        of one estimate. `Pooled.summary` makes a table of them.

    Raises
    ------
    ValueError
        There are fewer than two estimates, their shape differs from that of the
        variances, ``dof`` is not positive, or there are more or fewer names.

    See Also
    --------
    pooled_fit : Fits a model to each completed matrix and pools its coefficients.
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
    index: Any = getattr(estimates[0], "index", None)
    if names is None and hasattr(index, "name"):
        names = list(index)
    Q, U = np.asarray(estimates, float), np.asarray(variances, float)
    if Q.shape != U.shape or len(Q) < 2:
        raise ValueError(
            "estimates and variances must have the same shape and at least two items, "
            f"got {Q.shape} and {U.shape}."
        )
    if dof is not None and not dof > 0:
        raise ValueError(f"dof must be positive, got {dof!r}.")
    if names is not None and len(names) != Q[0].size:
        raise ValueError(f"names has {len(names)} names for {Q[0].size} estimates.")
    k = len(Q)
    between = (1 + 1 / k) * Q.var(0, ddof=1)
    within = U.mean(0)
    total = within + between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, between / total, 0.0)
        freedom = (k - 1) / np.square(share)
        if dof is not None and np.isfinite(dof):
            observed = (dof + 1) / (dof + 3) * dof * (1 - share)
            freedom = 1 / (1 / freedom + 1 / observed)
    return Pooled(Q.mean(0)[()], np.sqrt(total)[()], freedom[()], share[()], names)


def pooled_fit(
    model: Any, draws: Iterable[Any], target: Any = None, *, features: Any = None
) -> Pooled:
    """Fit a model to each of several completed tables, and pool its coefficients.

    A regression on one completed table takes the completed cells for observed ones, so
    its standard errors are too small. This function fits the model to each draw of the
    missing cells and combines the results by Rubin's rules, see `pool`.

    Parameters
    ----------
    model : LinearRegression, LogisticRegression, PoissonRegressor or callable
        A model of scikit-learn without penalty: ``LinearRegression()``,
        ``LogisticRegression(C=np.inf)`` with two classes, or
        ``PoissonRegressor(alpha=0)``. Their standard errors are those of the classical
        (generalized) linear model. Or a function that takes one completed table and
        returns a fitted model with ``params``, ``bse`` and ``df_resid``, as the results
        of statsmodels: ``lambda draw: smf.ols("chl ~ age + bmi", draw).fit()``.
    draws : iterable of tables, or ndarray of shape (n_draws, n_rows, n_cols)
        Completed tables, as from ``sample``; at least two. The outcome must be a column
        of the table that was completed: otherwise the draws do not depend on it, and
        the coefficients are too small.
    target : str, int or None, default=None
        Column of the outcome, for models of scikit-learn.
    features : str, int, sequence of them, or None, default=None
        Columns of numbers that explain it, for models of scikit-learn. None takes all
        others.

    Returns
    -------
    Pooled
        Coefficients with their standard errors and names, the intercept first.

    Raises
    ------
    TypeError
        The model has no standard errors, such as one with a penalty, or the result of
        the function has none.
    ValueError
        A model of scikit-learn has no target, a column is unknown, or has text.

    See Also
    --------
    pool : Pools estimates of any kind.
    skmc.ChainedCompleter : Draws for tables.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skmc import GaussianCompleter
    >>> from skmc.uncertainty import pooled_fit
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(100, 1) + 0.5 * rng.randn(100, 3)
    >>> X[:, 1:][rng.rand(100, 2) < 0.2] = np.nan
    >>> draws = GaussianCompleter(random_state=0).fit(X).sample(X, 5, random_state=0)
    >>> pooled = pooled_fit(LinearRegression(), draws, target=2)
    >>> list(pooled.summary().index)
    ['intercept', 0, 1]
    """
    if isinstance(model, BaseEstimator):
        if target is None:
            raise ValueError(
                "target is missing; pass the name or position of the outcome column."
            )
        fits = [_coefficients(model, draw, target, features) for draw in draws]
    elif callable(model):
        fits = [_of_result(model(draw)) for draw in draws]
    else:
        raise TypeError(f"model must {WITH_ERRORS}, got {type(model).__name__}.")
    names, estimates, variances, dofs = zip(*fits, strict=True)
    return pool(estimates, variances, min(dofs), names=names[0])


WITH_ERRORS = (
    "be LinearRegression(), LogisticRegression(C=np.inf) or PoissonRegressor(alpha=0), "
    "or a function that fits a table and returns a result with params, bse and "
    "df_resid, as those of statsmodels"
)
Fit = tuple[
    list[Any], np.ndarray, np.ndarray, float
]  # names, estimates, variances, dof
# Variance of an outcome as a function of its mean, for the canonical link.
VARIANCES: dict[type, Callable[[np.ndarray], np.ndarray]] = {
    LinearRegression: np.ones_like,
    LogisticRegression: lambda mean: mean * (1 - mean),
    PoissonRegressor: lambda mean: mean,
}


def _coefficients(model: Any, draw: Any, target: Any, features: Any) -> Fit:
    """Fit a linear model to one table; its errors come from the information."""
    variance = VARIANCES.get(type(model))
    parameters = model.get_params()
    # LogisticRegression had no penalty by penalty=None before C=inf meant the same.
    free = parameters.get("penalty", "") is None or parameters.get("C") == np.inf
    if isinstance(model, PoissonRegressor):
        free = parameters["alpha"] == 0
    plain = isinstance(model, LinearRegression) and not parameters["positive"]
    if variance is None or not (free or plain):
        raise TypeError(
            f"{model!r} has no standard errors, as it has a penalty or another "
            f"criterion; model must {WITH_ERRORS}."
        )
    names = list(getattr(draw, "columns", range(np.shape(draw)[1])))
    if features is None:
        features = [name for name in names if name != target]
    elif isinstance(features, (str, int)):
        features = [features]
    for name in (target, *features):
        if name not in names:
            raise ValueError(f"the draws have no column {name!r}; they have {names}.")
    columns = {name: np.asarray(draw)[:, names.index(name)] for name in names}
    for name in features:
        try:
            columns[name] = columns[name].astype(float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {name!r} is not one of numbers; pass the others as features, "
                "or a function that codes it, such as a formula of statsmodels."
            ) from error
    X = np.column_stack([columns[name] for name in features])
    y = columns[target]
    y = y if isinstance(model, LogisticRegression) else y.astype(float)
    fitted = clone(model).fit(X, y.tolist() if y.dtype == object else y)
    estimates, design, labels = np.ravel(fitted.coef_), X, list(features)
    if parameters["fit_intercept"]:
        estimates = np.append(fitted.intercept_, estimates)
        design, labels = np.column_stack([np.ones(len(X)), X]), ["intercept", *labels]
    if isinstance(model, LogisticRegression):
        if len(fitted.classes_) != 2:
            raise ValueError(
                f"column {target!r} has {len(fitted.classes_)} classes, and the "
                "logistic model two; pass a function that fits another model."
            )
        mean = fitted.predict_proba(X)[:, 1]
    else:
        mean = fitted.predict(X)
    dof = len(X) - len(estimates)
    information = design.T @ (variance(mean)[:, None] * design)
    scale = np.square(y - mean).sum() / dof if plain else 1.0
    return labels, estimates, scale * np.diag(np.linalg.inv(information)), dof


def _of_result(result: Any) -> Fit:
    """Coefficients of a fitted model as statsmodels has them."""
    try:
        estimates, errors = result.params, np.asarray(result.bse, float)
        dof = float(result.df_resid)
    except AttributeError as error:
        raise TypeError(
            f"{type(result).__name__} has no standard errors; model must {WITH_ERRORS}."
        ) from error
    names = list(getattr(estimates, "index", range(len(errors))))
    return names, np.asarray(estimates, float), errors**2, dof
