"""scikit-learn's own tests of its imputers, with completers in their place.

The modules are those of the installed scikit-learn; nothing of them is copied. A test
is skipped if it needs a parameter that the completer lacks.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any
from unittest import mock

import pytest
from conftest import make
from sklearn.experimental import enable_iterative_imputer  # noqa: F401

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
    TreesCompleter,
)

pytestmark = pytest.mark.filterwarnings("ignore")

# Differences that stay, by the names of tests, and the reason of each.
ARRAY = "the completion of a sparse matrix is an array: no cell is left out"
MESSAGE = "the message names the cell and the remedy"
NAN = "NaN is missing beside missing_values, as nulls and masks are"
OWN = "an attribute or method of this imputer alone"
DIFFERENCES = {
    # test_knn
    "test_knn_imputer_default_with_invalid_input*": f"{MESSAGE}; {NAN}",
    "test_knn_tags[[]-1-False]": NAN,
    "test_knn_imputer_weight_uniform*": "weights is not a function",
    # test_common
    "test_imputers_add_indicator_sparse*": ARRAY,
    # test_impute
    "test_imputation_deletion_warning*": "the warning comes once, from fit",
    "test_imputation_error_sparse_0*": "cells that are not stored are missing, not 0",
    "test_imputation_mean_median_error_invalid_type*": MESSAGE,
    "test_imputation_mean_median[[]*": OWN,  # statistics_
    "test_imputation_pipeline_grid_search": OWN,  # strategy
    "test_inconsistent_dtype_X_missing_values[[]*Completer]": MESSAGE,
    "test_iterative_imputer_all_missing": "without a cell, nothing is learned",
    "test_iterative_imputer_one_feature*": OWN,  # n_iter_ is 0
    "test_iterative_imputer_zero_iters": OWN,
    "test_iterative_imputer_catch_min_max_error*": MESSAGE,
    "test_iterative_imputer_min_max_array_like[[]*": "it reads private attributes",
    "test_iterative_imputer_min_max_value_remove_empty": (
        "a mean under bounds lies between them"
    ),
    "test_simple_imputation_add_indicator_sparse_matrix*": ARRAY,
    "test_simple_imputation_inverse_transform*": OWN,
    "test_simple_imputer_keep_empty_features[[]True-mean-sparse]": ARRAY,
}


def in_place(cls: type, **defaults: Any) -> Callable[..., Any]:
    """A constructor that skips the test if the class lacks a parameter."""

    def construct(*args: Any, **params: Any) -> Any:
        given = defaults | params
        for name in ("strategy", "initial_strategy"):
            if given.pop(name, "mean") != "mean":
                pytest.skip(f"{cls.__name__} has only means")
        unknown = given.keys() - inspect.signature(cls).parameters.keys()
        if unknown:
            pytest.skip(f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}")
        return cls(*args, **given)

    construct.__name__ = cls.__name__
    return construct


DROP = {"keep_empty_features": False}  # scikit-learn's default
IMPUTERS = {
    "KNNImputer": in_place(KNNCompleter, scaling=None, **DROP),
    "SimpleImputer": in_place(MeanCompleter, **DROP),
    "IterativeImputer": in_place(GaussianCompleter, random_state=0, **DROP),
}
OF_TABLES = (
    AutoCompleter,
    ChainedCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    SVDCompleter,
    TreesCompleter,
)
EVERY = pytest.mark.parametrize("imputer", [make(cls, **DROP) for cls in OF_TABLES])


def _tests_of(name: str) -> dict[str, Any]:
    """The tests of an installed module; those of any imputer are of all completers."""
    spec = importlib.util.find_spec(f"sklearn.impute.tests.{name}")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple("sklearn.impute", **IMPUTERS):
        spec.loader.exec_module(module)
    # Those of its own `MissingIndicator` are not ours.
    found = {
        name: test
        for name, test in vars(module).items()
        if name.startswith("test_") and "missing_indicator" not in name
    }
    for test in found.values():
        marks = getattr(test, "pytestmark", [])
        test.pytestmark = [EVERY if m.args[:1] == ("imputer",) else m for m in marks]
    return found


for _name in ("test_knn", "test_common", "test_impute"):
    globals().update(_tests_of(_name))


@pytest.fixture(autouse=True)
def expected(request):
    """Mark the tests of the table, which must fail."""
    for pattern, reason in DIFFERENCES.items():
        if fnmatch(request.node.name, pattern):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
