"""What can watch a fit, besides scikit-learn's own callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np

TITLE = "singular_values"  # in history_


def matrix_of(estimator: Any) -> np.ndarray:
    """The whole matrix that a completer or a sensing regressor has found.

    Parameters
    ----------
    estimator : fitted estimator
        With ``reconstruction_`` or ``matrix_``.

    Returns
    -------
    ndarray of shape (n_rows, n_cols)
        The attribute that there is.

    Raises
    ------
    ValueError
        There is neither.
    """
    for name in ("reconstruction_", "matrix_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise ValueError(
        f"{type(estimator).__name__} has neither reconstruction_ nor matrix_; give a "
        "completer or a sensing regressor that is fitted."
    )


class SpectrumRecorder:
    """Keeps the largest singular values of the completion while it is being fitted.

    A callback of scikit-learn. After the fit ``history_["singular_values"]``, of shape
    (n_checks, n_values), has a row for each of ``history_["n_iter"]``, which
    `skmc.plot.SpectrumDisplay` draws. The values are those of ``reconstruction_`` (of a
    sensing regressor: ``matrix_``), in the units of the data.

    Parameters
    ----------
    n_values : int >= 1, default=10
        How many, the largest first; at most as many as there are.

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
        self._rows: dict[int, list[np.ndarray]] = {}  # of the fits that run

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin to record a fit.

        Parameters
        ----------
        estimator : estimator
            Which is about to be fitted.
        context : sklearn.callback.CallbackContext
            Not used.
        """
        self._rows[id(estimator)] = []

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: there is nothing to record yet.

        Parameters
        ----------
        estimator : estimator
            Which is being fitted.
        context : sklearn.callback.CallbackContext
            Not used.
        """

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> None:
        """Record the singular values at a check.

        Parameters
        ----------
        estimator : estimator
            Which is being fitted.
        context : sklearn.callback.CallbackContext
            Of the task that ended.
        fitted_estimator : estimator
            As if the fit had ended here.
        """
        if context.task_name == "iterations" and fitted_estimator is not None:
            values = np.linalg.svd(matrix_of(fitted_estimator), compute_uv=False)
            self._rows[id(estimator)].append(values[: self.n_values])

    def teardown(self, estimator: Any, context: Any) -> None:
        """Put what was recorded into ``history_``.

        Parameters
        ----------
        estimator : estimator
            Fitted, unless the fit failed.
        context : sklearn.callback.CallbackContext
            Not used.
        """
        rows = self._rows.pop(id(estimator), [])
        history = getattr(estimator, "history_", {})
        # A fit that failed, or went on from a checkpoint, has another number of checks.
        if rows and len(history.get("n_iter", ())) == len(rows):
            history[TITLE] = np.stack(rows)
