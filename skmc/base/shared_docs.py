"""Documentation of the parameters and attributes that many estimators share."""

from __future__ import annotations

import inspect
import re
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])
# The type and the text of one entry, or the names of several entries.
Description = tuple[str, str] | list[str]

DESCRIPTIONS: dict[str, Description] = {
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
        Time limit of `fit` in seconds; the choice of hyper-parameters gets at most half
        of it. When it has passed, the fit ends after the running iteration, with a
        warning. None sets no limit.""",
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
        per column or globally; undone on output. "auto" is "columns" if the columns
        have different units, otherwise "global": see `skmc.cells.Scaling.of`. None
        leaves the data unscaled.""",
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
        Whether to append the columns of `sklearn.impute.MissingIndicator`.""",
    ),
    "keep_empty_features": (
        "bool",
        """\
        Whether to keep columns without an observed cell, filled with the row means.
        False drops them.""",
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
    "reading": [
        "missing_values",
        "add_indicator",
        "keep_empty_features",
        "keep_observed",
    ],
    "input": ["n_features_in_", "feature_names_in_"],
    "solve": ["n_iter_", "status_", "n_features_in_", "feature_names_in_"],
}
# A line "{name}", and the lines indented below it, which continue the description.
PLACE = re.compile(r"^    \{(\w+)\}\n((?:        .*\n)*)", re.MULTILINE)


def documented(estimator: C, /, **descriptions: Description) -> C:
    """Fill shared descriptions into the docstring of a class.

    Parameters
    ----------
    estimator : type
        Class whose docstring has lines such as ``{device}``, ``{reading}`` for the
        parameters that concern input and output, or ``{solve}`` for the attributes of
        a solve. Defaults are read from the constructor.
    **descriptions : (type, text) or list of str
        Further descriptions by name.

    Returns
    -------
    type
        The class.
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
        if name in parameters:
            kind += _default(parameters[name].default)
        return f"    {name} : {kind}\n{text}\n"

    def filled(place: re.Match[str]) -> str:
        return described(place[1]) + place[2]

    estimator.__doc__ = PLACE.sub(filled, estimator.__doc__)
    return estimator


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return ""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return f", default={'numpy.nan' if shown == 'nan' else shown}"
