"""What estimators that read every container have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from skmc.cells import to_cells


class ReadsCells:
    """Reads ``X`` by `to_cells`, before scikit-learn could drop a mask.

    Goes in front of the other bases; needs the parameter ``missing_values``.
    """

    missing_values: float

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        """A validated float array with NaN where a cell is missing."""
        cells = to_cells(X, missing_values=self.missing_values)
        if hasattr(X, "columns"):  # a DataFrame: its names, which an array has lost
            validate_data(self, X, reset=reset, skip_check_array=True)
            return check_array(cells, ensure_all_finite="allow-nan", estimator=self)
        return validate_data(self, cells, reset=reset, ensure_all_finite="allow-nan")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
