"""Early stopping on held-out cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval

from skmc.cells import Observed
from skmc.loop import HeldOut


class EarlyStopping:
    """Mixin that holds out observed cells and keeps the iterate with the lowest error.

    List it before `IterativeCompleter` among the bases. Each row and column keeps at
    least one cell to train on.
    """

    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    _drawn: Callable[[np.ndarray, float, int], np.ndarray]  # of the completer

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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
                self._drawn(c, self.validation_fraction, seed)
                for c, seed in zip(cells, seeds, strict=True)
            ]
        )
        if not hidden.any():  # too few cells to hold any out
            return data, []
        if not hidden.any((1, 2)).all():
            raise ValueError(
                "early_stopping cannot hold out a cell in some matrices of the batch; "
                "fit those alone."
            )
        mask = torch.from_numpy(hidden).view(data.mask.shape).to(data.mask.device)
        rule = HeldOut(replace(data, mask=mask), self.n_iter_no_change)
        return data.hide(mask), [rule]
