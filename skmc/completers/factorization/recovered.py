"""The matrix of low rank that the cells determine, as a fit of a factorization."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass, replace

import torch

from skmc.base import Trials
from skmc.cells import Scaling, SparseObserved
from skmc.completers.factorization.als import Objective
from skmc.completers.logdet import (
    NEARLY_ZERO,
    PATIENCE,
    ProjectedState,
    Recovery,
    VariableProjection,
    certificate,
    units_of,
)
from skmc.linalg import LowRank
from skmc.solvers import RowModelResult

# Most cells times components, over all steps: a few seconds, or the time of the trials.
SMALL, PER_CELL = 20_000_000, 100


@dataclass(eq=False)
class Recovered(VariableProjection):
    """Least squares in the units in which the matrix has its lowest rank.

    Standardization by columns would raise the rank, and the condition number.
    """

    _: KW_ONLY
    scaling: Scaling  # of the data
    own: Scaling
    row_biases: bool
    is_certain: bool = False  # the cells determine every row and column that has any

    @classmethod
    def of(
        cls,
        data: SparseObserved,
        trials: Trials,
        rank: int | None,
        row_biases: bool,
    ) -> Recovered | None:
        """Search the matrix; None if no matrix fits the cells up to little noise."""
        scaling = trials.scaling
        plain = replace(data, values=_undone(data, scaling))
        units = units_of(plain, "auto")
        cells = plain.scaled(units)
        most_work = max(SMALL, PER_CELL * len(cells.values))
        search = Recovery(cells, trials, sys.maxsize, rank, most_work)
        if search.best.exact:
            return None
        search.follow(range(1, search.largest + 1), PATIENCE[0])
        if search.near is not None and not search.is_sure:
            search.follow_one(search.near.rank)
        best, sure = search.best if search.best.exact else search.near, False
        if best is None or rank not in (None, best.rank):
            return None
        if best.exact:
            counts = torch.bincount(cells.rows), torch.bincount(cells.cols)
            pairs = zip(certificate(cells, best.X), counts, strict=True)
            sure = all(bool(found[: len(n)][n > 0].all()) for found, n in pairs)
        return cls(
            best.X, scaling=scaling, own=units, row_biases=row_biases, is_certain=sure
        )

    @property
    def rank(self) -> int:
        return self.start.left.shape[1]

    def init(self, data: SparseObserved) -> ProjectedState:
        plain = replace(data, values=_undone(data, self.scaling))
        return super().init(plain.scaled(self.own))

    def result(self, state: ProjectedState) -> RowModelResult:
        factors = super().result(state).X
        scale = self.scaling.scale.mT.to(factors.left)
        factor, offset = (
            torch.where(scale > 0, x.mT.to(scale) / scale, 0.0)
            for x in (self.own.scale, self.own.shift - self.scaling.shift)
        )
        n = len(factors.right)
        cols = torch.cat([factors.right * factor, offset.expand(n, 1)], 1)
        rows = torch.nn.functional.pad(factors.left, (0, 1))
        objective = Objective(NEARLY_ZERO, (self.row_biases, True), 1.0, 1.0, False)
        model = objective.model(cols, 0)
        if self.row_biases:  # they are zero, and rows with few cells must not need them
            model.precision[-1, -1] = 1.0
        return RowModelResult(X=LowRank.with_biases(rows, cols), models=[model])


def _undone(data: SparseObserved, scaling: Scaling) -> torch.Tensor:
    """The values in the units in which they were given."""
    scaling = scaling.to(data.device)
    return data.values * data.spread(scaling.scale) + data.spread(scaling.shift)
