"""Documentation of the parameters and attributes that many estimators share."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TypeVar

C = TypeVar("C", bound=type)

# A docstring has a line "{name}" where one of these belongs; "default" is read from the
# constructor. Lines that are indented below it are appended to the description.
PARAMETERS = {
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
    "warm_start": (
        "bool",
        """\
        Whether to start from the solution of the last `fit`, whose matrix had the same
        shape.""",
    ),
    "scaling": (
        '{"auto", "columns", "global"} or None',
        """\
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" where the
        columns have different units, otherwise "global": see
        `skmc.cells.Scaling.of`.""",
    ),
    "device": (
        "str or torch.device",
        """\
        Where to compute. "auto" is CUDA if there is a CUDA device, else the CPU.""",
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
}
ATTRIBUTES = {
    "reconstruction_": """\
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.""",
    "n_iter_": """\
    n_iter_ : int
        Iterations.""",
    "status_": """\
    status_ : {"converged", "stopped", "max_iter", "diverged", "interrupted"}
        How the fit ended.""",
    "n_features_in_": """\
    n_features_in_ : int
        Number of columns seen in `fit`.""",
    "feature_names_in_": """\
    feature_names_in_ : ndarray of str
        Names of the columns, where the input has names.""",
}
GROUPS = {
    "reading": [
        "missing_values",
        "add_indicator",
        "keep_empty_features",
        "keep_observed",
    ],
    "input": ["n_features_in_", "feature_names_in_"],
    "solve": ["n_iter_", "status_", "n_features_in_", "feature_names_in_"],
}
PLACE = re.compile(r"^    \{(\w+)\}\n((?:        .*\n)*)", re.MULTILINE)


def documented(estimator: C) -> C:
    """Fill the shared descriptions into the docstring of a class.

    Parameters
    ----------
    estimator : type
        Its docstring has lines such as ``{device}``, ``{reading}`` for the parameters
        that concern input and output, or ``{solve}`` for the attributes of a solve.

    Returns
    -------
    type
        The class.
    """
    if estimator.__doc__ is None:  # python -OO
        return estimator
    defaults = inspect.signature(estimator).parameters

    def described(name: str) -> str:
        if name in ATTRIBUTES:
            return textwrap.indent(textwrap.dedent(ATTRIBUTES[name]), "    ")
        kind, text = PARAMETERS[name]
        default = defaults[name].default
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        shown = "numpy.nan" if shown == "nan" else shown
        return f"    {name} : {kind}, default={shown}\n{text}"

    def filled(place: re.Match) -> str:
        names = GROUPS.get(place[1], [place[1]])
        return "\n".join(map(described, names)) + "\n" + place[2]

    estimator.__doc__ = PLACE.sub(filled, estimator.__doc__)
    return estimator
