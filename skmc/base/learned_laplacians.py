"""Laplacians among the fitted attributes."""

from __future__ import annotations

from typing import Any

import numpy as np


class LearnedLaplacians:
    """Keeps the Laplacians of the solver's terms as ``laplacians_``.

    Goes in front of `IterativeCompleter`.
    """

    lambda_row: float
    lambda_col: float

    def _fitted(self, prepared: Any, outputs: dict[str, Any]) -> dict[str, Any]:
        fitted = super()._fitted(prepared, outputs)  # type: ignore[misc]
        return {**fitted, "laplacians_": self._laplacians(outputs)}

    def _laplacians(self, outputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Those of terms that have a weight."""
        weights = {"rows": self.lambda_row, "columns": self.lambda_col}
        return {
            name: value.cpu().numpy()
            for name, value in outputs.items()
            if name not in ("X", "parameters") and weights.get(name, 1) != 0
        }
