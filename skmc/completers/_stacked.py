"""Names of the candidates of `AutoCompleter`, which import no class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Candidates in the order in which they are compared, cheap ones first. The page on the
# stack gives the reasons.
FEW = ("mean", "knn", "gaussian", "ialm")
TABLE = ("mean", "knn", "ialm", "gaussian", "copula", "chained-short", "trees-rounds")
WIDE = ("mean", "knn", "ialm", "factorization", "gaussian", "copula")
RATINGS = ("mean", "factorization", "bayesian-factorization-implicit")
INFORMED = ("factorization", "bayesian-factorization")  # with side information

FEW_CELLS = 150  # observed ones of a matrix for which cheap candidates suffice
MOST_COLUMNS = 20  # that are predicted one by one
PER_COLUMN = ("chained-short", "trees-rounds")  # too slow for the last fit to many rows
SPARSE = 0.2  # largest observed share of ratings

# Class, parameters, and parameters that make fits for the comparison cheaper.
NAMED: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "mean": ("MeanCompleter", {}, {}),
    "knn": ("KNNCompleter", {}, {}),
    "knn-weighted": ("KNNCompleter", {"n_neighbors": 10, "weights": "distance"}, {}),
    "gaussian": ("GaussianCompleter", {}, {}),
    "copula": ("GaussianCompleter", {"marginals": "copula"}, {}),
    "chained": ("ChainedCompleter", {}, {"n_draws": 8, "max_iter": 2}),
    "chained-short": (
        "ChainedCompleter",
        {"max_iter": 4},
        {"n_draws": 8, "max_iter": 2},
    ),
    "trees-linear": (
        "TreesCompleter",
        {"linear": True, "n_estimators": 30},
        {"n_estimators": 10},
    ),
    "trees-rounds": (
        "TreesCompleter",
        {"max_iter": 3, "n_estimators": 20},
        {"n_estimators": 10},
    ),
    "boosting": ("TreesCompleter", {"estimator": "boosting"}, {}),
    "svd": ("SVDCompleter", {}, {}),
    "ialm": ("IALMCompleter", {}, {}),
    "tnnr": ("TNNRCompleter", {}, {}),
    "ncarl": ("NCARLCompleter", {}, {}),
    "soft-impute": ("SoftImputeCompleter", {}, {}),
    "air": ("AIRCompleter", {}, {}),
    "factorization": ("FactorizationCompleter", {}, {}),
    "bayesian-factorization": ("BayesianFactorizationCompleter", {}, {"n_draws": 30}),
    "bayesian-factorization-implicit": (
        "BayesianFactorizationCompleter",
        {"implicit": True, "heteroscedastic": True},
        {"n_draws": 30},
    ),
    "dmf-tv": ("DMFCompleter", {"regularizer": "tv"}, {}),
    "biharmonic": ("BiharmonicCompleter", {}, {}),
    "nonlocal": ("NonlocalCompleter", {}, {}),
    "patch-cnn": ("PatchCNNCompleter", {}, {}),
}
