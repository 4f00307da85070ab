"""Comparison of completers on one matrix, with a test of significance."""

from __future__ import annotations

import importlib
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skmc.base import BaseCompleter, Estimator
from skmc.cells import Container, Entries
from skmc.linalg import Seed, seed_of
from skmc.model_selection.drawn import (
    OF_ALL_CELLS,
    DrawScore,
    deviations,
    metrics_of_draws,
)
from skmc.model_selection.memory import memory_of, start_peak
from skmc.model_selection.splitters import CellSplit, CountSplit
from skmc.parameters import listed
from skmc.tables import Source, cell_errors, completed_by, source_of

METRICS = ("nmae", "mae", "rmse", "relative_error")
METRICS_OF_COUNTS = {"rmse", "relative_error"}
Judge = Callable[[BaseCompleter, Entries, Entries], dict[str, float]]


def compare(
    completers: Mapping[str, Any] | Sequence[Any] | Any,
    X: Container,
    *,
    cv: int = 5,
    patterns: Sequence[Any] | Any = ("mcar",),
    metrics: Sequence[str] | str = ("nmae",),
    draws: int | None = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
    on_fit: Callable[[int, int], Any] | None = None,
) -> Any:
    """Fit completers to the same matrix with the same cells held out.

    Parameters
    ----------
    completers : mapping of str to estimator, sequence of estimators, or estimator
        Completers, or imputers of scikit-learn; `skmc.completers.candidates_for` lists
        those that `AutoCompleter` tries. Estimators without ``predict_entries`` are
        fitted by ``fit_transform`` to an array with NaN.
    X : matrix of any container, or `Entries`, or table
        Observed cells, some of which are held out. A data frame or array with columns
        that are not numbers is a table, which `MixedCompleter` takes, around any
        completer. The parameters of the first `MixedCompleter` define the columns of
        categories and levels, and the marks of missing cells.
    cv : int >= 1, default=5
        Number of splits for each pattern.
    patterns : str, splitter or sequence of them, default=("mcar",)
        Splitters of `Entries`, or names of patterns for `CellSplit`, which holds out a
        fifth of the cells. `CountSplit` holds out molecules of counts instead.
    metrics : str or sequence of str, default=("nmae",)
        "nmae", "mae", "rmse" or "relative_error": errors over the held-out cells as in
        `skmc.metrics`, in the units of ``X``: standardize columns of different units.
        "nmae" divides by the range of all observed values. Lower is
        better. Tables have only "nmae", the mean
        error of cells as in `MixedCompleter.score`. A cell that is left missing has
        the error 1.
    draws : int >= 1 or None, default=None
        Number of draws to compare by instead of completions. The metric is then "crps",
        see `skmc.metrics.crps`: the mean over the held-out cells, in standard
        deviations of their columns. Categories are not scored. Completers without the
        method ``sample`` are not fitted; "error" says so. ``metrics`` can also have
        "energy_i_score", see `skmc.model_selection.energy_i_score`. It is computed
        once, holds out no cells ("pattern" is "none"), and takes no tables.
    random_state : int, RandomState instance or None, default=0
        Source of the random numbers that draw the held-out cells, and of the draws.
        Completers use their own ``random_state`` in fits.
    n_jobs : int or None, default=None
        Number of parallel fits, as in `joblib.Parallel`. Run times and memory are
        measured most accurately with one.
    on_fit : callable or None, default=None
        Function that is called after each fit with the number of fits done and the
        number of all fits.

    Returns
    -------
    pandas.DataFrame
        One row for each pattern, metric and completer, the best completers first. The
        first columns are printed on terminals of any width. The columns are

        - "mean" and "std_error" of the metric over the splits; NaN if a fit failed;
        - "p_value" of a two-sided test against the best completer of the same pattern
          and metric. The test of Nadeau and Bengio (2003) accounts for the overlap of
          training cells between splits. A difference is statistically significant if
          the value is below 0.05, say. NaN for the best completer, and for a single
          split;
        - "seconds" of fitting and predicting, the mean over splits;
        - "memory_mib", the increase of the peak memory of the process, the maximum over
          splits; NaN on systems other than Linux;
        - "warnings", their number in all splits, and "messages", the list of their
          texts without repetitions;
        - "error", the first error, or None.

    Raises
    ------
    ValueError
        There is no completer, a pattern or metric is unknown, or ``X`` is a table and
        has no such metric. `CountSplit` has "rmse" and "relative_error" alone. With
        ``draws``, no completer has draws, or a metric is one of completions.
    ImportError
        pandas is not installed.

    See Also
    --------
    ComparisonDisplay : Plots the comparison.
    skmc.AutoCompleter : Combines completers instead of comparing them.

    References
    ----------
    Nadeau, Bengio. Inference for the generalization error. Machine Learning 52 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import MeanCompleter, SVDCompleter
    >>> from skmc.model_selection import compare
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> table = compare([MeanCompleter(), SVDCompleter(rank=1)], X, cv=3)
    >>> table[["completer", "metric"]].to_numpy().tolist()
    [['SVDCompleter', 'nmae'], ['MeanCompleter', 'nmae']]
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("compare needs pandas: pip install pandas.") from error
    named, metrics = _named(completers), listed(metrics)
    if draws is not None:
        metrics = metrics_of_draws(named, metrics, draws)
    elif not metrics or not set(metrics) <= set(METRICS):
        raise ValueError(f"metrics must be among {METRICS}, got {list(metrics)}.")
    cells, source = _cells(X, named, metrics)
    judge: Judge
    if draws is None:
        judge = partial(_errors, float(np.ptp(cells.values)) or 1.0, source)
    else:
        seed = seed_of(check_random_state(random_state))
        judge = DrawScore(draws, seed, deviations(cells), source)
    splits = []
    for pattern in () if set(metrics) == {OF_ALL_CELLS} else listed(patterns):
        if isinstance(pattern, str):
            pattern = CellSplit(pattern, cv, random_state=random_state)
        splitter = check_cv(pattern)
        name = getattr(pattern, "pattern", type(pattern).__name__)
        thinned, ratio = cells, None
        if isinstance(pattern, CountSplit):
            if draws is not None or not set(metrics) <= METRICS_OF_COUNTS:
                raise ValueError(
                    f"CountSplit needs metrics among {sorted(METRICS_OF_COUNTS)}, and "
                    "no draws: other errors of noisy counts are not smallest for "
                    "their means."
                )
            thinned = pattern.thin(cells)
            ratio = pattern.fraction / (1 - pattern.fraction)
        for train, test in splitter.split(thinned):
            splits.append((name, thinned[train], thinned[test], ratio))
    if OF_ALL_CELLS in metrics:
        splits.append(("none", cells, cells[:0], None))
    jobs = list(product(splits, named.items()))
    # Not all backends support generators.
    return_as = "list" if on_fit is None else "generator"
    results = Parallel(n_jobs=n_jobs, return_as=return_as)(
        delayed(_fit)(completer, train, test, judge, metrics)
        for (_, train, test, _), (_, completer) in jobs
    )
    fits = []
    for (split, (title, _)), result in zip(jobs, results, strict=True):
        name, train, test, ratio = split
        ratio = len(test) / len(train) if ratio is None else ratio
        fits.append({"pattern": name, "completer": title, "ratio": ratio, **result})
        if on_fit is not None:
            on_fit(len(fits), len(jobs))
    rows = []
    for pattern, chosen in pandas.DataFrame(fits).groupby("pattern", sort=False):
        for metric in metrics:
            if (metric == OF_ALL_CELLS) != (pattern == "none"):
                continue
            rows += [{"pattern": pattern, **row} for row in _summary(metric, chosen)]
    return importlib.import_module("skmc.model_selection._printed").Comparison(rows)


def _named(completers: Mapping[str, Any] | Sequence[Any] | Any) -> dict[str, Any]:
    if isinstance(completers, Mapping):
        named = dict(completers)
    else:
        named, count = {}, Counter[str]()
        for completer in listed(completers):
            title = type(completer).__name__
            count[title] += 1
            named[title if count[title] == 1 else f"{title} {count[title]}"] = completer
    if not named:
        raise ValueError("completers is empty; give at least one.")
    return named


def _cells(
    X: Container, named: Mapping[str, Any], metrics: Sequence[str]
) -> tuple[Entries, Source | None]:
    """Observed cells of a matrix or table, and the table."""
    if isinstance(X, Entries):
        return X, None
    readers = [c for c in named.values() if isinstance(c, Estimator) and c._reader()]
    if readers:
        # Columns that one of them leaves unchanged, such as groups, are not compared.
        sources = [source_of(X, reader) for reader in readers]
        source = min(sources, key=lambda found: len(found.table.used))
        if not source.table.only_numbers:
            if not set(metrics) <= {"nmae", "crps"}:
                raise ValueError(
                    "X has columns that are not numbers, so metrics must be ['nmae'], "
                    f"or ['crps'] of draws, got {list(metrics)}."
                )
            return Entries.of_matrix(source.numbers), source
    return Entries(X), None


def _fit(
    completer: BaseCompleter,
    train: Entries,
    test: Entries,
    judge: Judge,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """Return errors, run time and memory of one fit, or the exception it raised."""
    before = start_peak()
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores, error = judge(clone(completer), train, test), None
        except Exception as failure:  # the table reports it
            scores, error = dict.fromkeys(metrics, math.nan), repr(failure)
    return {
        "seconds": time.perf_counter() - start,
        "memory_mib": memory_of("VmHWM") - before,
        "messages": [" ".join(str(warning.message).split()) for warning in caught],
        "error": error,
        **scores,
    }


def _errors(
    spread: float,
    source: Source | None,
    completer: BaseCompleter,
    train: Entries,
    test: Entries,
) -> dict[str, float]:
    """Fit a completer, and return the metrics of its errors."""
    if source is not None:
        values = completed_by(completer, source, train.to_cells())[test.rows, test.cols]
        failed = np.isnan(values).all()
        errors = cell_errors(source, test, values)
        return {"nmae": math.nan if failed else float(errors.mean())}
    truth = test.values
    error = predict_cells(completer, train, test) - truth
    mae, norm = np.abs(error).mean(), np.linalg.norm(truth) or 1.0
    return {
        "nmae": float(mae / spread),
        "mae": float(mae),
        "rmse": float(np.sqrt(np.square(error).mean())),
        "relative_error": float(np.linalg.norm(error) / norm),
    }


def predict_cells(
    completer: BaseCompleter, train: Entries, test: Entries, **given: Any
) -> np.ndarray:
    """Fit a completer to some cells of a matrix, and predict other cells."""
    if hasattr(completer, "predict_entries"):
        fitted = completer.fit(train, **given)
        return fitted.predict_entries(*test.labels)
    matrix = np.asarray(completer.fit_transform(train.to_cells(), **given))
    if matrix.shape != train.matrix_shape:
        raise ValueError(
            f"{type(completer).__name__} returned a matrix of shape {matrix.shape} for "
            f"one of shape {train.matrix_shape}; set it to keep empty columns and to "
            "add no columns."
        )
    return matrix[test.rows, test.cols]


def _summary(metric: str, fits: Any) -> list[dict[str, Any]]:
    """Make the rows of the table for the fits of one pattern."""
    runs_of = dict(iter(fits.groupby("completer", sort=False)))
    scores = {title: runs[metric].to_numpy() for title, runs in runs_of.items()}
    means = {title: float(values.mean()) for title, values in scores.items()}
    order = sorted(means, key=lambda t: (math.isnan(means[t]), means[t]))
    rows = []
    for title in order:
        runs, values = runs_of[title], scores[title]
        messages = runs["messages"].sum()
        n = len(values)
        rows.append(
            {
                "metric": metric,
                "completer": title,
                "mean": means[title],
                "std_error": float(values.std(ddof=1) / n**0.5) if n > 1 else math.nan,
                "p_value": _corrected_test(
                    values - scores[order[0]], runs["ratio"].mean()
                ),
                "seconds": runs["seconds"].mean(),
                "memory_mib": runs["memory_mib"].max(skipna=False),
                "warnings": len(messages),
                "messages": list(dict.fromkeys(messages)),
                "error": next(iter(runs["error"].dropna()), None),
            }
        )
    return rows


def _corrected_test(differences: np.ndarray, ratio: float) -> float:
    """Return the p-value of the t-test of Nadeau and Bengio.

    ``ratio`` is the number of test cells, or molecules, divided by that of training.
    """
    n = len(differences)
    if n < 2 or not differences.any():
        return math.nan
    variance = differences.var(ddof=1)
    if variance == 0:
        return 0.0
    t = differences.mean() / math.sqrt((1 / n + ratio) * variance)
    return float(2 * stats.t.sf(abs(t), n - 1))
