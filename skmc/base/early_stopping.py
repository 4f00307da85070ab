"""Early stopping on held-out cells."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval

from skmc import patterns
from skmc.cells import Observed
from skmc.loop import HeldOut


class EarlyStopping:
    """Holds out observed cells and keeps the iterate that completes them best.

    Goes in front of `IterativeCompleter`. Each row and column keeps a cell to train on.
    """

    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int

    _parameter_constraints: ClassVar[dict] = {
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def _hold_out(
        self, data: Observed, cells: Sequence[np.ndarray], seeds: Sequence[int]
    ) -> tuple[Any, list[HeldOut]]:
        if not self.early_stopping:
            return data, []
        hidden = np.stack(
            [
                patterns.random(
                    c, self.validation_fraction, spare=True, random_state=seed
                )
                for c, seed in zip(cells, seeds, strict=True)
            ]
        )
        if not hidden.any():  # too few cells to spare any
            return data, []
        if not hidden.any((1, 2)).all():
            raise ValueError(
                "early_stopping finds no cell to spare in some matrices of the batch; "
                "fit those alone."
            )
        mask = torch.from_numpy(hidden).view(data.mask.shape).to(data.mask.device)
        rule = HeldOut(Observed(data.values, mask), self.n_iter_no_change)
        return data.hide(mask), [rule]
