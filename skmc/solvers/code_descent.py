"""Descent on a network with a code, which it keeps for each row."""

from __future__ import annotations

from typing import Any

from skmc.solvers.row_descent import RowDescent, assembled


class CodeDescent(RowDescent):
    """Descent that keeps the codes of the rows, in order, to complete new rows."""

    def outputs(self, state: Any) -> dict[str, Any]:
        outputs = super().outputs(state)
        encoder = outputs["network"].encoder
        return {**outputs, "codes": assembled(state, lambda rows: rows @ encoder)}
