"""``partial_fit`` of a Gaussian: sums over new rows, or steps over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from skmc.base import MoreCells
from skmc.cells import Given
from skmc.completers._conditional import Conditional, em, learned
from skmc.completers._marginals import NormalMarginals
from skmc.linalg import ExpectedSums, threads_for, work_of
from skmc.loop import solve

if TYPE_CHECKING:
    from skmc.completers.gaussian import GaussianCompleter

STEPS_MORE = 3  # number of EM steps over all rows


def fit_more(
    self: GaussianCompleter, more: MoreCells
) -> tuple[Conditional, dict[str, Any]]:
    fitted = self._fitted
    old = len(fitted.in_memory())
    one_unit = fitted.statistics.one_unit
    cells = more.into(fitted.in_memory())
    given = self._scaled(Given.of_matrix(cells, one_unit=one_unit))
    cells, marginals = given.matrix, fitted.marginals
    with threads_for(work_of(cells.size, cells.shape[1])):
        if _adds_up(self, more, given):
            total = fitted.sums or _sums_of(fitted, cells[:old])
            total = total.plus(_sums_of(fitted, cells[old:]))
            # The scaling of the first rows is kept; the prior uses the scaling of all
            # rows.
            scales = given.scaling.scaling.scale / marginals.scaling.scale
            model = total.gaussian(self.lambda_ridge_, scales[0].square())
            parts = given.statistics, model, marginals, cells, total
            answers = Conditional(*parts, fitted.first_columns)
            found = learned(answers)
        else:
            start = rescaled(fitted, given.scaling, cells.shape[1])
            solution = solve(
                em(self.lambda_ridge_, self.rank_, start),
                given.data,
                max_iter=STEPS_MORE,
                check_every=STEPS_MORE,
            )
            found = self._attributes(given, solution.outputs)
    return found.pop("_fitted"), found


def _adds_up(completer: GaussianCompleter, more: MoreCells, given: Given) -> bool:
    """Whether the expected sums of new rows can be added to those of earlier ones."""
    if completer.marginals == "copula" or completer.rank_ is not None:
        return False
    scales = completer._fitted.marginals.scaling.scale, given.scaling.scaling.scale
    same = more.shape[1] == completer._shape[1]
    later = len(more.rows) > 0 and more.rows.min() >= completer._shape[0]
    return bool(same and later and all((scale > 0).all() for scale in scales))


def _sums_of(fitted: Conditional, cells: np.ndarray) -> ExpectedSums:
    scores = torch.from_numpy(fitted.marginals.scores(cells))
    return ExpectedSums.of(fitted.model, scores, ~torch.isnan(scores))


def rescaled(fitted: Conditional, marginals: Any, n_cols: int) -> Any:
    """Convert the current model to other marginals, and to more columns."""
    model, old = fitted.model, len(fitted.model.mean)
    mean = torch.zeros(n_cols, dtype=torch.float64)
    factor = torch.ones(old, dtype=torch.float64)
    mean[:old] = model.mean
    if isinstance(marginals, NormalMarginals):
        a, b = fitted.marginals.scaling, marginals.scaling
        shift, scale = b.shift[0, :old], b.scale[0, :old]
        varies = (a.scale[0] > 0) & (scale > 0)
        factor = torch.where(varies, a.scale[0] / scale, factor)
        moved = torch.where(varies, (a.shift[0] - shift) / scale, 0.0)
        mean[:old] = model.mean * factor + moved
    return model.extended(mean, factor)
