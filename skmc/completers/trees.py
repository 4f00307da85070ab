"""Ensembles of trees that handle missing values."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Annotated, Any, Literal, Protocol, cast

import numpy as np
import torch
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from skmc.base import (
    CompleterTags,
    Fitted,
    Outcome,
    Samples,
    TakesBounds,
    TakesRowWeights,
    limit_of,
)
from skmc.cells import Container, Given, Priors, Scaling, TableMatrix
from skmc.cells.copies import copies
from skmc.compatibility import HasMethods
from skmc.completers._trees import (
    ROWS_AT_ONCE,
    FittedTrees,
    Trees,
    leaves_of,
    most_correlated,
    on_grid,
    single,
    small,
)
from skmc.completers._units import standardized, undone
from skmc.completers.gaussian import GaussianCompleter
from skmc.linalg import memory_of, seed_of, threads_for, work_of
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.new_rows import RowIndex
from skmc.parameters import Count, Positive, Seed, Workers

FOLDS = 5  # of rows; each tree is trained without one of them
MAX_SAMPLES = 10_000  # rows that a tree is trained on
BYTES_PER_LEAF = 11  # with the split before it

Models = list["_Forest | _FittedRegressor"]


class Regressor(Protocol):
    """A regressor of scikit-learn."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> object: ...
    def predict(self, X: np.ndarray) -> np.ndarray: ...


def _has_leaves(completer: TreesCompleter) -> bool:
    if completer.estimator != "extra_trees":
        raise AttributeError("sample needs estimator='extra_trees'.")
    return True


class TreesCompleter(Samples, TakesBounds, TakesRowWeights):
    r"""Predict each column from the others by trees that handle missing values.

    For tables whose columns depend on each other nonlinearly, and new rows; not for few
    rows, hundreds of columns or matrices of low rank.

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
        ``random_state`` if its own is None. Its own ``fit`` must take ``sample_weight``
        if weights of rows are given. All are trained on standardized columns.
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
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
        Columns without trees at that time are completed by their means; an unfinished
        further round is discarded.
    n_jobs : int or None, default=None
        Number of columns trained at the same time, in threads; -1 is all cores. The
        result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows and the splits of the trees.
    min_value : float, array-like, dict or None, default=None
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.
    max_value : as min_value, default=None
        Largest value, at least ``min_value``.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. With "extra_trees", the value of an observed
        cell is out-of-bag: the mean over the trees that were not trained on its row.
        Other estimators give their prediction, although they have seen the cell.
    n_iter_ : int
        Number of rounds that were kept.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    ChainedCompleter : Draws from trees, for analyses of the completed table.
    AutoCompleter : Combines trees with other methods.
    sklearn.impute.IterativeImputer : Repeats such predictions in rounds.

    Notes
    -----
    A model has at most 50 inputs, the columns most correlated with its own. A fit of
    ``n`` rows and ``d`` columns takes time in proportion to ``d min(d, 50) n log(n)
    n_estimators`` per round. "extra_trees" stores about
    ``9 d n n_estimators`` bytes per round, where ``n`` is at most 12 500. `fit` raises
    a `MemoryError` at once if this exceeds the memory of the machine. "boosting" stores
    at most 31 leaves per tree for any number of rows; from about ten thousand rows on
    it is much faster.

    For fitted rows, `score` without the truth uses the out-of-bag trees only. The
    linear model was fitted to all rows.

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

    @available_if(_has_leaves)
    def sample(
        self, X: Container, n_samples: int = 1, random_state: Seed = None
    ) -> Any:
        """Draw the missing cells of rows, one column after the other.

        Only with ``estimator="extra_trees"``. For multiple imputation, use
        `skmc.uncertainty.pool`.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, which need not be rows of the fit.
        n_samples : int >= 1, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_features)
            Draws, in which observed cells are unchanged.
        """
        return super().sample(X, n_samples, random_state)

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        self._refuse_too_large(given.statistics)
        estimator = self.estimator
        takes = isinstance(estimator, str) or has_fit_parameter(
            estimator, "sample_weight"
        )
        if given.row_weights is not None and not takes:
            raise ValueError(
                f"estimator={estimator!r} takes no sample_weight in its fit; leave out "
                "the weights, or use another estimator."
            )
        n_tasks = given.statistics.shape[1] * self.max_iter
        with time_limit(self.max_time), FitTasks(self, given.read, y, n_tasks) as tasks:
            return self._fit_rounds(given, tasks)

    def _fit_rounds(self, given: Given, tasks: FitTasks) -> Outcome:
        cells, priors = given.matrix, given.statistics
        scaling = given.data.to(torch.float64).scaling_of("columns")
        X = _scaled(cells, scaling)
        varies = priors.varies & (scaling.scale.numpy().ravel() > 0)
        rng = np.random.RandomState(seed_of(self.random_state) % 2**32)
        every_row = np.arange(len(cells))
        linear = None
        if self.linear:
            gaussian = GaussianCompleter(random_state=rng)
            matrix = TableMatrix(cells, given.layout)
            linear = gaussian.fit(matrix, sample_weight=given.row_weights)._fitted
        first, weights = given.first_columns, given.weights_of_rows
        together = self.estimator == "extra_trees"
        plan = _Plan.of(X, weights, varies, first, together)
        group = copies(cells) if together else every_row
        start = values = _expected(cells, scaling, linear)
        targets, inputs, last = X - start, X, np.inf
        targets[weights == 0] = np.nan
        rounds: list[Models] = []
        interrupted, advice = False, None
        while len(rounds) < self.max_iter and not (interrupted or advice):
            models, interrupted = self._train(
                targets, inputs, given.row_weights, group, plan, rng, tasks
            )
            n_trained = sum(len(model.predicted) for model in models)
            advice = self._out_of_time(len(rounds), n_trained, plan.n_cols)
            late = advice is not None and n_trained < plan.n_cols
            if rounds and (interrupted or late):
                break
            values_now = start + _predicted(models, inputs, every_row, np.isnan(X))
            completed = _filled(X, values_now)
            if rounds:
                squares = np.square(completed - inputs).sum(1, dtype=float)
                change = float(weights @ squares)
                if change >= last:
                    break
                last = change
            rounds.append(models)
            values, inputs = values_now, completed
        completion = priors.fill(cells, undone(values, scaling)).astype(cells.dtype)
        rows = _TreeRows(rounds, scaling, linear)
        return Outcome(
            FittedTrees(priors, completion, RowIndex(cells), rows),
            {"n_iter_": len(rounds)},
            advice=advice,
            interrupted=interrupted,
        )

    def _train(
        self,
        X: np.ndarray,
        inputs: np.ndarray,
        weights: np.ndarray | None,
        group: np.ndarray,
        plan: _Plan,
        rng: np.random.RandomState,
        tasks: FitTasks,
    ) -> tuple[Models, bool]:
        """Train all models of a plan; return whether a user interrupted.

        Those that would begin after the time limit are left out, except for the first.
        """
        end = time.perf_counter() + seconds_left()  # workers cannot read the limit
        seeds = rng.randint(2**31, size=len(plan.predicted))
        # Each tree is a pass over the inputs. The work of other regressors is unknown.
        passes = self.n_estimators if isinstance(self.estimator, str) else inf
        alone = effective_n_jobs(self.n_jobs) == 1  # each worker has one thread
        work = passes * work_of(inputs.size) if alone else 0

        def trained(number: int) -> _Forest | _FittedRegressor | None:
            if time.perf_counter() >= end and number:
                return None
            cols, others = plan.predicted[number], plan.inputs[number]
            y, seed = X[:, cols], seeds[number]
            with threads_for(work):
                if self.estimator == "extra_trees":
                    rng, n_trees = np.random.RandomState(seed), self.n_estimators
                    rows = inputs, y, weights, group
                    return _Forest.grown(*rows, cols, others, n_trees, rng)
                seen = ~np.isnan(y[:, 0])
                others = others[_varies(inputs[np.ix_(seen, others)])]
                regressor = self._regressor(int(seed))
                if not len(others):
                    regressor = DummyRegressor()
                weights_of_fit = (
                    {} if weights is None else {"sample_weight": weights[seen]}
                )
                regressor.fit(
                    inputs[np.ix_(seen, others)], y[seen, 0], **weights_of_fit
                )
                return _FittedRegressor(regressor, cols, others)

        models: Models = []
        try:
            workers = Parallel(self.n_jobs, prefer="threads", return_as="generator")
            trained_models = workers(
                delayed(trained)(k) for k in range(len(plan.predicted))
            )
            for cols, model in zip(plan.predicted, trained_models, strict=True):
                if model is not None:
                    models.append(model)
                for _ in cols:
                    tasks.done("column")
        except KeyboardInterrupt:
            return models, True
        return models, False

    def _regressor(self, seed: int) -> Any:
        if self.estimator == "boosting":
            return HistGradientBoostingRegressor(
                max_iter=self.n_estimators, random_state=seed
            )
        regressor = clone(self.estimator)
        free = [
            name
            for name, value in regressor.get_params().items()
            if name.endswith("random_state") and value is None
        ]
        return regressor.set_params(**dict.fromkeys(free, seed))

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
        size = leaves * self.n_estimators * n_cols * BYTES_PER_LEAF
        if self.estimator == "extra_trees" and size > memory_of(torch.device("cpu")):
            raise MemoryError(
                f"{self.n_estimators} trees for each of {n_cols} columns take up to "
                f"{size / 2**30:.0f} GiB. Use estimator='boosting', fewer "
                "n_estimators, or FactorizationCompleter."
            )


@dataclass(eq=False)
class _TreeRows:
    """Rounds of models that complete rows one after the other.

    Parameters
    ----------
    rounds : list of list
        Models of each round.
    scaling : Scaling
        Scaling of the fit.
    linear : Fitted or None, default=None
        Linear model, whose residuals the models predict.
    """

    rounds: list[Models]
    scaling: Scaling
    linear: Fitted | None = None

    def __call__(self, cells: np.ndarray, everywhere: bool) -> np.ndarray:
        return self.predict(cells, np.full(len(cells), -1), everywhere)

    def predict(
        self, cells: np.ndarray, own: np.ndarray, everywhere: bool
    ) -> np.ndarray:
        """Predict the missing cells of rows, or all cells.

        ``own`` are the positions of the rows in the fitted matrix.
        """
        X = inputs = _scaled(cells, self.scaling)
        values = start = _expected(cells, self.scaling, self.linear)
        missing = np.isnan(X)
        for number, models in enumerate(self.rounds, 1):
            needed = missing | (everywhere and number == len(self.rounds))
            values = start + _predicted(models, inputs, own, needed)
            inputs = _filled(X, values)
        return undone(values, self.scaling)

    def sample(
        self, cells: np.ndarray, n_samples: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw missing cells column by column, each given those drawn before.

        The columns that represent a category are drawn together.
        """
        X = _scaled(cells, self.scaling)
        models = cast("list[_Forest]", self.rounds[0] if self.rounds else [])
        drawn = np.repeat(X[None], n_samples, 0)
        completed = np.repeat(cells[None], n_samples, 0)
        for model in sorted(models, key=lambda m: np.isnan(X[:, m.predicted[0]]).sum()):
            cols = model.predicted
            rows = np.flatnonzero(np.isnan(X[:, cols[0]]))
            values = model.draw(drawn[:, rows], rng)
            given = completed[:, rows].reshape(-1, cells.shape[1])
            linear = _expected(given, self.scaling, self.linear)[:, cols]
            at = (slice(None), rows[:, None], cols)
            drawn[at] = values + linear.reshape(values.shape)
            completed[at] = undone(drawn[:, rows], self.scaling)[..., cols]
        return undone(np.nan_to_num(drawn), self.scaling)


@dataclass(frozen=True)
class _Plan:
    """The columns that each model predicts, and those that it may use.

    Parameters
    ----------
    predicted : list of ndarray
        Columns of each model.
    inputs : list of ndarray
        Other columns, without those that represent the same cell of a table: these are
        missing where the predicted ones are.
    """

    predicted: list[np.ndarray]
    inputs: list[np.ndarray]

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weights: np.ndarray,
        varies: np.ndarray,
        first: np.ndarray,
        together: bool,
    ) -> _Plan:
        """Plan the models of varying columns; columns without inputs get none.

        ``X`` has standardized cells, by whose correlations inputs are chosen, and
        ``weights`` are those of its rows.
        ``first`` is, for each column, the first one of the same cell. With
        ``together``, a model predicts all columns of a cell.
        """
        used = np.flatnonzero(varies)
        label = first if together else np.arange(len(first))
        predicted = [used[label[used] == k] for k in np.unique(label[used])]
        inputs = [used[first[used] != first[cols[0]]] for cols in predicted]
        pairs = [pair for pair in zip(predicted, inputs, strict=True) if len(pair[1])]
        predicted = [pair[0] for pair in pairs]
        inputs = [pair[1] for pair in pairs]
        return cls(predicted, most_correlated(X, predicted, inputs, weights))

    @property
    def n_cols(self) -> int:
        """Number of columns that are predicted."""
        return sum(map(len, self.predicted))


@dataclass(frozen=True)
class _Forest(Trees):
    """An ensemble, and the rows on which each of its trees was trained.

    It predicts one column, or all columns that represent a category. Most leaves hold a
    single row, so that many have the same value.
    """

    predicted: np.ndarray  # (q,), columns
    values: np.ndarray  # (n_values, q), distinct ones of leaves
    value_of_leaf: np.ndarray  # (n_leaves,), a position in `values`
    in_bag: np.ndarray  # (n_trees, n_rows / 8), one bit for each fitted row

    @classmethod
    def grown(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        group: np.ndarray,
        predicted: np.ndarray,
        cols: np.ndarray,
        n_estimators: int,
        rng: np.random.RandomState,
    ) -> _Forest:
        """Train each tree on the rows in which ``y`` is known, without one fold.

        The rows of a ``group`` are in one fold.
        """
        rows = rng.permutation(np.flatnonzero(~np.isnan(y[:, 0])))
        _, at, label = np.unique(group[rows], return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(at))[label]  # of the group among all of them
        n_folds = min(FOLDS, n_estimators, len(at))
        trees, in_bag = [], np.zeros((n_estimators, len(y)), bool)
        y, holes = on_grid(y), bool(np.isnan(X).any())  # a check finds nothing else
        for number, bag in enumerate(in_bag):
            out = place % n_folds == number % n_folds
            kept = rows if n_folds == 1 else rows[~out]
            if len(kept) > MAX_SAMPLES:
                kept = rng.choice(kept, MAX_SAMPLES, replace=False)
            tree = ExtraTreeRegressor(random_state=rng.randint(2**31))
            times = None if weights is None else weights[kept]
            given = X[np.ix_(kept, cols)], y[kept], times
            trees.append(tree.fit(*given, check_input=holes).tree_)
            bag[kept] = True
        at_leaves = np.concatenate(
            [tree.value[leaves_of(tree), :, 0] for tree in trees]
        )
        values, of_leaf = np.unique(at_leaves, axis=0, return_inverse=True)
        return cls(
            **cls.arrays_of(trees, cols),
            predicted=predicted,
            values=values,
            value_of_leaf=small(of_leaf.reshape(-1)),
            in_bag=np.packbits(in_bag, axis=1),
        )

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Average the trees; for fitted rows, the trees that were not trained on them.

        ``own`` holds the positions of the rows in the fitted matrix, -1 for new rows.
        If all trees were trained on a row, all of them are averaged.
        """
        batches = gen_batches(len(X), ROWS_AT_ONCE)
        return np.concatenate([self._predict(X[part], own[part]) for part in batches])

    def draw(self, X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """The value of a random tree for each row; ``X`` is (n_draws, n_rows, n_cols).

        A leaf holds the rows that no split separates, mostly a single one.
        """
        trees = rng.randint(len(self.n_splits), size=X.shape[:2])
        return self.values[self.value_of_leaf[self.leaves(X, trees)]]

    def _predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        values = self.values[self.value_of_leaf[self.leaves(X)]]
        seen = (self.in_bag[:, own // 8] >> (7 - own % 8)) & 1
        votes = (seen == 0) | (own < 0)
        votes |= ~votes.any(0)
        return (values * votes[..., None]).sum(0) / votes.sum(0)[:, None]


@dataclass(frozen=True)
class _FittedRegressor:
    """A fitted regressor and the columns that it was trained on."""

    regressor: Any
    predicted: np.ndarray  # (1,)
    cols: np.ndarray

    def predict(self, X: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.regressor.predict(X[:, self.cols])[:, None]


def _predicted(
    models: Models, inputs: np.ndarray, own: np.ndarray, needed: np.ndarray
) -> np.ndarray:
    """Predict the cells that are needed; others get zero, the mean."""
    values = np.zeros(inputs.shape)
    for model in models:
        if len(rows := np.flatnonzero(needed[:, model.predicted[0]])):
            at = np.ix_(rows, model.predicted)
            values[at] = model.predict(inputs[rows], own[rows])
    return values


def _scaled(cells: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Standardized cells in the precision of scikit-learn's trees."""
    return single(standardized(cells.astype(float), scaling))


def _expected(cells: np.ndarray, scaling: Scaling, linear: Fitted | None) -> np.ndarray:
    """Standardized predictions of the linear model; without one, the means, zero."""
    if linear is None:
        return np.zeros(cells.shape)
    values = linear.predict(cells, everywhere=True).astype(float)
    return _scaled(values, scaling).astype(float)


def _filled(X: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), whole, X).astype(np.float32)


def _varies(X: np.ndarray) -> np.ndarray:
    """Find columns with two different values, of which NaN is one.

    Some regressors raise errors for the others.
    """
    nan = np.isnan(X)
    differ = np.fmax.reduce(X, 0) > np.fmin.reduce(X, 0)
    return differ | (nan.any(0) & ~nan.all(0))
