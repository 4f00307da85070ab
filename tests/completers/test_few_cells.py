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


def is_near(found, known):
    """Whether no value is outside of the observed ones by more than their range."""
    low, high = np.nanmin(known, 0), np.nanmax(known, 0)
    return ((found <= 2 * high - low) & (found >= 2 * low - high)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", SEEDS)
def test_small_tables_are_completed_at_least_as_well_as_by_means(method, seed):
    truth, X = table(seed, (60, 5), 0.2)
    found = method(random_state=seed).fit_transform(X)
    assert relative_error(found, truth, X, X) < 1.3 and is_near(found, X)


@pytest.mark.parametrize("method", [SVDCompleter, TNNRCompleter])
@pytest.mark.parametrize("seed", [2, 23, 65, 68, 77, 95])  # once far away
def test_new_rows_with_few_cells(method, seed):
    truth, X = table(seed, (80, 8), 0.6)
    completer = method(random_state=seed).fit(X[:40])
    found = completer.transform(X[40:])
    assert relative_error(found, truth[40:], X[40:], X[:40]) < 2
