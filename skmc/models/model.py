"""What every model of a whole matrix can do."""

from __future__ import annotations

from torch import Tensor, nn


class Model(nn.Module):
    """``forward()`` is the completion, shape (\\*batch, n_rows, n_cols)."""

    def outputs(self) -> dict[str, Tensor]:
        """What a fitted estimator should keep, by name; batch axes in front."""
        return {}
