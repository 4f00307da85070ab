"""Rows and columns without an observed cell but with features or graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skmc.cells import Given
from skmc.completers.auto._race import Race, Trial
from skmc.stacking import Stacking, rms


@dataclass(frozen=True)
class Cold:
    """Rows and columns without observed cells that features or graphs describe.

    Parameters
    ----------
    rows : bool ndarray of shape (n_rows,)
        Mask of these rows.
    cols : bool ndarray of shape (n_cols,)
        Mask of these columns.
    """

    rows: np.ndarray
    cols: np.ndarray

    @classmethod
    def of(cls, given: Given) -> Cold:
        """Find them from the observed cells and the side information."""
        seen = given.data.mask.numpy()

        def described(axis: str) -> bool:
            return any(name.startswith(axis) for name in given.known)

        return cls(~seen.any(1) & described("row"), ~seen.any(0) & described("col"))

    def weights(
        self, race: Race, stacking: Stacking
    ) -> tuple[Sequence[Trial], np.ndarray, np.ndarray]:
        """Members and their weights, for all rows and for the rows described here.

        Without observed cells, only candidates that use side information are weighted.
        If none of them is a member of the stack, the best of them joins it.
        """
        members, weights = race.members, stacking.columns.T.copy()
        if not (self.rows.any() or self.cols.any()):
            return members, weights, weights
        common = stacking.common
        informed = np.array([bool(t.candidate.takes) for t in members])
        if not informed.any():
            others = [t for t in race.judged if t.candidate.takes]
            if not others:  # all have failed
                return members, weights, weights
            members = [*members, min(others, key=lambda t: rms(t.first(1)))]
            weights = np.vstack([weights, np.zeros(weights.shape[1])])
            common = np.append(common, 0.0)
            informed = np.append(informed, True)
        share = _normalized(common * informed, informed)
        weights[:, self.cols] = share[:, None]
        own = _normalized(weights * informed[:, None], share[:, None])
        return members, weights, own


def with_known(given: Given, known: Mapping[str, Any]) -> Given:
    """The matrix and its side information; described rows are not empty."""
    given = replace(given, known=known)
    cold, statistics = Cold.of(given), given.statistics
    return replace(
        given,
        statistics=replace(
            statistics,
            empty_rows=statistics.empty_rows & ~cold.rows,
            empty_cols=statistics.empty_cols & ~cold.cols,
        ),
    )


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Normalize columns to sum one; ``otherwise`` replaces columns of zeros."""
    weights = np.where(weights.sum(0) > 0, weights, otherwise)
    return weights / weights.sum(0)
