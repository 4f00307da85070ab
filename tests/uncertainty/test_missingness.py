"""Little's test is that of its formula, and holds its level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest

from skmc import patterns
from skmc.uncertainty import little_test


def related(n, seed):
    rng = np.random.RandomState(seed)
    return rng.randn(n, 1) + rng.randn(n, 3)


def holed(seed, n=60):
    X = related(n, seed) * [1, 10, 100] + [0, 50, 1]
    X[np.random.RandomState(seed + 100).uniform(size=X.shape) < 0.2] = np.nan
    return X


def by_definition(X):
    """EM step by step, and the sum over all rows of a pattern."""
    X = X[~np.isnan(X).all(1)]
    n, p = X.shape
    mean, S = np.nanmean(X, 0), np.diag(np.nanvar(X, 0))
    for _ in range(500):
        whole, extra = np.empty_like(X), np.zeros((p, p))
        for k, x in enumerate(X):
            o, m = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
            slopes = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            whole[k] = x
            whole[k, m] = mean[m] + slopes @ (x[o] - mean[o])
            extra[np.ix_(m, m)] += S[np.ix_(m, m)] - slopes @ S[np.ix_(o, m)]
        mean = whole.mean(0)
        last, S = S, ((whole - mean).T @ (whole - mean) + extra) / n
        if (abs(S - last) < 1e-8 * np.sqrt(np.outer(np.diag(S), np.diag(S)))).all():
            break
    statistic, dof, known = 0.0, -p, ~np.isnan(X)
    found = {tuple(row) for row in known}
    for pattern in found:
        o = np.flatnonzero(pattern)
        rows = X[(known == pattern).all(1)][:, o]
        off = rows.mean(0) - mean[o]
        statistic += len(rows) * off @ np.linalg.inv(S[np.ix_(o, o)]) @ off
        dof += len(o)
    return statistic, dof, chi2.sf(statistic, dof), len(found)


def test_the_statistic_is_that_of_the_formula():
    X = holed(0, 30)
    X[4] = np.nan  # an empty row does not count
    found = little_test(X)
    np.testing.assert_allclose(found, by_definition(X), rtol=1e-4)


def test_units_and_containers_do_not_matter():
    X = holed(1)
    expected = little_test(X)
    frame = pd.DataFrame(X * [1e6, 1, 1e-3] + [0, 7, 0], columns=list("abc"))
    for other in (frame, np.ma.masked_invalid(X), np.where(np.isnan(X), -9, X)):
        found = little_test(other, missing_values=-9)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_pvalues_are_uniform_if_cells_are_missing_at_random():
    found = []
    for seed in range(60):
        X = related(300, seed)
        X[:, 1:][np.random.RandomState(seed).uniform(size=(300, 2)) < 0.2] = np.nan
        found.append(little_test(X).pvalue)
    assert kstest(found, "uniform").pvalue > 0.01


def test_pvalues_are_small_if_the_reason_is_observed():
    X = related(300, 0)
    hidden = patterns.mar(X, 0.2, random_state=0)
    assert little_test(np.where(hidden, np.nan, X)).pvalue < 1e-6


def test_a_reason_that_no_other_column_knows_is_not_found():
    X = np.random.RandomState(0).randn(500, 3)
    X[X[:, 0] > 0.5, 0] = np.nan
    assert little_test(X).pvalue > 0.05


def test_tables_that_cannot_be_tested():
    X = holed(2)
    constant = np.column_stack([X, np.where(np.isnan(X[:, 0]), np.nan, 2.0)])
    for bad, message in (
        (related(20, 0), "same observed columns"),
        (constant, "Column 3 of X is constant"),
        (
            pd.DataFrame({"a": [1.0, 2, np.nan], "b": np.nan}),
            "'b' of X has no",
        ),
        (X[:3], "singular|constant|no observed"),
        (np.where(np.isnan(X), np.nan, X[:, [0]]), "singular"),
        (X[:, 0], "must be a matrix"),
        (pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]}), "not a number"),
    ):
        with pytest.raises(ValueError, match=message):
            little_test(bad)
