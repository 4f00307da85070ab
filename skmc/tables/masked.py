"""The first step of pipelines whose other steps ignore masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skmc.base import read_matrix
from skmc.cells import Container
from skmc.compatibility import page_of_class


@dataclass(eq=False, repr=False)
class MaskedToNaN(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace missing cells by NaN, so that scikit-learn recognizes them.

    scikit-learn's own estimators ignore the mask of a masked array and read the hidden
    values as data, without a warning. Use this step before a scaler that precedes a
    completer. Completers read masks themselves.

    Parameters
    ----------
    missing_values : float, default=numpy.nan
        Another number that marks missing cells, in addition to those that the
        container marks.

    See Also
    --------
    sklearn.pipeline.make_pipeline : Makes a pipeline, of which this is the first step.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmc import MaskedToNaN
    >>> X = np.ma.masked_array([[1.0, 2.0], [3.0, 999.0]], [[0, 0], [0, 1]])
    >>> StandardScaler().fit(MaskedToNaN().fit_transform(X)).mean_
    array([2., 2.])
    """

    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    missing_values: float = np.nan

    def fit(self, X: Container, y: object = None) -> Self:
        """Learn the number and names of columns.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            The matrix.
        y : Ignored, default=None
            Ignored; present for API consistency.

        Returns
        -------
        self
        """
        read_matrix(self, X, self.missing_values, reset=True)
        return self

    def transform(self, X: Container) -> np.ndarray:
        """Convert to a float array with NaN at missing cells.

        Parameters
        ----------
        X : container of shape (n_samples, n_features)
            The matrix.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "n_features_in_")
        return read_matrix(self, X, self.missing_values, reset=False)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
