"""A score of draws that needs no held-out cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from skmc.base import BaseCompleter
from skmc.metrics import crps

FEWEST = 10  # missing cells of a column that is scored


def energy_i_score(
    completer: BaseCompleter,
    X: np.ndarray,  # (n_rows, n_cols)
    n_draws: int = 20,
    seed: int = 0,
) -> float:
    r"""Energy-I-Score of the draws of a completer, without the true missing values.

    .. math::

        \frac{\sum_j w_j \, \mathrm{CRPS}_j}{\sum_j w_j}, \qquad w_j = s_j (1 - s_j)

    for the columns j with missing cells, of which :math:`s_j` is the share. The score
    of a column is that of draws for its *observed* cells, all of which are hidden. The
    completer learns the column from its *missing* cells, with the values of one draw
    that the completer has made for them, and from the columns that are observed in
    every row in which the column is observed. If the imputed values follow the
    distribution of the observed ones, given these columns, the score is smallest.

    Held-out observed cells, as `compare` uses them, say how well a completer predicts
    observed cells. This score judges the values that it has made for the missing cells,
    and it remains valid if cells are missing at random, given these columns. It is
    therefore computed as published, and not on held-out cells.

    The publication leaves some choices open. Here the unit of a column is its standard
    deviation. All draws come from one fit. If no other column is complete where the
    column is observed, the one with the most observed cells there replaces them, and
    the other rows are left out. Columns with fewer than ten missing cells are not
    scored. The CRPS is that of `skmc.metrics.crps`.
    """
    X = X[:, ~np.isnan(X).all(0)]
    seen = ~np.isnan(X)
    scored = np.flatnonzero((~seen).sum(0) >= FEWEST)
    if X.shape[1] < 2 or not len(scored):
        raise ValueError(
            "The energy-I-Score needs two columns, one of them with at least "
            f"{FEWEST} missing cells."
        )
    drawn = _drawn(completer, X, 1, seed)[0]
    scores, weights = [], []
    for j in scored:
        test, others = seen[:, j], np.delete(np.arange(X.shape[1]), j)
        count = seen[np.ix_(test, others)].sum(0)
        given = others[count == test.sum()]
        if not len(given):
            given = others[[count.argmax()]]
            test = test & seen[:, given[0]]
        used = test | ~seen[:, j]
        column = np.where(seen[:, j], np.nan, drawn[:, j])
        table = np.column_stack([column, drawn[:, given]])[used]
        draws = _drawn(completer, table, n_draws, seed)[:, test[used], 0]
        unit = np.nanstd(X[:, j]) or 1.0
        scores.append(crps(draws[:, None] / unit, X[test, j][None] / unit))
        weights.append(seen[:, j].mean() * (1 - seen[:, j].mean()))
    return float(np.average(scores, weights=weights))


def _drawn(completer: Any, X: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    draws = clone(completer).fit(X).sample(X, n_draws, seed)
    return np.asarray(draws, float)
