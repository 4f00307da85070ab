"""Rows with few cells: their posterior is never far from the observed cells."""

from __future__ import annotations

import numpy as np
import pytest

from skmc import (
    FactorizationCompleter,
    GaussianCompleter,
    SVDCompleter,
    TNNRCompleter,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SEEDS = range(6)
SEEDS_OF_NEW_ROWS = [2, 23, 65, 68, 77, 95, 1046, 1079, 1088, 1093]  # once far away
METHODS = [FactorizationCompleter, GaussianCompleter, SVDCompleter, TNNRCompleter]


def table(seed, shape, share):
    """Two factors and noise, in columns of several units; no row is empty."""
    rng = np.random.RandomState(seed)
    truth = rng.randn(shape[0], 2) @ rng.randn(2, shape[1])
    truth += (0.1, 0.3, 1.0)[seed % 3] * rng.randn(*shape)
    truth = truth * np.exp(rng.randn(shape[1])) + 5 * rng.randn(shape[1])
    hidden = rng.rand(*shape) < share
    hidden[hidden.all(1), 0] = False
    return truth, np.where(hidden, np.nan, truth)


def relative_error(found, truth, X, known):
    """Error of missing cells over that of the means, in deviations of the columns."""
    off = (found - truth) / np.nanstd(known, 0)
    means = (np.nanmean(known, 0) - truth) / np.nanstd(known, 0)
    return np.sqrt(np.mean(off[np.isnan(X)] ** 2) / np.mean(means[np.isnan(X)] ** 2))


def is_near(found, known, reach=1):
    """Whether no value is outside of the observed ones by more than their range."""
    low, high = np.nanmin(known, 0), np.nanmax(known, 0)
    most = reach * (high - low)
    return ((found <= high + most) & (found >= low - most)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", SEEDS)
def test_small_tables_are_completed_at_least_as_well_as_by_means(method, seed):
    truth, X = table(seed, (60, 5), 0.2)
    found = method(random_state=seed).fit_transform(X)
    assert relative_error(found, truth, X, X) < 1.3 and is_near(found, X)


@pytest.mark.parametrize("method", METHODS)
def test_new_rows_are_completed_as_well_as_those_of_the_fit(method):
    """Also where a tenth of the cells is a dozen."""
    squares = []
    for seed in SEEDS_OF_NEW_ROWS:
        truth, X = table(seed, (80, 8), 0.6)
        completer = method(random_state=seed).fit(X[:40])
        found = [completer.transform(part) for part in (X[:40], X[40:])]
        ends = zip(found, (truth[:40], truth[40:]), (X[:40], X[40:]), strict=True)
        errors = [relative_error(*parts, X[:40]) for parts in ends]
        assert errors[1] < 2
        squares.append(np.square(errors))
        assert is_near(found[1], X[:40], reach=3)
    fit, new = np.sqrt(np.mean(squares, 0))
    assert new < 1.15 * fit
