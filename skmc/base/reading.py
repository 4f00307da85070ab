"""Reading of input containers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from skmc.cells import to_cells


def check_names(X: Any) -> None:
    """Check that no two columns of a data frame have the same name.

    Parameters
    ----------
    X : container
        Only data frames have names.

    Raises
    ------
    ValueError
        A name occurs twice.
    """
    names = list(getattr(X, "columns", ()))
    for name in names:
        if (count := names.count(name)) > 1:
            raise ValueError(
                f"X has {count} columns named {name!r}; give them different names "
                "(X.columns = [...])."
            )


class ReadsCells:
    """Mixin that reads ``X`` by `to_cells`, before scikit-learn can drop a mask.

    List it before the other bases. It needs the parameter ``missing_values``.
    """

    missing_values: float

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        """Return a validated float array with NaN where a cell is missing."""
        cells: np.ndarray = to_cells(X, missing_values=self.missing_values)
        check_names(X)
        if hasattr(X, "columns"):  # the array has lost the names of a DataFrame
            validate_data(self, X, reset=reset, skip_check_array=True)
            cells = check_array(cells, ensure_all_finite="allow-nan", estimator=self)
        else:
            cells = validate_data(
                self, cells, reset=reset, ensure_all_finite="allow-nan"
            )
        return cells

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
