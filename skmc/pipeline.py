"""The first step of a pipeline that is to respect masks."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skmc.base import ReadsCells


class MaskedToNaN(ReadsCells, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Write missing cells as NaN, so that scikit-learn sees them.

    scikit-learn's own estimators turn a masked array into a plain one and take the
    number *under* the mask for data, without a word. Put this step in front of a
    scaler that precedes a completer; completers read masks themselves.

    Parameters
    ----------
    missing_values : float, default=numpy.nan
        Another number that marks missing cells, besides what the container says.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmc import MaskedToNaN
    >>> X = np.ma.masked_array([[1.0, 2.0], [3.0, 999.0]], [[0, 0], [0, 1]])
    >>> StandardScaler().fit(MaskedToNaN().fit_transform(X)).mean_
    array([2., 2.])
    """

    def __init__(self, missing_values=np.nan):
        self.missing_values = missing_values

    def fit(self, X, y=None):
        """Learn the number and names of columns.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            The matrix.
        y : Ignored, default=None
            For pipelines.

        Returns
        -------
        self
        """
        self._read(X, reset=True)
        return self

    def transform(self, X) -> np.ndarray:
        """Float array with NaN where a cell is missing.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            The matrix.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "n_features_in_")
        return self._read(X, reset=False)
