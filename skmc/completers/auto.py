"""Many completers, stacked where they are used."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, field, replace
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base import (
    BaseCompleter,
    CompleterTags,
    FitTasks,
    Outcome,
    Priors,
    known_of_rows,
    read_known,
    resolve_device,
    validated,
    warn_user,
)
from skmc.cells import Entries, Scaling
from skmc.completers._candidates import Candidate, family, informed
from skmc.completers._cold import Cold, InformedMatrix
from skmc.completers._combination import (
    combined,
    own_values,
    reconstruction,
    variance_of,
)
from skmc.completers._cross_fit import CrossFit, Trial
from skmc.completers._report import leaderboard, verdict
from skmc.completers._spread import Spread
from skmc.completers._units import standardized, units_of
from skmc.completers.costs import Size
from skmc.linalg import seed_of
from skmc.new_rows import RowIndex
from skmc.tables import TakesTables

KNOWN = ("row_features", "col_features", "row_graph", "col_graph")
N_PARTS = 8
MAX_ROWS = 5_000  # on which candidates are compared


class _Sample(NamedTuple):
    """Standardized rows, and what is known about them and about the columns."""

    cells: np.ndarray
    known: Mapping[str, Any]


class AutoCompleter(TakesTables):
    r"""Fit many completers and weight them by their errors on held-out cells.

    The observed cells are divided into eight parts, in the pattern of the missing ones
    (`skmc.patterns.parts_like_missing`). Candidates predict a part from the other
    cells. The completion is

    .. math::

        X_{ij} = \sum_k w_{jk} X^{(k)}_{ij}, \qquad w_{jk} \ge 0, \quad
        \sum_k w_{jk} = 1,

    where the weights of column j minimize the squared error of the predictions in this
    column, plus ``a`` times the *mean* squared error in all columns. ``a``, the number
    of cells that the other columns count for, is infinity, 1000, 300, 100, 30 or 10,
    until the error rises on rows that were left out of the weights. Then the candidates
    with a weight are fitted to all observed cells.

    Candidates are tried in order of cost. All predict the first part. Then those
    without a weight are dropped, and the others predict 1, 2 and 4 more parts. This
    ends early when more cells would not improve the weights: when the error of the
    stack on rows left out is within a hundredth of the error on rows that were not.

    Parameters
    ----------
    candidates : "auto", sequence of str, or mapping of str to estimator, default="auto"
        "auto" tries all that ``max_time`` has room for: column means, `KNNCompleter`
        with 5 and with 10 neighbors, `SVDCompleter`, `IALMCompleter`, `NCARLCompleter`,
        `TNNRCompleter`, `SoftImputeCompleter`, `AIRCompleter`, `GaussianCompleter` with
        both marginals, `BayesianFactorizationCompleter` with and without ``implicit``,
        `FactorizationCompleter`, `TreesCompleter` with both ensembles and in a chain,
        `DMFCompleter` with total variation, `PatchCNNCompleter`, `NonlocalCompleter`,
        `BiharmonicCompleter` (if scikit-image is installed), and
        `sklearn.impute.IterativeImputer` with its default and with trees.

        Those that take features or graphs, if `fit` gets any, are tried with and
        without. A sequence selects some of these by name ("means", "KNN", "SVD" ...,
        see ``leaderboard_``). A mapping holds completers or scikit-learn imputers. The
        first part is predicted by all candidates of a sequence or mapping, whatever
        they cost.
    max_time : float > 0 or None, default=60
        Time limit in seconds; None sets none. A candidate of "auto" is skipped if there
        is no time for its fit and for a second one, or for the last fit of the best so
        far if it takes longer. Times of fits are estimated from the shape and the
        number of observed cells, corrected by the times measured so far. A running fit
        is not interrupted. Members of the stack for whose last fit there is no time
        keep an earlier one, to fewer cells.
    {device}
        Estimators in a mapping use their own.
    random_state : int, RandomState instance or None, default=None
        Draws the parts, and seeds all candidates except those of a mapping.
    {like_observed}
    {reading}

    Attributes
    ----------
    leaderboard_ : pandas.DataFrame
        A row for each candidate, the best first: "candidate"; "status", which also says
        why a candidate was not tried or how it failed; "error", the root mean squared
        error on the first part; "cells", how many it has predicted; "weight", the mean
        over the columns; "seconds"; "warnings", their number. Computed at each access;
        needs pandas.
    verdict_ : str
        A summary: the members of the stack, its error, and what was not tried.
    weights_ : dict of str to float
        The members and their weights if all columns share them.
    column_weights_ : dict of str to ndarray of shape (n_features,)
        The weights of each column, which the completion uses.
    completers_ : dict of str to estimator
        The members, fitted to the standardized cells, see the notes.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. Imputers of scikit-learn predict no values for
        observed cells; they count with the observed values.
    {input}

    Notes
    -----
    If the columns have different units (`skmc.cells.Scaling.of`), they are standardized
    before any fit, and errors are in standard deviations of the columns. A matrix of
    one unit is not scaled.

    Rows and columns without an observed cell have no held-out cells either. If features
    or graphs describe them, only candidates that take these count there, with their
    share of the weights; if the stack has none, the best of them joins it. Features of
    a column are those of `FactorizationCompleter.fit`, and new rows count as average.

    Above 5000 rows, candidates are compared on 5000 of them, drawn at random. Members
    whose fit to all rows would take too long keep a fit to these rows, and complete the
    others as new rows. The matrix is made dense, and each member stores what its class
    says; time grows with the rows only in the last fits.

    The candidates that are tried depend on the clock only if ``max_time`` is short.
    After an interruption the best so far is kept. `skmc.persistence.save` stores the
    completer unless estimators of scikit-learn are among the members; pickle always
    does.

    References
    ----------
    Wolpert. Stacked generalization. Neural Networks 5 (1992). -- Breiman. Stacked
    regressions. Machine Learning 24 (1996). -- van der Laan, Polley, Hubbard. Super
    learner. Statistical Applications in Genetics and Molecular Biology 6 (2007). The
    weights by column and the order of the fits are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AutoCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.outer(rng.rand(30), rng.rand(20))
    >>> X[11, 9] = np.nan
    >>> completer = AutoCompleter(["means", "KNN", "SVD"], random_state=0).fit(X)
    >>> completer.verdict_.split(":")[0]
    'SVD alone, of 3 candidates'
    """

    completer_tags = CompleterTags(
        recovers=0.05, unweighted="it compares methods without weights, too"
    )
    _parameter_constraints: ClassVar[dict] = {
        "candidates": [StrOptions({"auto"}), Mapping, "array-like"],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    candidates: Any = "auto"
    _: KW_ONLY
    max_time: float | None = 60.0
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None
    like_observed: bool | Literal["auto"] = "auto"

    verdict_: str = field(init=False)
    weights_: dict[str, float] = field(init=False)
    column_weights_: dict[str, np.ndarray] = field(init=False)
    completers_: dict[str, Any] = field(init=False)
    _scaling: Scaling = field(init=False)
    _cold_rows: np.ndarray = field(init=False)
    _spread: Spread = field(init=False)
    _leaderboard: list[dict[str, Any]] = field(init=False)

    @validated
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
        row_graph: Any = None,
        col_graph: Any = None,
    ) -> Self:
        """Complete ``X``, and learn a map that completes other rows.

        Candidates whose ``fit`` takes features or graphs are tried with those given
        here, under names that end in "informed", and without.

        Parameters
        ----------
        X : masked array, array or list with NaN, DataFrame, SciPy sparse matrix, \
tensor or `Entries`, of shape (n_samples, n_features)
            Matrix to complete. `skmc.cells.to_cells` defines which cells are missing.
        y : Ignored
            Present for pipelines, and passed on to scikit-learn's callbacks.
        row_features : array, DataFrame, tensor or SciPy sparse matrix of shape \
(n_samples, p), optional
            Features of the rows.
        col_features : as row_features, of shape (n_features, p), optional
            Features of the columns.
        row_graph : array or SciPy sparse matrix of shape (n_samples, n_samples), \
optional
            Symmetric weights >= 0 between rows that resemble each other. The diagonal
            is ignored.
        col_graph : as row_graph, of shape (n_features, n_features), optional
            Weights between columns.

        Returns
        -------
        self
            The fitted completer. Rows and columns of ``X`` without an observed cell are
            answered by the informed candidates.

        Raises
        ------
        ValueError
            As for `FactorizationCompleter.fit`. Tables with columns that are not
            numbers have no features or graphs of columns.
        """
        values = (row_features, col_features, row_graph, col_graph)
        given = dict(zip(KNOWN, values, strict=True))
        return self._run_fit(
            X, y, **{name: value for name, value in given.items() if value is not None}
        )

    def _read_to_fit(self, X: Any, **given: Any) -> tuple[Any, Priors]:
        cells, priors = super()._read_to_fit(X)
        if not given:
            return cells, priors
        for name in given:
            if name.startswith("col") and getattr(priors, "table", None) is not None:
                raise ValueError(
                    f"{name} needs a matrix, but X has columns that are not numbers; "
                    "encode them, or leave it out."
                )
        known = read_known(given, priors.shape)
        found = cells.view(InformedMatrix)
        found.known, found.cold = known, (cold := Cold.of(priors, known))
        return found, replace(
            priors,
            empty_rows=priors.empty_rows & ~cold.rows,
            empty_cols=priors.empty_cols & ~cold.cols,
        )

    def _fit_cells(self, cells: np.ndarray, priors: Priors, y: Any = None) -> Outcome:
        with FitTasks(self, cells, y, 3) as tasks:
            return self._fit_stack(cells, priors, tasks)

    def _fit_stack(self, cells: np.ndarray, priors: Priors, tasks: FitTasks) -> Outcome:
        seed = seed_of(self.random_state)
        known: Any = getattr(cells, "known", {})
        cold = getattr(cells, "cold", Cold.of(priors, known))
        cells = np.asarray(cells)
        scaling = units_of(cells)
        whole = sample = _Sample(standardized(cells, scaling), known)
        if len(cells) > MAX_ROWS:
            rows = np.random.RandomState(seed % 2**32).permutation(len(cells))
            rows = np.sort(rows[:MAX_ROWS])
            sample = _Sample(whole.cells[rows], known_of_rows(known, rows))
        labels = self._together(
            patterns.parts_like_missing(sample.cells, N_PARTS, random_state=seed),
            priors,
        )
        entries = Entries(sample.cells)
        label = labels[entries.rows, entries.cols]
        size = Size.of(whole.cells)
        race = CrossFit(entries, label, size, self.max_time, sample.known)
        named = not isinstance(self.candidates, str)
        candidates = informed(self._candidates(seed), known)
        if known and not any(candidate.takes for candidate in candidates):
            warn_user(
                f"None of the candidates takes {' or '.join(known)}; add 'Bayesian' or "
                "'Factorization', or leave them out."
            )
        race.run(candidates, named, tasks)
        if not race.members:
            if race.interrupted:
                raise KeyboardInterrupt
            said = "; ".join(f"{t.name} {t.status}" for t in race.trials)
            raise ValueError(f"None of the candidates could be fitted: {said}.")
        stacking = race.stack()
        members, weights, cold_weights = cold.weights(race, stacking)
        completers = {}
        with tasks.part("last fits", len(members)) as last:
            for trial in members:
                completers[trial.name] = self._final(trial, race, whole, sample)
                last.done(trial.name)
        scaled = whole.cells
        values = combined(completers, weights, scaled, scaling, reconstruction)
        values = priors.fill(cells, values)
        if cold.rows.any():
            values[cold.rows] = combined(
                completers, cold_weights, scaled, scaling, reconstruction
            )[cold.rows]
        found = [
            (t.name, w) for t, w in zip(race.members, stacking.common, strict=True)
        ]
        attributes = {
            "weights_": {name: float(weight) for name, weight in found},
            "column_weights_": dict(zip(completers, weights, strict=True)),
            "completers_": completers,
            "verdict_": verdict(race, stacking),
            "reconstruction_": values.astype(cells.dtype),
            "_cold_rows": cold.rows,
            "_leaderboard": leaderboard(race, stacking),
            "_spread": Spread.of(
                stacking.residuals,
                stacking.variances,
                race.held_out().cols,
                cells.shape[1],
            ),
            "_scaling": scaling,
            "_rows": RowIndex(cells),
        }
        return Outcome(attributes, interrupted=race.interrupted)

    def _candidates(self, seed: int) -> list[Candidate]:
        if isinstance(self.candidates, Mapping):
            found = [Candidate(*item) for item in self.candidates.items()]
        else:
            found = family(seed, resolve_device(self.device))
            if not isinstance(self.candidates, str):
                wanted, known = list(self.candidates), [c.name for c in found]
                if unknown := [name for name in wanted if name not in known]:
                    raise ValueError(
                        f"candidates contains {unknown[0]!r}; the names are {known}. "
                        "Pass other estimators in a mapping of names to estimators."
                    )
                found = [c for c in found if c.name in wanted]
        if not found:
            raise ValueError("candidates is empty; give at least one.")
        return found

    def _final(
        self, trial: Trial, race: CrossFit, whole: _Sample, sample: _Sample
    ) -> Any:
        """The estimator fitted to all cells, or to as many as there is time for."""
        for part, seconds in (
            (whole, trial.seconds_per_fit * trial.growth),
            (sample, trial.seconds_per_fit),
        ):
            if trial.fitted is not None and (
                race.interrupted or seconds > race.seconds_left
            ):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # counted in the leaderboard
                try:
                    given = trial.candidate.arguments(part.known)
                    return clone(trial.candidate.estimator).fit(part.cells, **given)
                except KeyboardInterrupt:
                    if trial.fitted is None:
                        raise
                    race.interrupted = True
                except Exception:
                    if trial.fitted is None:
                        raise
        return trial.fitted

    def _is_fitted_picture(self, cells: np.ndarray) -> bool:
        """Whether ``cells`` is the fitted matrix, some of whose rows have no cell."""
        fitted: np.ndarray = self._rows.cells
        same = cells.dtype == fitted.dtype and cells.shape == fitted.shape
        cold = bool(self._cold_rows.any())
        return cold and same and np.array_equal(cells, fitted, equal_nan=True)

    def _stacked(
        self, cells: np.ndarray, values: Callable[[Any, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        weights = self.column_weights_.values()
        scaled = standardized(cells, self._scaling)
        return combined(self.completers_, weights, scaled, self._scaling, values)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        position = self._rows.find(cells)
        completed = self.reconstruction_[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            completed[new] = self._stacked(cells[new], own_values)
        return completed

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        def values(completer: Any, scaled: Any) -> Any:
            if isinstance(completer, BaseCompleter):
                return completer._complete_hidden(scaled, hidden)
            return np.asarray(completer.transform(np.where(hidden, np.nan, scaled)))

        return self._stacked(cells, values)

    def predict_std(self, X: Any) -> np.ndarray:
        r"""Standard deviation of the cells that `transform` returns.

        In missing cells it is the root of

        .. math::

            u_{ij}^2 = s_j^2 + \sum_k w_{jk} (X^{(k)}_{ij} - X_{ij})^2,

        where :math:`s_j^2` is the mean squared error of the stack on the held-out cells
        of the column; the error in all columns counts as ten of them.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, whether `fit` has seen them or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            0 in observed cells. NaN in columns that are not numbers, and in missing
            cells if no cells could be held out.
        """
        check_is_fitted(self)
        std = self._deviations(self._read(X, reset=False))
        return std if self._table is None else self._table.deviations(std)

    def predict_interval(
        self, X: Any, level: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that contain a share ``level`` of the missing cells.

        The half width is the deviation, see `predict_std`, times a quantile of the
        errors on held-out cells in units of their deviations. The share holds on
        average over cells that are missing like these, not for single cells.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_samples, n_features)
            Rows, whether `fit` has seen them or not.
        level : float in (0, 1), default=0.9
            Share of the missing cells.

        Returns
        -------
        low : ndarray of shape (n_samples, n_features)
        high : ndarray of shape (n_samples, n_features)
            The interval of an observed cell is its value. With ``like_observed``, the
            bounds are rounded and clipped like the completion. NaN as in `predict_std`.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        cells = self._read(X, reset=False)
        half = self._spread.quantile(level) * self._deviations(cells)
        center = np.where(np.isnan(cells), self._model_values(cells), cells)
        half[~np.isnan(cells)] = 0.0
        return self._bound(center - half), self._bound(center + half)

    def _deviations(self, cells: np.ndarray) -> np.ndarray:
        """Standard deviations in the units of the matrix; 0 in observed cells."""
        weights = list(self.column_weights_.values())
        variance = np.zeros(cells.shape)
        position = self._rows.find(cells)
        known = position >= 0
        if known.any():
            scaled = standardized(self._rows.cells, self._scaling)
            whole = variance_of(self.completers_, weights, scaled, reconstruction)
            variance[known] = whole[position[known]]
        if not known.all():
            scaled = standardized(cells[~known], self._scaling)
            variance[~known] = variance_of(
                self.completers_, weights, scaled, own_values
            )
        std = self._spread.deviations(variance) * self._scaling.scale.numpy()
        return np.where(np.isnan(cells), std, 0.0)

    def _bound(self, matrix: np.ndarray) -> np.ndarray:
        if self._like is not None:
            matrix = self._like.apply(matrix)
        return matrix if self._table is None else self._table.numbers(matrix)

    @property
    def leaderboard_(self) -> Any:
        """The candidates and their errors, see the attributes of the class."""
        check_is_fitted(self)
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "leaderboard_ needs pandas: pip install pandas."
            ) from error
        return pandas.DataFrame(self._leaderboard)
