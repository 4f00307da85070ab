"""Ensembles of trees that handle missing values."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Annotated, Literal

import numpy as np
import torch

from skmc.base import CompleterTags, Outcome, Samples, TakesBounds, limit_of
from skmc.cells import Given, Priors
from skmc.compatibility import HasMethods
from skmc.completers._forests import (
    FOLDS,
    MAX_SAMPLES,
    Models,
    Plan,
    Regressor,
    predict,
    train,
)
from skmc.completers._tree_rows import (
    FittedTrees,
    TreeRows,
    expected,
    filled,
    scaled,
)
from skmc.completers._units import undone
from skmc.completers.costs import Cost, Variant
from skmc.completers.gaussian import GaussianCompleter
from skmc.linalg import memory_of, seed_of
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.new_rows import RowIndex
from skmc.parameters import Count, Positive, Seed, Workers

BYTES_PER_NODE = 21


def _has_leaves(completer: TreesCompleter) -> bool:
    if completer.estimator != "extra_trees":
        raise AttributeError("sample needs estimator='extra_trees'.")
    return True


class TreesCompleter(Samples, TakesBounds):
    r"""Predict each column from the others by trees that handle missing values.

    For each column, an ensemble of regression trees is trained on the rows in which
    that column is observed. Its inputs are the other columns with their missing values:
    each split has learned to which side a row with a missing input goes. There is no
    chain, so a new row is completed by one prediction per missing cell. Columns that do
    not vary are neither predicted nor used as inputs. In a table, the columns that
    represent a category are not inputs of each other: they are missing together.

    Parameters
    ----------
    estimator : {"extra_trees", "boosting"} or regressor, default="extra_trees"
        Ensemble of each column. "extra_trees" grows each tree as
        `sklearn.tree.ExtraTreeRegressor` does, on four fifths of the rows, at most 10
        000. "boosting" is `sklearn.ensemble.HistGradientBoostingRegressor`. Your own
        regressor must accept NaN. It is cloned for each column, and gets a
        ``random_state`` if its own is None. All are trained on standardized columns.
    n_estimators : int >= 1, default=50
        Number of trees per column; ignored for your own regressor.
    linear : bool, default=False
        Whether the ensembles are trained on the residuals of a linear model, which can
        extrapolate. It predicts the conditional mean of a cell given the other observed
        cells of its row, as `GaussianCompleter` does.
    max_iter : int >= 1, default=1
        Number of rounds. 1 is the form without a chain. In each further round, the
        ensembles are trained again on the other columns as the previous round completed
        them, and `transform` applies the same rounds. As in missForest, a round that
        changes the missing cells more than the previous one is discarded and is the
        last.
    {max_time}
        Columns without trees at that time are completed by their means; an unfinished
        further round is discarded.
    n_jobs : int or None, default=None
        Number of columns trained at the same time, in threads; -1 is all cores. The
        result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows and the splits of the trees.
    {bounds}
    {reading}

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. With "extra_trees", the value of an observed
        cell is out-of-bag: the mean over the trees that were not trained on its row.
        Other estimators give their prediction, although they have seen the cell.
    n_iter_ : int
        Number of rounds that were kept.
    {input}

    Notes
    -----
    A model has at most 50 inputs, the columns most correlated with its own. A fit of
    ``n`` rows and ``d`` columns takes time in proportion to ``d min(d, 50) n log(n)
    n_estimators`` per round. "extra_trees" stores about
    ``34 d n n_estimators`` bytes per round, where ``n`` is at most 12 500. `fit` raises
    a `MemoryError` at once if this exceeds the memory of the machine. "boosting" stores
    at most 31 leaves per tree for any number of rows; from about ten thousand rows on
    it is much faster.

    For fitted rows, `score` without the truth uses the out-of-bag trees only. The
    linear model was fitted to all rows. Fits with
    "extra_trees" can be saved by `skmc.persistence.save`. Other estimators are objects
    of scikit-learn, for which `save` raises a `TypeError`.

    `sample` (with "extra_trees") draws the missing cells of a row one after the other,
    each given the observed cells and those drawn before. A draw is the value of the
    leaf in a random tree, mostly that of a single row, as in quantile regression
    forests; with ``linear``, it is the residual. The trees of the first round draw.
    They need rows of the fit in which some of the same cells are missing.

    All columns are numbers here; there are no classifiers. For categories, use
    `skmc.MixedCompleter`, which encodes them. With "extra_trees", one forest predicts
    all columns that represent a category, by splits that lower the sum of their squared
    errors, which is Gini's impurity.

    References
    ----------
    Geurts, Ernst, Wehenkel. Extremely randomized trees. Machine Learning 63 (2006).

    Stekhoven, Bühlmann. MissForest: non-parametric missing value imputation for
    mixed-type data. Bioinformatics 28 (2012), for the rounds.

    Meinshausen. Quantile regression forests. Journal of Machine Learning Research 7
    (2006), for the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import TreesCompleter
    >>> t = np.linspace(0, 1, 200)
    >>> X = np.stack([t, t > 0.5, np.abs(t - 0.5)], 1)
    >>> X[180, 1:] = np.nan
    >>> TreesCompleter(random_state=0).fit_transform(X)[180].round(1)
    array([0.9, 1. , 0.4])
    """

    completer_tags = CompleterTags(
        recovers=0.9, unweighted="its trees are fitted to rows, not to cells"
    )
    advice = "tables whose columns depend on each other nonlinearly, new rows"
    cost = Cost(0.3, n_cols=0.002, trees=7e-6)
    stacked = (
        Variant(
            "trees, linear",
            {"linear": True, "n_estimators": 30},
            Cost(0.3, n_cols=0.002, trees=4e-6),
            comparing={"n_estimators": 10},
        ),
        Variant(
            "trees, 3 rounds",
            {"max_iter": 3, "n_estimators": 30},
            Cost(n_cols=0.04, trees=7e-6),
            comparing={"n_estimators": 10},
        ),
        Variant("boosting", {"estimator": "boosting"}, Cost(n_cols=0.01, trees=3e-6)),
    )
    estimator: (
        Literal["extra_trees", "boosting"]
        | Annotated[Regressor, HasMethods(["fit", "predict"])]
    ) = "extra_trees"
    _: KW_ONLY
    n_estimators: Count = 50
    linear: bool = False
    max_iter: Count = 1
    max_time: Positive | None = None
    n_jobs: Workers = None
    random_state: Seed = None

    n_iter_: int = field(init=False)

    @property
    def _out_of_bag(self) -> bool:
        """Whether cells of fitted rows are predicted by models of other rows.

        The linear model has seen all rows.
        """
        return self.estimator == "extra_trees" and not self.linear

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        self._refuse_too_large(given.statistics)
        n_tasks = given.statistics.shape[1] * self.max_iter
        with time_limit(self.max_time), FitTasks(self, given.read, y, n_tasks) as tasks:
            return self._fit_rounds(given, tasks)

    def _fit_rounds(self, given: Given, tasks: FitTasks) -> Outcome:
        cells, priors = given.matrix, given.statistics
        scaling = given.data.to(torch.float64).scaling_of("columns")
        X = scaled(cells, scaling)
        varies = priors.varies & (scaling.scale.numpy().ravel() > 0)
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        own = np.arange(len(cells))
        linear = None
        if self.linear:
            gaussian = GaussianCompleter(random_state=rng)
            gaussian._first_columns = self._first_columns
            linear = gaussian.fit(cells)._fitted
        first = self._first_of_cells(len(varies))
        plan = Plan.of(X, varies, first, self.estimator == "extra_trees")
        start = whole = expected(cells, scaling, linear)
        targets, inputs, last = X - start, X, np.inf
        rounds: list[Models] = []
        interrupted, advice = False, None
        while len(rounds) < self.max_iter and not (interrupted or advice):
            models, interrupted = train(self, targets, inputs, plan, rng, tasks)
            n_trained = sum(len(model.predicted) for model in models)
            advice = self._out_of_time(len(rounds), n_trained, plan.n_cols)
            late = advice is not None and n_trained < plan.n_cols
            if rounds and (interrupted or late):
                break
            values_now = start + predict(models, inputs, own)
            completed = filled(X, values_now)
            if rounds:
                change = float(np.square(completed - inputs).sum(dtype=float))
                if change >= last:
                    break
                last = change
            rounds.append(models)
            whole, inputs = values_now, completed
        completion = priors.fill(cells, undone(whole, scaling)).astype(cells.dtype)
        rows = TreeRows(rounds, scaling, linear)
        return Outcome(
            FittedTrees(priors, completion, RowIndex(cells), rows),
            {"n_iter_": len(rounds)},
            advice=advice,
            interrupted=interrupted,
        )

    def _out_of_time(self, n_rounds: int, n_trained: int, n_cols: int) -> str | None:
        """Make a warning if ``max_time`` has passed in a round before its end."""
        if seconds_left() > 0:
            return None
        limit = limit_of(self.max_time)
        if n_trained < n_cols and n_rounds == 0:
            return (
                f"trained trees for {n_trained} of {n_cols} columns until {limit} had "
                "passed, and completes the others by their means; raise max_time."
            )
        n_rounds += n_trained == n_cols
        if n_rounds < self.max_iter:
            return (
                f"stopped after {n_rounds} of {self.max_iter} rounds, at {limit}; "
                "raise max_time."
            )
        return None

    def _refuse_too_large(self, priors: Priors) -> None:
        n_rows, n_cols = priors.shape
        leaves = min((1 - 1 / FOLDS) * n_rows, MAX_SAMPLES)
        size = 2 * leaves * self.n_estimators * n_cols * BYTES_PER_NODE
        if self.estimator == "extra_trees" and size > memory_of(torch.device("cpu")):
            raise MemoryError(
                f"{self.n_estimators} trees for each of {n_cols} columns take up to "
                f"{size / 2**30:.0f} GiB. Use estimator='boosting', fewer "
                "n_estimators, or FactorizationCompleter."
            )
