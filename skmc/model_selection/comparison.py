"""Which completer is best on this matrix, and is it by more than chance?"""

from __future__ import annotations

import importlib
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import check_cv

from skmc.cells import Entries
from skmc.model_selection.splitters import CellSplit

Metric = Callable[[np.ndarray, np.ndarray, float], float]


def _nmae(found: np.ndarray, truth: np.ndarray, spread: float) -> float:
    return float(np.abs(found - truth).mean() / spread)


def _mae(found: np.ndarray, truth: np.ndarray, spread: float) -> float:
    return float(np.abs(found - truth).mean())


def _rmse(found: np.ndarray, truth: np.ndarray, spread: float) -> float:
    return float(np.sqrt(np.square(found - truth).mean()))


def _relative_error(found: np.ndarray, truth: np.ndarray, spread: float) -> float:
    return float(np.linalg.norm(found - truth) / (np.linalg.norm(truth) or 1.0))


METRICS: dict[str, Metric] = {
    "nmae": _nmae,
    "mae": _mae,
    "rmse": _rmse,
    "relative_error": _relative_error,
}


def compare(
    completers: Mapping[str, Any] | Sequence[Any],
    X: Any,
    *,
    cv: int = 5,
    patterns: Sequence[Any] = ("mcar",),
    metrics: Sequence[str] = ("nmae",),
    random_state=0,
    n_jobs: int | None = None,
    on_fit: Callable[[int, int], Any] | None = None,
):
    """Fit completers to the same matrix with the same cells held out.

    Parameters
    ----------
    completers : mapping of str to estimator, or sequence of estimators
        Completers, or any imputer of scikit-learn: what has no ``predict_entries``
        is asked for ``fit_transform`` of an array with NaN.
    X : matrix of any container, or `Entries`
        The observed cells, of which some are held out.
    cv : int >= 1, default=5
        Splits of each pattern.
    patterns : sequence, default=("mcar",)
        Names for `CellSplit`, which holds out a fifth of the cells, or splitters of
        `Entries`.
    metrics : sequence of {"nmae", "mae", "rmse", "relative_error"}
        As in `skmc.metrics`, over the held-out cells; "nmae" divides by the range of
        all observed values. Lower is better.
    random_state : int, default=0
        Draws the held-out cells; the completers have their own.
    n_jobs : int or None, default=None
        Fits at a time, as in `joblib.Parallel`; seconds and memory are measured best
        with one.
    on_fit : callable or None, default=None
        Told after each fit how many are done and how many there are.

    Returns
    -------
    pandas.DataFrame
        One row for each pattern, metric and completer, the best ones first:

        - "mean" and "std_error" over the splits; NaN where a fit failed;
        - "p_value" of a two-sided test of Nadeau and Bengio (2003) against the best of
          its pattern and metric, which takes into account that training cells of
          splits overlap: below 0.05, say, the difference is not by chance. NaN for the
          best itself and with less than two splits;
        - "seconds" of fitting and predicting, mean over splits;
        - "memory_mib", the peak of the process above what it had before, largest over
          splits; NaN where the system (other than Linux) does not tell;
        - "warnings", how many there were in all splits, and "error", the first one.

    Raises
    ------
    ValueError
        No completer, or an unknown pattern or metric.
    ImportError
        pandas is not installed.

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
    named = _named(completers)
    unknown = [m for m in metrics if m not in METRICS]
    if unknown or not metrics:
        raise ValueError(f"metrics must be of {tuple(METRICS)}, got {list(metrics)}.")
    cells = X if isinstance(X, Entries) else Entries(X)
    spread = float(np.ptp(cells.values)) or 1.0
    jobs, labels = [], []
    for pattern in patterns:
        if isinstance(pattern, str):
            pattern = CellSplit(pattern, cv, random_state=random_state)
        splitter = check_cv(pattern)
        name = getattr(pattern, "pattern", type(pattern).__name__)
        for train, test in splitter.split(cells):
            split = cells[train], cells[test]
            for title, completer in named.items():
                labels.append((name, title, len(test) / len(train)))
                jobs.append((completer, *split))
    fits: list[dict] = []
    # Not all backends can give results as they come.
    wish = "list" if on_fit is None else "generator"
    for fit in Parallel(n_jobs=n_jobs, return_as=wish)(
        delayed(_fit)(*job, spread, tuple(metrics)) for job in jobs
    ):
        fits.append(fit)
        if on_fit is not None:
            on_fit(len(fits), len(jobs))
    rows = []
    for pattern in dict.fromkeys(name for name, *_ in labels):
        for metric in metrics:
            rows += _summary(pattern, metric, labels, fits)
    return pandas.DataFrame(rows)


def _named(completers: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(completers, Mapping):
        named = dict(completers)
    else:
        named, count = {}, Counter[str]()
        for completer in completers:
            title = type(completer).__name__
            count[title] += 1
            named[title if count[title] == 1 else f"{title} {count[title]}"] = completer
    if not named:
        raise ValueError("completers is empty; give at least one.")
    return named


def _fit(completer, train: Entries, test: Entries, spread: float, metrics) -> dict:
    """Scores, seconds and MiB of one fit; what went wrong if it did."""
    before = _start_peak()
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = predict_cells(clone(completer), train, test)
            error = None
        except Exception as failure:  # a method that fails is a result, too
            found, error = np.full(len(test), np.nan), repr(failure)
    return {
        "seconds": time.perf_counter() - start,
        "memory_mib": _peak() - before,
        "warnings": len(caught),
        "error": error,
        **{name: METRICS[name](found, test.values, spread) for name in metrics},
    }


def predict_cells(completer, train: Entries, test: Entries) -> np.ndarray:
    """Fit to some cells of a matrix, and say what others are.

    Parameters
    ----------
    completer : completer, or imputer of scikit-learn
        Is fitted.
    train : Entries
        The cells to fit to.
    test : Entries
        Cells of the same matrix, of which the values are not looked at.

    Returns
    -------
    ndarray of shape (len(test),)
        The completer's values there.
    """
    if hasattr(completer, "predict_entries"):
        return completer.fit(train).predict_entries(test.rows, test.cols)
    completed = np.asarray(completer.fit_transform(train.to_cells()))
    if completed.shape != train.matrix_shape:
        raise ValueError(
            f"{type(completer).__name__} made a matrix of shape {completed.shape} out "
            f"of {train.matrix_shape}; let it keep empty columns, and add none."
        )
    return completed[test.rows, test.cols]


def _summary(pattern: str, metric: str, labels: list, fits: list) -> list[dict]:
    of: dict[str, list] = {}
    for (name, title, ratio), fit in zip(labels, fits, strict=True):
        if name == pattern:
            of.setdefault(title, []).append((fit, ratio))
    scores = {t: np.array([fit[metric] for fit, _ in runs]) for t, runs in of.items()}
    means = {title: float(values.mean()) for title, values in scores.items()}
    order = sorted(means, key=lambda t: (math.isnan(means[t]), means[t]))
    rows = []
    for title in order:
        runs, values = of[title], scores[title]
        ratio = float(np.mean([share for _, share in runs]))
        errors = [fit["error"] for fit, _ in runs if fit["error"]]
        n = len(values)
        rows.append(
            {
                "pattern": pattern,
                "metric": metric,
                "completer": title,
                "mean": means[title],
                "std_error": float(values.std(ddof=1) / n**0.5) if n > 1 else math.nan,
                "p_value": _corrected_test(values - scores[order[0]], ratio),
                "seconds": float(np.mean([fit["seconds"] for fit, _ in runs])),
                "memory_mib": float(np.max([fit["memory_mib"] for fit, _ in runs])),
                "warnings": sum(fit["warnings"] for fit, _ in runs),
                "error": errors[0] if errors else None,
            }
        )
    return rows


def _corrected_test(differences: np.ndarray, ratio: float) -> float:
    """Nadeau and Bengio's t-test; ``ratio`` is of test to training cells."""
    n = len(differences)
    if n < 2 or not differences.any():
        return math.nan
    variance = differences.var(ddof=1)
    if variance == 0:
        return 0.0
    t = differences.mean() / math.sqrt((1 / n + ratio) * variance)
    return float(2 * stats.t.sf(abs(t), n - 1))


def _start_peak() -> float:
    """Forget the highest memory so far; MiB in use now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return math.nan
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(found[0]) / 1024 if found else math.nan


class ComparisonDisplay:
    """A comparison as points with error bars, a panel for each pattern and metric.

    Parameters
    ----------
    table : DataFrame
        Of `compare`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_patterns, n_metrics)
    """

    def __init__(self, table):
        self.table = table

    @classmethod
    def from_completers(cls, completers, X, **params) -> ComparisonDisplay:
        """Compare completers and draw the outcome.

        Parameters
        ----------
        completers : mapping of str to estimator, or sequence of estimators
            As for `compare`.
        X : matrix of any container, or `Entries`
            As for `compare`.
        **params : dict
            For `compare`.

        Returns
        -------
        ComparisonDisplay
            Drawn.
        """
        return cls(compare(completers, X, **params)).plot()

    def plot(self) -> ComparisonDisplay:
        """Draw it; filled points are as good as the best (p of 0.05 or more).

        Returns
        -------
        ComparisonDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        table = self.table
        patterns, metrics = table["pattern"].unique(), table["metric"].unique()
        titles = list(dict.fromkeys(table["completer"]))
        self.figure_, self.axes_ = plt.subplots(
            len(patterns),
            len(metrics),
            figsize=(4.5 * len(metrics), 1 + 0.35 * len(titles) * len(patterns)),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for row, pattern in zip(self.axes_, patterns, strict=True):
            for ax, metric in zip(row, metrics, strict=True):
                part = table[table["pattern"].eq(pattern) & table["metric"].eq(metric)]
                worse = part["p_value"].lt(0.05)
                for chosen, fill in ((~worse, "full"), (worse, "none")):
                    ax.errorbar(
                        part["mean"][chosen],
                        [titles.index(t) for t in part["completer"][chosen]],
                        xerr=part["std_error"][chosen],
                        fmt="o",
                        fillstyle=fill,
                        color="tab:blue",
                    )
                ax.set(title=f"{pattern}: {metric}", yticks=range(len(titles)))
                ax.set_yticklabels(titles)
                ax.grid(axis="x", alpha=0.3)
            row[0].set_ylim(len(titles) - 0.5, -0.5)
        return self
