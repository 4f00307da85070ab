"""The checks of all completers, including new ones, without an edit of this file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
from conftest import COMPLETERS, KINDS, make
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import skmc
from skmc import (
    AIRCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    GroupedCompleter,
    MaskedToNaN,
    MeanCompleter,
    MixedCompleter,
    SeriesCompleter,
    SVDCompleter,
)
from skmc.checks import completer_checks
from skmc.model_selection import (
    BatchedGridSearchCV,
)
from skmc.sensing import (
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
)
from skmc.uncertainty import MultipleCompletion

# These checks of scikit-learn reach no method. They test the base class.
OF_THE_BASE = [
    f"scikit-learn's check_{name}"
    for name in (
        "do_not_raise_errors_in_init_or_set_param",
        "estimator_cloneable",
        "estimator_repr",
        "estimator_sparse_tag",
        "estimator_tags_renamed",
        "fit1d",
        "fit_score_takes_y",
        "get_params_invariance",
        "mixin_order",
        "no_attributes_set_in_init",
        "parameters_default_constructible",
        "positive_only_tag_during_fit",
        "set_params",
        "valid_tag_types",
    )
]
# These read other containers, which is the same code for each kind of result.
OF_CONTAINERS = [
    f"scikit-learn's check_{name}"
    for name in (
        "dtype_object",
        "estimator_sparse_matrix",
        "estimators_pickle(readonly_memmap=True)",
        "f_contiguous_array_estimator",
        "readonly_memmap_input",
        "transformer_data_not_an_array",
        "transformer_general(readonly_memmap=True)",
    )
]
# These are about the way of cells into a completer, as well, and are long but for them.
OF_READING = [
    "a_failed_fit_changes_nothing",
    "bad_input_to_a_fitted_completer",
    "data_frames_and_names",
    "input_may_change_later",
    "masks_are_never_dropped",
    "missing_values",
    "stored_zeros_are_observed",
    "scikit-learn's check_estimator_sparse_array",
    "scikit-learn's check_estimators_dtypes",
    "scikit-learn's check_pipeline_consistency",
    "scikit-learn's check_transformer_general",
    "scikit-learn's check_transformer_preserve_dtypes",
]
# Many fits, of methods that take long.
LONG = {
    "containers": "Auto Autoencoder BayesianFactorization BiBNN GradualNSR NSR",
    "recovers_a_rank_two_matrix": "Auto BayesianFactorization Chained GradualNSR",
}
LINKED = """constant_columns_say_nothing_of_new_rows containers empty_columns_and_rows
    new_rows observed_cells_and_dtype offsets_do_not_hide_deviations
    recovers_a_rank_two_matrix scaling_is_undone"""


def takes_long(check, cls):
    name = check.completer.removesuffix("Completer")
    own = LINKED.split() if name == "LinkedFactorization" else []
    if cls not in KINDS:
        own = [*own, *OF_READING]
    return check.name in own or name in LONG.get(check.name, "").split()


CHECKS = [
    pytest.param(
        check,
        id=f"{check.completer}-{check.name}",
        marks=[pytest.mark.long] if takes_long(check, cls) else [],
    )
    for cls in COMPLETERS
    for check in completer_checks(cls())
    if cls in KINDS or check.name not in OF_CONTAINERS
    if cls in KINDS[:4] or check.name not in OF_THE_BASE
]
RANKS, WEIGHTS = {"rank": [1, 2]}, {"lambda_row": [0.0, 1.0]}
# The other estimators, and parameters that change what an estimator takes.
ESTIMATORS = [
    FactorizationCompleter(1, alpha=1.0, lambda_ridge=0.1),
    GroupedCompleter(GaussianCompleter(10.0), by=0),
    MaskedToNaN(),
    MixedCompleter(SVDCompleter(rank=1)),
    SeriesCompleter(MeanCompleter(), random_state=0),
    MultipleCompletion(SVDCompleter(rank=1), 3),
    MultipleCompletion(MixedCompleter(MeanCompleter()), 3),
    BatchedGridSearchCV(SVDCompleter(), RANKS, cv=2),
    BatchedGridSearchCV(make(AIRCompleter), WEIGHTS, cv=2),
    make(FactorizedSensingRegressor, max_iter=100),
    make(LinearSensingRegressor, max_iter=100),
    make(NuclearSensingRegressor, max_iter=100),
    NuclearSensingRegressor(0, device="cpu"),  # the other solver
    make(SpectralSensingRegressor, max_iter=100),
]
NO_FIT_TRANSFORM = dict.fromkeys(
    (
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ),
    "searches have no fit_transform, as in scikit-learn",
)
NO_CATEGORIES = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "predict_proba goes with a fit to a table without categories",
)


@pytest.mark.parametrize("check", CHECKS)
def test_completer(check):
    check()


def expected_failures(estimator):
    if isinstance(estimator, MixedCompleter):
        return NO_CATEGORIES
    return NO_FIT_TRANSFORM if hasattr(estimator, "refit") else {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    names = (room.name for room in pkgutil.iter_modules(skmc.__path__, "skmc."))
    rooms = [importlib.import_module(name) for name in names if "._" not in name]
    public = {
        found
        for room in (skmc, *rooms)
        for name in getattr(room, "__all__", ())
        if inspect.isclass(found := getattr(room, name))
        and issubclass(found, BaseEstimator)
    }
    checked = {*COMPLETERS, *map(type, ESTIMATORS)}
    assert {found.__module__.split(".")[1] for found in public - checked} == {"base"}
