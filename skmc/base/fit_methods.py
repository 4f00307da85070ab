"""The signatures of ``fit``, with their arguments other than the matrix."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skmc.base.shared_docs import documented
from skmc.cells import Container
from skmc.compatibility import fit_context, with_callbacks

if TYPE_CHECKING:
    from skmc.base.completer import BaseCompleter

Fit = TypeVar("Fit", bound=Callable[..., Any])
C = TypeVar("C", bound="BaseCompleter")


def validated(fit: Fit) -> Fit:
    """Add scikit-learn's callbacks and parameter validation to ``fit``.

    Shared descriptions are filled into its docstring. Messages about unknown keywords
    name the estimator's own class.

    Parameters
    ----------
    fit : function
        The method ``fit`` of a completer.

    Returns
    -------
    function
    """
    fit = documented(fit)
    checked = with_callbacks(fit_context(prefer_skip_nested_validation=True)(fit))
    known = inspect.signature(fit).parameters

    @functools.wraps(checked)
    def wrapper(
        self: BaseCompleter, X: Container, y: object = None, **given: Any
    ) -> Any:
        for name in given:
            if name not in known:
                if name == "cell_weight":
                    raise TypeError(
                        f"{type(self).__name__}.fit() takes no cell_weight: "
                        f"{self.completer_tags.unweighted}. Leave it out, or use "
                        "SVDCompleter or another completer of weighted cells."
                    )
                raise TypeError(
                    f"{type(self).__name__}.fit() got an unexpected keyword argument "
                    f"{name!r}."
                )
        return checked(self, X, y, **given)

    return cast(Fit, wrapper)


@validated
def fit(self: C, X: Container, y: object = None) -> C:
    """Complete ``X``, and learn a map that completes other rows.

    Parameters
    ----------
    {X}
    {y}
        With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
        curve.

    Returns
    -------
    self
        The fitted completer.
    """
    return self._run_fit(X, y)


@validated
def fit_weighted(
    self: C, X: Container, y: object = None, *, cell_weight: Container | None = None
) -> C:
    """Complete ``X``, and learn a map that completes other rows.

    Parameters
    ----------
    {X}
    {y}
        With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
        curve.
    {cell_weight}
        Weights multiply the squared errors of the cells in the loss, in the scaling,
        and where held-out cells choose hyper-parameters or stop the fit.

    Returns
    -------
    self
        The fitted completer.

    Raises
    ------
    ValueError
        ``cell_weight`` has another shape, or the weight of an observed cell is
        negative or NaN.
    """
    return self._run_fit(X, y, cell_weight=cell_weight)


@validated
def fit_with_graphs(
    self: C,
    X: Container,
    y: object = None,
    *,
    row_graph: Container | None = None,
    col_graph: Container | None = None,
    cell_weight: Container | None = None,
) -> C:
    """Complete ``X``, and learn a map that completes other rows.

    Parameters
    ----------
    {X}
    {y}
        With the truth as ``y``, `sklearn.callback.ScoringMonitor` draws a learning
        curve.
    {row_graph}
        Weights are divided by the mean degree of the rows.
    {col_graph}
    {cell_weight}
        Weights multiply the squared errors of the cells in the loss, in the scaling,
        and where held-out cells choose hyper-parameters or stop the fit.

    Returns
    -------
    self
        The fitted completer.

    Raises
    ------
    ValueError
        Graphs of other sizes, that are not symmetric or have negative weights, or
        cells whose weight is negative or NaN.
    """
    known = {"row_graph": row_graph, "col_graph": col_graph}
    return self._run_fit(X, y, **known, cell_weight=cell_weight)


@validated
def fit_informed(
    self: C,
    X: Container,
    y: object = None,
    *,
    row_features: Container | None = None,
    col_features: Container | None = None,
    row_graph: Container | None = None,
    col_graph: Container | None = None,
    cell_weight: Container | None = None,
) -> C:
    """Complete ``X``, and learn a map that completes other rows.

    Rows and columns without an observed cell are completed from their features and
    graphs, if there are any.

    Parameters
    ----------
    {X}
    {y}
    {row_features}
        Dense features are standardized; sparse ones are divided by one number, and
        cells that are not stored are 0.
    {col_features}
    {row_graph}
    {col_graph}
    {cell_weight}

    Returns
    -------
    self
        The fitted completer.

    Raises
    ------
    ValueError
        Features or graphs of other sizes, features with missing values (complete
        them first), graphs that are not symmetric or have negative weights, or
        cells whose weight is negative or NaN.
    """
    return self._run_fit(
        X,
        y,
        row_features=row_features,
        col_features=col_features,
        row_graph=row_graph,
        col_graph=col_graph,
        cell_weight=cell_weight,
    )


@validated
def fit_with_sides(
    self: C,
    X: Container,
    y: object = None,
    *,
    row_features: Container | None = None,
    col_features: Container | None = None,
    row_graph: Container | None = None,
    col_graph: Container | None = None,
) -> C:
    """Complete ``X``, and learn a map that completes other rows.

    Candidates whose ``fit`` takes features or graphs are tried both with them, under
    names that end in "informed", and without.

    Parameters
    ----------
    {X}
    {y}
    {row_features}
    {col_features}
    {row_graph}
    {col_graph}

    Returns
    -------
    self
        The fitted completer. The informed candidates complete rows and columns of
        ``X`` without an observed cell.

    Raises
    ------
    ValueError
        As for `FactorizationCompleter.fit`. Tables with non-numeric columns have no
        features or graphs of columns.
    """
    return self._run_fit(
        X,
        y,
        row_features=row_features,
        col_features=col_features,
        row_graph=row_graph,
        col_graph=col_graph,
    )
