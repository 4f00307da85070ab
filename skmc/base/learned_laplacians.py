"""The mixin for completers that learn Laplacians."""

from __future__ import annotations

from typing import Any

import numpy as np


class LearnedLaplacians:
    """Mixin that stores the Laplacians of the solver's terms as ``laplacians_``.

    List it before `IterativeCompleter` among the bases.
    """

    lambda_row: float
    lambda_col: float

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)  # type: ignore[misc]
        return {**fitted, "laplacians_": self._laplacians(outputs)}

    def _laplacians(self, outputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return the Laplacians of terms whose weight is not zero."""
        weights = {"rows": self.lambda_row, "columns": self.lambda_col}
        return {
            name: value.cpu().numpy()
            for name, value in outputs.items()
            if name not in ("X", "parameters") and weights.get(name, 1) != 0
        }
