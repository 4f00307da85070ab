"""Multiple completions of one matrix, and intervals from them."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Annotated, Any, cast

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skmc.base import (
    Estimator,
    TakesBounds,
    bounds_of,
    read_matrix,
    refuse_parameters,
)
from skmc.cells import Container, Entries, LikeObserved
from skmc.compatibility import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    page_of_class,
    with_callbacks,
)
from skmc.linalg import Seed, seed_of, truncated_normal
from skmc.loop import FitTasks
from skmc.metrics import check_level
from skmc.model_selection import (
    PATTERNS,
    CellSplit,
    HeldOutErrors,
    batch_pays,
    fit_batch,
)
from skmc.parameters import Workers, constrained
from skmc.patterns import parts_like_missing
from skmc.tables import Source, as_table, completed_by, source_of

LIKE_MISSING = "like_missing"
SEED = "random_state"
REDRAWS = 10  # of cells outside of their bounds
# Parameters of the completer that would not change the draws.
OF_DRAWS = {
    "add_indicator": "use sklearn.impute.MissingIndicator beside it",
    "keep_observed": "draws keep the observed cells, so leave it out",
    "keep_empty_features": "draws have all columns, so leave it out",
}
MAX_PARTS = 10  # each draw leaves out one of them
INFLATIONS = 1, 2, 4, 8  # tried factors of the variance between draws
PRIOR = 10  # number of cells that the noise of all columns counts as


@constrained
@dataclass(eq=False, repr=False)
class MultipleCompletion(CallbackSupportMixin, BaseEstimator):
    r"""Complete one matrix several times, each from most of its cells.

    For intervals and pooled estimates with any completer; not needed for completers
    that have their own ``sample``, such as `skmc.ChainedCompleter`.

    Each draw fits the completer, with its own seed, to the observed cells without one
    of ten parts of them, in the pattern of the missing cells
    (`skmc.patterns.parts_like_missing`). After ten draws, the cells are divided anew.
    The uncertainty has two parts: the variance between the draws, and the remaining
    errors on left-out cells. The interval of a cell is ::

        m +- q sqrt(c v + sigma^2),

    where ``m`` is the mean and ``v`` the variance of the draws at this cell.
    ``sigma^2`` is the mean squared error on the left-out cells of the column minus
    their mean ``c v``, at least 0. ``q`` is the quantile of ``|x - m| / sqrt(c v +
    sigma^2)`` over all left-out cells, the conformal correction. Draws from almost the
    same cells are alike, so their variance is multiplied by ``c``: the one of 1, 2, 4
    and 8 for which the errors have the largest normal likelihood. Left-out cells are
    predicted only by draws that did not see them. Each column's ``sigma^2`` is shrunk
    towards that of all columns, in units of the columns' standard deviations, with the
    weight of ten cells.

    Parameters
    ----------
    completer : completer
        Completer to fit. Only its ``random_state`` differs between draws. If a batch
        saves time, all draws are fitted in one, otherwise separately.
    n_draws : int >= 2, default=20
        Number of completions. With fewer than 20, there are half as many parts.
    pattern : str, default="like_missing"
        Pattern of the left-out cells: "like_missing", that of the missing ones, or a
        fifth of the cells as in `skmc.model_selection.CellSplit`: "mcar", "patch",
        "rows", "mar" or "mnar". The correction holds for missing cells if they are
        missing in the same way.
    n_jobs : int or None, default=None
        Number of parallel fits if the draws are not one batch.
    random_state : int, RandomState instance or None, default=None
        Source of the left-out cells and of the completers' seeds.

    Attributes
    ----------
    draws_ : ndarray of shape (n_draws, n_rows, n_cols)
        The models' values for all cells. Of a table, numbers and positions of levels.
    mean_, std_ : ndarray of shape (n_rows, n_cols)
        Mean of the draws, and ``sqrt(c)`` times their standard deviation, which is the
        uncertainty of the model alone. NaN for categories.
    noise_ : ndarray of shape (n_cols,)
        Standard deviation ``sigma`` of the noise of each column.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str of shape (n_cols,)
        Names of the columns, if ``X`` is a data frame whose names are texts.
    scores_ : ndarray
        ``|x - m| / sqrt(c v + sigma^2)`` at left-out cells, in ascending order.

    See Also
    --------
    skmc.ChainedCompleter : Draws without repeated fits.
    pool : Combines estimates of several draws.

    References
    ----------
    Efron. Missing data, imputation, and the bootstrap. JASA 89 (1994). -- Lei, G'Sell,
    Rinaldo, Tibshirani, Wasserman. Distribution-free predictive inference for
    regression. JASA 113 (2018). This package combines them.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import SVDCompleter
    >>> from skmc.uncertainty import MultipleCompletion
    >>> rng = np.random.RandomState(0)
    >>> M = np.outer(rng.randn(40), rng.randn(30)) + 0.1 * rng.randn(40, 30)
    >>> hidden = rng.rand(40, 30) < 0.3
    >>> many = MultipleCompletion(SVDCompleter(rank=1), random_state=0)
    >>> low, high = many.fit(np.ma.masked_array(M, hidden)).interval(0.9)
    >>> bool(0.8 < ((low <= M) & (M <= high))[hidden].mean() < 0.97)
    True
    """

    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    completer: Annotated[Estimator, HasMethods(["fit_transform", "score"])]
    n_draws: Annotated[int, Interval(Integral, 2, None, closed="left")] = 20
    _: KW_ONLY
    pattern: Annotated[str, StrOptions({LIKE_MISSING, *PATTERNS})] = LIKE_MISSING
    n_jobs: Workers = None
    random_state: Seed = None

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Container, y: object = None) -> Any:
        """Fit the completions of ``X``.

        Parameters
        ----------
        X : matrix of any container, or `Entries`, or table
            The matrix, or a table if the completer takes tables.
        y : Ignored
            Ignored; present for API consistency.

        Returns
        -------
        self
        """
        refuse_parameters(self.completer, "MultipleCompletion", OF_DRAWS)
        source, measured = None, np.array(True)
        if not hasattr(self.completer, "predict_entries"):
            validate_data(self, as_table(X), skip_check_array=True)
            source = source_of(X, self.completer)
            cells, measured = source.numbers, source.table.measured
        else:
            cells = read_matrix(self, X, self.missing_values, reset=True)
        if not measured.any():
            raise ValueError("X has only categories; use MixedCompleter.predict_proba.")
        rng = check_random_state(self.random_state)
        masks = _left_out(cells, self.pattern, self.n_draws, rng)
        left_out = np.stack(masks[: self.n_draws])
        seeds = rng.randint(2**31 - 1, size=self.n_draws)
        draws = [clone(self.completer) for _ in seeds]
        for draw, seed in zip(draws, seeds, strict=True):
            names = [n for n in draw.get_params() if n.split("__")[-1] == SEED]
            draw.set_params(**dict.fromkeys(names, int(seed)))
        without_some = [np.where(out, np.nan, cells) for out in left_out]
        completions = []
        with FitTasks(self, X, y, self.n_draws) as tasks:
            if source is None and batch_pays(draws, cells):
                completions = [
                    fitted.reconstruction_ for fitted in fit_batch(draws, without_some)
                ]
            else:
                workers = Parallel(n_jobs=self.n_jobs, return_as="generator")
                pairs = zip(draws, without_some, strict=True)
                for values in workers(delayed(_drawn)(*pair, source) for pair in pairs):
                    completions.append(values)
                    tasks.done("draw")
        self._source, self.cells_, self.draws_ = source, cells, np.stack(completions)
        self._like = None if source else self._like_of(cells)
        self.mean_ = np.where(measured, self.draws_.mean(0), np.nan)
        self.std_ = np.where(measured, self.draws_.std(0, ddof=1), np.nan)
        self._calibrate(left_out & ~np.isnan(self.draws_), measured)
        return self

    @property
    def missing_values(self) -> float:
        """The number that marks missing cells for the completer."""
        return cast(float, getattr(self.completer, "missing_values", np.nan))

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.completer).input_tags
        return tags

    def _calibrate(self, left_out: np.ndarray, measured: np.ndarray) -> None:
        """Compare draws with the cells that they left out."""
        count = (left_out & measured).sum(0)
        rows, cols = np.nonzero(count)
        if not len(rows):
            n_samples, n_features = self.cells_.shape
            raise ValueError(
                f"X has too few observed cells ({n_samples=}, {n_features=}): none can "
                "be left out."
            )
        share = count[rows, cols]
        drawn, out = self.draws_[:, rows, cols], left_out[:, rows, cols]
        mean = np.where(out, drawn, 0).sum(0) / share
        spread = np.where(out, (drawn - mean) ** 2, 0).sum(0) / np.maximum(share - 1, 1)
        values = self.cells_[rows, cols]
        likelihood = -np.inf
        for inflation in INFLATIONS:
            noise = self._noise((values - mean) ** 2 - inflation * spread, cols)
            variance = inflation * spread + noise[cols] ** 2
            varies = variance > 0  # rounded draws may be equal
            ratio = (values - mean)[varies] ** 2 / variance[varies]
            mean_log = (
                -np.mean(np.log(variance[varies]) + ratio) if varies.any() else 0.0
            )
            if mean_log > likelihood:
                likelihood, best = mean_log, (inflation, noise, np.sqrt(variance))
        self._inflation, noise, size = best
        self.std_ *= np.sqrt(self._inflation)
        self.noise_ = np.where(measured, noise, np.nan)
        usable = (size > 0) | (mean == values)
        size[size == 0] = np.inf
        self.scores_ = np.sort((np.abs(values - mean) / size)[usable])
        draw, at = np.nonzero(out & usable)
        self._errors = HeldOutErrors.of(
            (values[at] - drawn[draw, at]) / size[at],
            rows[at] * len(out) + draw,
            cols[at],
        )

    def _noise(self, excess: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """``sigma`` of each column, from squared errors minus the draws' variance."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without cells
            unit = np.nanvar(self.cells_, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        relative, n_cols = excess / unit[cols], len(unit)
        count = np.bincount(cols, minlength=n_cols)
        total = np.bincount(cols, relative, n_cols) + PRIOR * relative.mean()
        return np.sqrt(np.maximum(total / (count + PRIOR), 0) * unit)

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """Intervals that contain a share ``level`` of the missing cells.

        The share holds on average over cells that are missing like the left-out cells.
        It is not guaranteed for single cells. The interval of an observed cell is its
        value.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Share of the missing cells.

        Returns
        -------
        low : ndarray of shape (n_rows, n_cols)
        high : ndarray of shape (n_rows, n_cols)
            Both ends are tables for a table; missing categories stay missing.
        """
        check_is_fitted(self)
        check_level(level)
        n = len(self.scores_)
        q = self.scores_[min(math.ceil(level * (n + 1)), n) - 1]
        half = q * np.hypot(self.std_, self.noise_)
        missing = np.isnan(self.cells_)
        low = np.where(missing, self.mean_ - half, self.cells_)
        high = np.where(missing, self.mean_ + half, self.cells_)
        if self._source is None:
            if self._like is not None:
                low, high = (
                    np.where(missing, self._like.apply(end), self.cells_)
                    for end in (low, high)
                )
            return low, high
        low, high = (self._source.completed(b, only_measured=True) for b in (low, high))
        return low, high

    def sample(
        self,
        n_samples: int = 1,
        random_state: Seed = None,
    ) -> Any:
        """Completed matrices for multiple imputation, with the noise of single cells.

        A draw's difference from the mean is multiplied by ``sqrt(c)``. The noise is
        ``sigma`` times the error of a left-out cell of the same column in units of its
        uncertainty. The missing cells of a row take errors of one row that one draw has
        left out, as far as there are any.

        Parameters
        ----------
        n_samples : int >= 1, default=1
            Number of matrices. If it exceeds ``n_draws``, draws are used repeatedly.
        random_state : int, RandomState instance or None, default=None
            Source of the choice of draws and of the noise.

        Returns
        -------
        ndarray of shape (n_samples, n_rows, n_cols)
            A list of tables if X is one; their categories have no noise.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        order = [rng.permutation(len(self.draws_)) for _ in range(n_samples)]
        chosen = np.concatenate(order)[:n_samples]
        missing, low, high = np.isnan(self.cells_), *self._bounds
        mean = self.draws_[chosen]
        # A mean of categories is NaN; their draws stay.
        mean += np.nan_to_num((np.sqrt(self._inflation) - 1) * (mean - self.mean_))
        draws, std = mean.copy(), np.nan_to_num(self.noise_)
        drawn = np.broadcast_to(missing, mean.shape)
        for _ in range(REDRAWS):
            noise = np.stack([self._errors.draw(cells, rng) for cells in drawn])
            draws = np.where(drawn, mean + std * noise, draws)
            drawn = missing & ((draws < low) | (draws > high))
            if not drawn.any():
                break
        _, _, col = place = np.nonzero(drawn)
        draws[place] = truncated_normal(mean[place], std[col], low[col], high[col], rng)
        if self._source is not None:
            draws = np.where(missing, draws, self.cells_)
            return [*map(self._source.completed, draws)]
        if self._like is not None:
            draws = np.stack([self._like.apply(draw) for draw in draws])
        return np.where(missing, draws, self.cells_)

    def _like_of(self, cells: np.ndarray) -> LikeObserved | None:
        """Restrictions of the values of a matrix, those of its completer."""
        if not isinstance(self.completer, TakesBounds):
            return None
        names = getattr(self, "feature_names_in_", ())
        ends = self.completer.min_value, self.completer.max_value
        low, high = bounds_of(*ends, names, cells.shape[1])
        if getattr(self.completer, "like_observed", False):
            return LikeObserved.of(cells, low, high)
        return LikeObserved.within(low, high)

    @property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the draws of each column, (n_cols,)."""
        if self._source is None:
            n_cols = self.cells_.shape[1]
            none = LikeObserved.within(*np.full((2, n_cols), np.nan))
            like = self._like or none
            return like.low, like.high
        limits = self._source.table.limits
        ends = [limits.get(k, (np.nan, np.nan)) for k in range(self.cells_.shape[1])]
        low, high = np.array(ends, float).reshape(-1, 2).T
        like = LikeObserved.within(low, high)
        return like.low, like.high


def _drawn(draw: Any, part: np.ndarray, source: Source | None) -> np.ndarray:
    """Return the values of all cells after a fit to some of them."""
    if source is not None:
        return completed_by(draw, source, part)
    return np.asarray(draw.fit(part).reconstruction_)


def _left_out(
    cells: np.ndarray, pattern: str, n_draws: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Masks of left-out cells, for at least ``n_draws`` draws."""
    masks: list[np.ndarray] = []
    if pattern == LIKE_MISSING:
        n_parts = min(max(2, n_draws // 2), MAX_PARTS)
        while len(masks) < n_draws:
            labels = parts_like_missing(cells, n_parts, random_state=rng)
            masks += [labels == part for part in range(max(1, labels.max() + 1))]
        return masks
    entries = Entries(cells)
    split = CellSplit(pattern, n_draws, random_state=seed_of(rng))
    for _, test in split.split(entries):
        masks.append(np.zeros(cells.shape, bool))
        masks[-1][entries.rows[test], entries.cols[test]] = True
    return masks
