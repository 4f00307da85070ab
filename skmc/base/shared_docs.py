"""Documentation of the parameters and attributes that many estimators share."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])
# Type and text of one entry, or the names of several entries.
Description = tuple[str, str] | list[str]

DESCRIPTIONS: dict[str, Description] = {
    "X": (
        "masked array, array or list with NaN, DataFrame, SciPy sparse matrix, "
        "tensor or `Entries`, of shape (n_samples, n_features)",
        """\
        Matrix to complete. `skmc.cells.to_cells` defines which cells are missing.""",
    ),
    "y": (
        "Ignored",
        """\
        Present for pipelines, and passed on to scikit-learn's callbacks.""",
    ),
    "cell_weight": (
        "array of shape (n_samples, n_features) or (n_cells,), optional",
        """\
        How often each cell counts, >= 0: 2 is the cell twice, 0 hides it. One number
        for each cell of `Entries`, otherwise a matrix of the shape of ``X``.
        `transform` counts each cell of a new row once. What scikit-learn calls
        ``sample_weight`` belongs to rows.""",
    ),
    "row_features": (
        "array, DataFrame, tensor or SciPy sparse matrix of shape (n_samples, p), "
        "optional",
        """\
        Features of the rows. If ``X`` has identifiers, the lines of a DataFrame are
        found by its index. Identifiers that only it has are rows without a cell.""",
    ),
    "col_features": (
        "as row_features, of shape (n_features, p), optional",
        """\
        Features of the columns.""",
    ),
    "row_graph": (
        "array, DataFrame or SciPy sparse matrix of shape (n_samples, n_samples), "
        "optional",
        """\
        Symmetric weights >= 0 between rows that resemble each other. The diagonal is
        ignored. The index and columns of a DataFrame are used as for features.""",
    ),
    "col_graph": (
        "as row_graph, of shape (n_features, n_features), optional",
        """\
        Weights between columns.""",
    ),
    "early_stopping": (
        "bool",
        """\
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.""",
    ),
    "validation_fraction": (
        "float in (0, 1)",
        """\
        Share of the observed cells that ``early_stopping`` holds out.""",
    ),
    "n_iter_no_change": (
        "int >= 1",
        """\
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.""",
    ),
    "max_time": (
        "float > 0 or None",
        """\
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.""",
    ),
    "warm_start": (
        "bool",
        """\
        Whether to start from the solution of the last `fit`, whose matrix must have had
        the same shape.""",
    ),
    "scaling": (
        '{"auto", "columns", "global"} or None',
        """\
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.""",
    ),
    "device": (
        "str or torch.device",
        """\
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.""",
    ),
    "missing_values": (
        "float",
        """\
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.""",
    ),
    "add_indicator": (
        "bool",
        """\
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.""",
    ),
    "keep_empty_features": (
        "bool",
        """\
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers; in tables with columns that are not numbers, those of words and dates
        stay missing. False drops them.""",
    ),
    "keep_observed": (
        "bool",
        """\
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.""",
    ),
    "like_observed": (
        '{"auto"} or bool',
        """\
        Whether missing cells get values that look like the observed ones: integers are
        whole, decimals have at most as many digits as those of the column, and values
        are within the column's observed range. "auto" is True for tables with columns
        that are not numbers, and False for matrices.""",
    ),
    "min_value": (
        "float, array-like of shape (n_features,), dict of column to float, or None",
        """\
        Smallest value of completed cells and of draws: one for all columns, one for
        each, or by name or position. None, NaN and columns that a dict does not list
        have no bound. Try 0 for amounts and counts. Completions are clipped, and draws
        are from the distribution between the bounds.""",
    ),
    "max_value": (
        "as min_value",
        """\
        Largest value, at least ``min_value``.""",
    ),
    "reconstruction_": (
        "ndarray of shape (n_samples, n_features)",
        """\
        The model's value of every cell.""",
    ),
    "n_iter_": (
        "int",
        """\
        Number of iterations.""",
    ),
    "status_": (
        '{"converged", "stopped", "max_iter", "max_time", "diverged", "interrupted"}',
        """\
        Reason why the fit ended.""",
    ),
    "n_features_in_": (
        "int",
        """\
        Number of columns seen in `fit`.""",
    ),
    "feature_names_in_": (
        "ndarray of str",
        """\
        Names of the columns, if the input has names.""",
    ),
    "indicator_": (
        "MissingIndicator or None",
        """\
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.""",
    ),
    "reading": [
        "missing_values",
        "add_indicator",
        "keep_empty_features",
        "keep_observed",
    ],
    "bounds": ["min_value", "max_value"],
    "input": ["n_features_in_", "feature_names_in_", "indicator_"],
    "solve": [
        *("n_iter_", "status_", "n_features_in_", "feature_names_in_", "indicator_"),
    ],
}
# A line "{name}", and the lines indented below it, which continue the description.
PLACE = re.compile(r"^\{(\w+)\}\n((?:    .*\n)*)", re.MULTILINE)


def documented(estimator: C, /, **descriptions: Description) -> C:
    """Fill shared descriptions into the docstring of a class or function.

    Parameters
    ----------
    estimator : type or function
        Object whose docstring has lines such as ``{device}``, ``{reading}`` for the
        parameters that concern input and output, or ``{solve}`` for the attributes of
        a solve. Defaults are read from the signature.
    **descriptions : (type, text) or list of str
        Further descriptions by name.

    Returns
    -------
    type or function
        The same object.
    """
    if estimator.__doc__ is None:  # python -OO
        return estimator
    parameters = inspect.signature(estimator).parameters
    known = DESCRIPTIONS | descriptions

    def described(name: str) -> str:
        entry = known[name]
        if isinstance(entry, list):
            return "".join(map(described, entry))
        kind, text = entry
        if name in parameters and not kind.endswith(("optional", "Ignored")):
            kind += _default(parameters[name].default)
        lines = textwrap.indent(textwrap.dedent(text), "    ")
        return f"{name} : {kind}\n{lines}\n"

    def filled(place: re.Match[str]) -> str:
        return described(place[1]) + place[2]

    # Since Python 3.13, docstrings have no indentation.
    doc = inspect.cleandoc(estimator.__doc__) + "\n"
    estimator.__doc__ = PLACE.sub(filled, doc)
    return estimator


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return ""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return f", default={'numpy.nan' if shown == 'nan' else shown}"
