"""A callback that records singular values during a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

TITLE = "singular_values"  # key in history_


def matrix_of(estimator: object) -> np.ndarray:  # (n_rows, n_cols)
    """Return the complete matrix of a completer or a sensing regressor."""
    for name in ("reconstruction_", "matrix_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise ValueError(
        f"{type(estimator).__name__} has neither reconstruction_ nor matrix_; pass a "
        "fitted completer or sensing regressor."
    )


class SpectrumRecorder:
    """Callback of scikit-learn that records singular values during a fit.

    After the fit, ``history_["singular_values"]`` of shape (n_checks, n_values) has a
    row for each element of ``history_["n_iter"]``. `skmc.plot.SpectrumDisplay` draws
    them. The values are those of ``reconstruction_`` (for a sensing regressor
    ``matrix_``) in the units of the data.

    Parameters
    ----------
    n_values : int >= 1, default=10
        Maximum number of values; the largest are recorded, in descending order.

    See Also
    --------
    skmc.plot.SpectrumDisplay : Plots what it records.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AIRCompleter
    >>> from skmc.loop import SpectrumRecorder
    >>> X = np.outer(np.arange(1.0, 9), np.arange(1.0, 7))
    >>> X[2, 3] = np.nan
    >>> air = AIRCompleter(max_iter=100, random_state=0)
    >>> air = air.set_callbacks(SpectrumRecorder(n_values=3)).fit(X)
    >>> air.history_["singular_values"].shape
    (4, 3)
    """

    def __init__(self, n_values: int = 10):
        if not isinstance(n_values, int | np.integer) or n_values < 1:
            raise ValueError(f"n_values must be an int >= 1, got {n_values!r}.")
        self.n_values = n_values
        self._rows: dict[int, list[np.ndarray]] = {}  # by the id of the estimator

    def setup(self, estimator: object, context: object) -> None:
        """Begin to record a fit.

        Parameters
        ----------
        estimator : estimator
            Estimator that is about to be fitted.
        context : sklearn.callback.CallbackContext
            Not used.
        """
        self._rows[id(estimator)] = []

    def on_fit_task_begin(self, estimator: object, context: object) -> None:
        """Record nothing before the first iterate.

        Parameters
        ----------
        estimator : estimator
            Estimator being fitted.
        context : sklearn.callback.CallbackContext
            Not used.
        """

    def on_fit_task_end(
        self, estimator: object, context: Any, *, fitted_estimator: object = None
    ) -> None:
        """Record the singular values at a check.

        Parameters
        ----------
        estimator : estimator
            Estimator being fitted.
        context : sklearn.callback.CallbackContext
            Context of the task that ended.
        fitted_estimator : estimator or None, default=None
            Copy of the estimator, fitted as if the fit had ended at this check.
        """
        if context.task_name == "iterations" and fitted_estimator is not None:
            values = np.linalg.svd(matrix_of(fitted_estimator), compute_uv=False)
            self._rows[id(estimator)].append(values[: self.n_values])

    def teardown(self, estimator: object, context: object) -> None:
        """Store the recorded values in ``history_``.

        Parameters
        ----------
        estimator : estimator
            Estimator whose fit has ended or failed.
        context : sklearn.callback.CallbackContext
            Not used.
        """
        rows = self._rows.pop(id(estimator), [])
        history = getattr(estimator, "history_", {})
        # A fit that failed or was resumed has a different number of checks.
        if rows and len(history.get("n_iter", ())) == len(rows):
            history[TITLE] = np.stack(rows)
