"""Checks of the errors about wrong input and wrong parameters."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.exceptions import NotFittedError

from skmc.base import IterativeCompleter
from skmc.cells import Entries
from skmc.checks.expect import equal, expect, raises
from skmc.checks.problems import Case, small_problem
from skmc.checks.registry import check, having
from skmc.compatibility import generate_invalid_param_val, make_constraint

READ = "leave reading to BaseCompleter, and do not check X before"
BAD_INPUT: dict[str, tuple[Any, str]] = {
    "infinity": ([[1, 2], [np.inf, 3]], r"X contains infinity at row 1, column 0"),
    "nothing observed": ([[np.nan] * 2] * 2, "X has no observed cell"),
    "too large": (
        [[1.0, 1e200]],
        r"X contains a number above 1e\+154.* row 0, column 1",
    ),
    "no container": ({"a": [1.0]}, "X must be a matrix in an array, .* got dict"),
    "ragged": ([[1, 2], [3]], "X is not rectangular"),
    "one dimension": ([1.0, 2.0], "Expected 2D array, got 1D array"),
    "three dimensions": (np.ones((2, 2, 2)), "Found array with dim 3"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "complex": ([[1j, 2]], "Complex data not supported"),
    "duplicates": (
        sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)),
        "X stores some cells more than once",
    ),
    "sparse tensor": (torch.eye(2).to_sparse(), "X is a sparse tensor; pass"),
}
WORDS: dict[str, tuple[Any, str]] = {
    "text": (
        [[1, 2], [3, "four"]],
        "holds 'four' at row 1, column 1, which is not a number",
    ),
    "numbers as text": (np.array([["1", "2"]]), "X holds '1' at row 0, column 0"),
    "numbers as bytes": (np.array([[b"1", 2]], object), "X holds b'1' at row 0"),
}


def _with_frames() -> dict[str, tuple[Any, str]]:
    if not find_spec("pandas"):
        return WORDS
    pandas = import_module("pandas")
    days = pandas.to_datetime(["2020-01-01", None])
    named = pandas.DataFrame({"age": [1.0, 2.0], "name": ["a", "b"]})
    return {
        **WORDS,
        "dates": (pandas.DataFrame({"day": days}), "X holds dates or durations"),
        "text column": (
            named,
            r"holds 'a' at row 0, column 1 \('name'\), which is not a number",
        ),
    }


@check(READ)
def bad_input(case: Case) -> None:
    """Errors about wrong input name the fault and its position."""
    for kind, (X, message) in {**BAD_INPUT, **_with_frames()}.items():
        with raises((ValueError, TypeError), message, f"fit to bad input ({kind})"):
            case.make().fit(X)


@check(READ)
def bad_input_to_a_fitted_completer(case: Case) -> None:
    """Errors of transform and score name the fault."""
    truth, masked = small_problem()
    completer = case.make()
    with raises(NotFittedError, "", "transform before fit"):
        completer.transform(masked)
    completer.fit(masked)
    what = "transform of 5 columns"
    with raises(ValueError, r"X has 5 features, but .* is expecting 6", what):
        completer.transform(masked[:, :5])
    what = "score with a y of 5 columns"
    with raises(ValueError, r"y has shape \(12, 5\), X has \(12, 6\)", what):
        completer.score(masked, truth[:, :5])
    one_each = np.ma.masked_array(truth, np.arange(6)[None] > np.zeros((12, 1)))
    what = "score of rows with one cell"
    with raises(ValueError, "no row with two observed cells", what):
        completer.score(one_each)
    for cells in (Entries(truth[:, :5]), Entries(masked)[:0]):
        what = f"score of {cells!r}"
        with raises(ValueError, "score needs cells of the fitted matrix", what):
            completer.score(cells)
    what = "score of a matrix without holes"
    with raises(ValueError, "no missing cell that is observed in y", what):
        completer.score(truth, truth)


@check(
    "annotate each parameter by its type, such as skmc.parameters.Count, or give its "
    "admissible values in _parameter_constraints, as scikit-learn's estimators do"
)
def bad_parameters_are_named(case: Case) -> None:
    """Errors about invalid parameters name them."""
    _, masked = small_problem()
    constraints = case.cls._parameter_constraints
    without = sorted(case.params - constraints.keys())
    expect(not without, f"these parameters have no constraints: {', '.join(without)}")
    for name, allowed in constraints.items():
        for value in _bad_values(allowed):
            what = f"fit with {name}={value!r}"
            with raises(ValueError, f"'{name}' parameter of {case.name}", what):
                case.make().set_params(**{name: value}).fit(masked)


def _bad_values(allowed: Any) -> list[object]:
    """Values that violate all constraints of a parameter."""
    if allowed == "no_validation":
        return []
    constraints = [make_constraint(each) for each in allowed]
    bad: list[object] = [object()]
    for constraint in constraints:
        try:
            bad.append(generate_invalid_param_val(constraint))
        except NotImplementedError:  # there is no such value
            continue
    return [v for v in bad if not any(c.is_satisfied_by(v) for c in constraints)]


@check("leave the parameter device to IterativeCompleter", having("device"))
def unknown_devices_are_refused(case: Case) -> None:
    """An error names a device that does not exist."""
    for device in ("gpu", "cuda:99", "tpu:0"):
        with raises(
            ValueError,
            f"device='{device}' is not available",
            f"fit with device={device!r}",
        ):
            case.make(device=device).fit(small_problem()[1])


@check("set no attribute in _fit_cells; return them in Outcome.attributes")
def a_failed_fit_changes_nothing(case: Case) -> None:
    """A fit that raises an error leaves the completer unchanged."""
    _, masked = small_problem()
    completer = case.make()
    with raises(ValueError, "infinity", "fit to infinity"):
        completer.fit([[np.inf, 1.0]])
    with raises(NotFittedError, "", "transform after a failed fit"):
        completer.transform(masked)
    expected = completer.fit_transform(masked)
    bad: dict[str, Any] = {"rank": 99, "blocks": {99: 1.0}}
    if isinstance(completer, IterativeCompleter):
        bad["device"] = "tpu"
    names = bad.keys() & case.params
    completer.set_params(**{name: bad[name] for name in names})
    with raises(ValueError, r"99|tpu|no observed", f"fit with a bad {sorted(names)}"):
        completer.fit(masked[:5, :3] if names else [[np.nan]])
    completer.set_params(**{name: getattr(case.make(), name) for name in names})
    equal(completer.transform(masked), expected, "a failed fit changes the answers")
