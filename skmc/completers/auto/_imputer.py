"""scikit-learn's chained equations for a matrix that represents a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer


class CellImputer(IterativeImputer):
    """Imputer that predicts no column from others of the same cell of a table.

    The columns that represent a category are missing together. In training they would
    predict each other perfectly, and no other column would be used.
    """

    _first_columns: np.ndarray | None = None  # for each column, the first of its cell

    @classmethod
    def like(cls, imputer: IterativeImputer, first_columns: np.ndarray) -> CellImputer:
        """Make an unfitted imputer with the parameters of another one."""
        own = cls(**imputer.get_params(deep=False))
        own._first_columns = first_columns
        return own

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> np.ndarray:
        found = super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        first = self._first_columns
        if first is None:
            return found
        return found[first[found] != first[feat_idx]]
