"""Automatic choice of a completer on held-out cells."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skmc import patterns
from skmc.base import BaseCompleter, CompleterTags, Outcome, Priors, resolve_device
from skmc.cells import Entries, Observed, Scaling
from skmc.completers._candidates import Candidate, Search, Trial, family
from skmc.completers.mean import MeanCompleter
from skmc.linalg import seed_of
from skmc.new_rows import RowIndex

ENOUGH_HELD_OUT = 500  # cells; if a draw has fewer, more parts are drawn
MAX_PARTS = 5


class AutoCompleter(BaseCompleter):
    r"""Compare completers on held-out cells, in order of cost, and keep the best.

    A part of the observed cells is held out in the pattern of the missing ones
    (`skmc.patterns.like_missing`). Each candidate is fitted to the others and judged by
    its mean error on those. Then the best candidate is fitted to all observed cells, or
    a stack of a few:

    .. math::

        X = \sum_k w_k X_k, \qquad w_k \ge 0, \qquad \sum_k w_k = 1

    The weights are the least-squares solution on the held-out cells. The stack is kept
    only if its mean loss, on held-out cells that were not used for its weights, is
    below that of the best single candidate by a standard error or by a hundredth. If
    the errors of several candidates are within a hundredth of the lowest, and their
    differences within two standard errors, the cheapest is chosen. Column means are
    chosen unless another candidate is better by more than two standard errors.

    Parameters
    ----------
    candidates : "auto", sequence of str, or mapping of str to estimator, default="auto"
        "auto" depends on the matrix:

        - always column means, `KNNCompleter`, `SVDCompleter`, `IALMCompleter`,
          `NCARLCompleter`, `TNNRCompleter`, `SoftImputeCompleter` and `AIRCompleter`;
        - up to 60 columns, `sklearn.impute.IterativeImputer` ("chained, linear",
          "chained, few trees" and "chained, trees");
        - where neighboring rows and columns are similar, as in pictures,
          `DMFCompleter` with total variation and `PatchCNNCompleter`;
        - with less than 35 % of the cells observed, `FactorizationCompleter` and
          `BayesianFactorizationCompleter`.

        A sequence selects some of these by name ("means", "KNN", "SVD" ..., see
        ``leaderboard_``). A mapping holds completers or scikit-learn imputers, which
        are tried in its order; put the cheapest first.
    max_time : float > 0 or None, default=120
        Time limit in seconds; None sets no limits. Costs of "auto" are estimated from
        the shape and corrected by measured times. A candidate is skipped if it would
        exceed the limit, or if all trials together would take more than about 3 times
        what the best candidate alone takes. The first twentieth of ``max_time`` is
        exempt from the second rule. If there is no time to fit the chosen completers
        again, their fits without the held-out cells are kept. A running fit is not
        interrupted.
    metric : {"mae", "rmse"}, default="mae"
        The error to minimize: mean absolute error, as in `score`, or root mean square
        error.
    max_members : int >= 1, default=3
        Largest number of completers in a stack; 1 keeps the best candidate alone.
    validation_fraction : float in (0, 1), default=0.1
        Approximate share of the observed cells that is held out. If these are fewer
        than 500, they are drawn up to five times, and all draws are used to judge.
    {device}
        Estimators in a mapping use their own.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out cells, and seeds all candidates except those of a mapping.
    {reading}

    Attributes
    ----------
    leaderboard_ : pandas.DataFrame
        A row for each candidate, the best first: "candidate"; "status", which also says
        why a candidate was not tried or how it failed; "error" on the held-out cells;
        "behind", by how much its mean loss exceeds that of the best, and "std_error" of
        this difference (the cells of a row count as one; the loss of "rmse" is the
        squared error); "weight" in the completion; "seconds"; "warnings", their number.
        Computed at each access; needs pandas.
    verdict_ : str
        A summary of the leaderboard in a sentence or two.
    weights_ : dict of str to float
        Weights of the chosen completers.
    completers_ : dict of str to estimator
        The chosen completers, fitted.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell. Imputers of scikit-learn predict no values for
        observed cells; they count with the observed values.
    {input}

    Notes
    -----
    If the columns have different units (`skmc.cells.Scaling.of`), they are standardized
    before any fit, and errors are in standard deviations of the columns. A matrix of
    one unit is not scaled. The candidates that are tried depend on the clock only if
    ``max_time`` is short. After an interruption the best so far is kept. The matrix is
    made dense. `skmc.persistence.save` stores the completer unless scikit-learn's
    imputers are among the chosen; pickle always does.

    References
    ----------
    Wolpert. Stacked generalization. Neural Networks 5 (1992). -- Breiman. Stacked
    regressions. Machine Learning 24 (1996). The order, the limits of cost and the rule
    for ties are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import AutoCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.outer(rng.rand(30), rng.rand(20))
    >>> X[11, 9] = np.nan
    >>> completer = AutoCompleter(["means", "KNN", "SVD"], random_state=0).fit(X)
    >>> completer.verdict_.split(":")[0]
    'SVD is the best of 3 candidates'
    >>> completer = completer.fit(rng.randn(60, 8))
    >>> completer.verdict_
    'No candidate is better than column means (3 compared).'
    """

    completer_tags = CompleterTags(recovers=0.05)
    _parameter_constraints: ClassVar[dict] = {
        "candidates": [StrOptions({"auto"}), Mapping, "array-like"],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "metric": [StrOptions({"mae", "rmse"})],
        "max_members": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        max_time: float | None = 120.0,
        metric: Literal["mae", "rmse"] = "mae",
        max_members: int = 3,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.candidates = candidates
        self.max_time = max_time
        self.metric = metric
        self.max_members = max_members
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _fit_cells(self, cells: np.ndarray, priors: Priors, y: Any = None) -> Outcome:
        device, seed = resolve_device(self.device), seed_of(self.random_state)
        units = Units.of(cells)
        scaled = units.standardise(cells)
        candidates = self._candidates(scaled, seed, device)
        search = self._search(scaled, seed)
        if search.parts:
            search.run(candidates)
            if not search.judged:
                if search.interrupted:
                    raise KeyboardInterrupt
                raise ValueError(_all_failed(search))
            weights = search.choose(self.max_members)
        else:
            search.trials = [Trial(*first) for first in candidates]
            weights = {_first_that_fits(search.trials, scaled).name: 1.0}
        chosen = {t.name: t for t in search.trials if t.name in weights}
        completers = {n: self._final(chosen[n], search, scaled) for n in weights}
        stack = Stack(completers, weights, units)
        whole = priors.fill(cells, stack.combined(scaled, _reconstruction))
        attributes = {
            "weights_": weights,
            "completers_": completers,
            "verdict_": _verdict(search, weights),
            "reconstruction_": whole.astype(cells.dtype),
            "_leaderboard": _leaderboard(search, weights),
            "_units": units,
            "_rows": RowIndex(cells),
        }
        return Outcome(attributes, interrupted=search.interrupted)

    def _candidates(self, scaled: Any, seed: int, device: Any) -> list[Candidate]:
        if isinstance(self.candidates, Mapping):
            found = [Candidate(*item) for item in self.candidates.items()]
        else:
            found = family(scaled, seed, device)
            if not isinstance(self.candidates, str):
                wanted, known = list(self.candidates), [c.name for c in found]
                if unknown := [name for name in wanted if name not in known]:
                    raise ValueError(
                        f"candidates contains {unknown[0]!r}; for a matrix of shape "
                        f"{scaled.shape} the names are {known}. Pass other estimators "
                        "in a mapping of names to estimators."
                    )
                found = [c for c in found if c.name in wanted]
        if not found:
            raise ValueError("candidates is empty; give at least one.")
        return found

    def _search(self, scaled: np.ndarray, seed: int) -> Search:
        cells, n_parts = Entries(scaled), 1
        parts: list[tuple[Entries, Entries]] = []
        while len(parts) < n_parts:
            hidden = patterns.like_missing(
                scaled, self.validation_fraction, random_state=seed + len(parts)
            )
            if not (n_hidden := hidden.sum()):
                break
            n_parts = min(MAX_PARTS, math.ceil(ENOUGH_HELD_OUT / n_hidden))
            out = hidden[cells.rows, cells.cols]
            parts.append((cells[~out], cells[out]))
        return Search(parts, self.metric, self.max_time)

    def _final(self, trial: Trial, search: Search, scaled: np.ndarray) -> Any:
        """The estimator fitted to all cells, if there is time for it."""
        if trial.fitted is not None and (
            search.interrupted or trial.seconds > search.seconds_left
        ):
            return trial.fitted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # counted in the leaderboard
            try:
                return clone(trial.estimator).fit(scaled)
            except KeyboardInterrupt:
                if trial.fitted is None:
                    raise
                search.interrupted = True
                return trial.fitted
            except Exception:
                if trial.fitted is None:
                    raise
                return trial.fitted

    @property
    def _stack(self) -> Stack:
        return Stack(self.completers_, self.weights_, self._units)

    def _complete_rows(self, cells: np.ndarray) -> np.ndarray:
        position = self._rows.find(cells)
        completed = self.reconstruction_[position].astype(float)
        new = (position < 0) & ~np.isnan(cells).all(1)
        if new.any():
            scaled = self._units.standardise(cells[new])
            completed[new] = self._stack.combined(scaled, _own_values)
        return completed

    def _complete_hidden(self, cells: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        def values(completer: Any, scaled: Any) -> Any:
            if isinstance(completer, BaseCompleter):
                return completer._complete_hidden(scaled, hidden)
            return np.asarray(completer.transform(np.where(hidden, np.nan, scaled)))

        return self._stack.combined(self._units.standardise(cells), values)

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


@dataclass(frozen=True)
class Units:
    """Means and deviations of columns with different units, otherwise zero and one.

    Parameters
    ----------
    shift, scale : ndarray of shape (1, n_cols) or (1, 1)
        ``shift`` is subtracted from the cells, which are then divided by ``scale``.
    """

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, cells: np.ndarray) -> Units:
        """Measure the units of the observed cells.

        Parameters
        ----------
        cells : ndarray of shape (n_rows, n_cols)
            NaN where a cell is missing.

        Returns
        -------
        Units
        """
        values = torch.from_numpy(np.array(cells, order="C"))
        data = Observed(values, ~torch.isnan(values))
        scaling = Scaling.of(data, "auto")
        shift, scale = scaling.shift.double().numpy(), scaling.scale.double().numpy()
        if (scale == scale[:, :1]).all() and (shift == shift[:, :1]).all():
            return cls(np.zeros((1, 1)), np.ones((1, 1)))
        return cls(shift, scale)

    def standardise(self, cells: np.ndarray) -> np.ndarray:
        """Convert cells to these units.

        Parameters
        ----------
        cells : ndarray of shape (k, n_cols)
            Rows in the data's units.

        Returns
        -------
        ndarray of shape (k, n_cols)
        """
        unit = np.where(self.scale > 0, self.scale, 1)
        shifted = np.where(self.scale > 0, cells - self.shift, 0 * cells)
        return (shifted / unit).astype(cells.dtype)


@dataclass(frozen=True)
class Stack:
    """A weighted mean of completers.

    Parameters
    ----------
    completers : dict of {str: estimator}
        Completers fitted to scaled cells.
    weights : dict of {str: float}
        Weight of each completer.
    units : Units
        Units of the cells.
    """

    completers: dict[str, Any]
    weights: dict[str, float]
    units: Units

    def combined(
        self, scaled: np.ndarray, values: Callable[[Any, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Average ``values(completer, scaled)`` and return to the data's units.

        Parameters
        ----------
        scaled : ndarray of shape (k, n_cols)
            Rows in the stack's units.
        values : callable
            Returns the values of one completer for these rows.

        Returns
        -------
        ndarray of shape (k, n_cols)
        """
        total = sum(
            weight * values(self.completers[name], scaled).astype(float)
            for name, weight in self.weights.items()
        )
        return total * self.units.scale + self.units.shift


def _first_that_fits(trials: list[Trial], scaled: np.ndarray) -> Trial:
    """The first candidate that can be fitted, if no cells can be held out."""
    for trial in trials:
        try:
            fitted = clone(trial.estimator).fit(scaled)
            if np.shape(_reconstruction(fitted, scaled)) != scaled.shape:
                raise ValueError("the completed matrix has another shape")
        except Exception as failure:
            trial.status = f"failed: {failure!r}"
        else:
            return trial
    said = "; ".join(f"{t.name} {t.status}" for t in trials)
    raise ValueError(f"None of the candidates could be fitted: {said}.")


def _reconstruction(completer: Any, scaled: np.ndarray) -> np.ndarray:
    """The completer's values for the fitted matrix."""
    if isinstance(completer, BaseCompleter):
        return completer.reconstruction_
    return np.asarray(completer.transform(scaled))


def _own_values(completer: Any, scaled: np.ndarray) -> np.ndarray:
    if isinstance(completer, BaseCompleter):
        return completer._complete_rows(scaled)
    return np.asarray(completer.transform(scaled))


def _all_failed(search: Search) -> str:
    said = "; ".join(f"{t.name} {t.status}" for t in search.trials)
    return f"none of the candidates could be fitted: {said}."


def _leaderboard(search: Search, weights: dict[str, float]) -> list[dict[str, Any]]:
    judged = search.judged
    others = [t for t in search.trials if not len(t.losses)]
    rows = []
    for trial in [*judged, *others]:
        weight = weights.get(trial.name, 0.0)
        behind = trial.losses - judged[0].losses if len(trial.losses) else None
        status = trial.status
        if weight:
            status = "chosen" if len(weights) == 1 else "in the stack"
        rows.append(
            {
                "candidate": trial.name,
                "status": status,
                "error": search.error(trial),
                "behind": np.nan if behind is None else float(behind.mean()),
                "std_error": np.nan if behind is None else search.std_error(behind),
                "weight": weight,
                "seconds": trial.seconds,
                "warnings": trial.n_warnings,
            }
        )
    return rows


def _verdict(search: Search, weights: dict[str, float]) -> str:
    judged = search.judged
    if not judged:
        name = next(iter(weights))
        return f"Too few cells to hold any out: the error of {name} is unknown."
    best, n = judged[0], len(judged)
    means = next((t for t in judged if isinstance(t.estimator, MeanCompleter)), None)
    if len(weights) > 1:
        parts = ", ".join(f"{w:.0%} {name}" for name, w in weights.items())
        said = f"A stack of {parts} is better than each of {n} candidates alone"
    elif means is not None and means.name in weights:
        said = f"No candidate is better than column means ({n} compared)"
        if best is not means:
            share = 1 - search.error(best) / search.error(means)
            said = (
                f"No candidate is significantly better than column means ({n} "
                f"compared): the held-out error of the best, {best.name}, is "
                f"{share:.1%} lower"
            )
    else:
        (name,) = weights
        said = f"{name} is the best of {n} candidates"
        if name != best.name:
            said = (
                f"{name} is nearly as good as the best of {n} candidates, {best.name}, "
                "and cheaper"
            )
        if means is not None:
            share = search.error(best) / (search.error(means) or 1.0)
            whose = "its" if name == best.name else "the lowest"
            said += f": {whose} held-out error is {share:.1%} of that of column means"
    untried = sum(t.status.startswith("not tried") for t in search.trials)
    failed = sum(t.status.startswith("failed") for t in search.trials)
    for number, what in ((untried, "not tried to save time"), (failed, "failed")):
        if number:
            said += f"; {number} {what}"
    return said + "."
