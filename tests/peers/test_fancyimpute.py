"""Properties that fancyimpute tests: low-rank recovery, neighbors, complete input.

Its fills with medians or random values and its dictionaries have no counterpart.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import low_rank

from skmc import (
    BayesianFactorizationCompleter,
    FactorizationCompleter,
    GaussianCompleter,
    IALMCompleter,
    KNNCompleter,
    MeanCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    SVTCompleter,
    TNNRCompleter,
    patterns,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def tall():
    """Many rows of a few columns, of rank 3; a quarter of the cells is missing."""
    truth = low_rank(400, 10, rank=3) * 3**0.5
    return truth, patterns.random(truth, 0.25, random_state=0)


def error(completer, truth, hidden):
    completed = completer.fit_transform(np.where(hidden, np.nan, truth))
    assert np.isfinite(completed).all()
    np.testing.assert_array_equal(completed[~hidden], truth[~hidden])
    return np.abs(completed - truth)[hidden].mean()


@pytest.mark.parametrize(
    "completer",
    [
        SVDCompleter(rank=3),
        SVDCompleter(),
        SoftImputeCompleter(),
        FactorizationCompleter(5, random_state=0),
        FactorizationCompleter(random_state=0),
        BayesianFactorizationCompleter(5, random_state=0),
        IALMCompleter(),
        TNNRCompleter(),
        GaussianCompleter(random_state=0),
    ],
    ids=repr,
)
def test_a_tall_matrix_of_low_rank_is_recovered(completer, tall):
    assert error(completer, *tall) < 0.1


@pytest.mark.parametrize("k", [5, 15, 30])
def test_neighbors_are_twice_as_good_as_zeros(k, tall):
    truth, hidden = tall
    zeros = np.abs(truth[hidden]).mean()
    assert error(KNNCompleter(k), truth, hidden) < zeros / 2


def test_means_are_finite_and_no_worse_than_zeros(tall):
    truth, hidden = tall
    assert error(MeanCompleter(), truth, hidden) < 1.02 * np.abs(truth[hidden]).mean()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    "completer",
    [
        IALMCompleter(max_iter=5000, scaling=None),
        SVDCompleter(rank=1, max_iter=5000, scaling=None),
        SVTCompleter(max_iter=5000, scaling=None),
        TNNRCompleter(1, max_iter=5000, scaling=None),
    ],
    ids=repr,
)
def test_one_cell_of_a_tiny_matrix_of_rank_one(completer, symmetric):
    X = np.outer([2.0, -1, 3, 1.5, -2], [0.3, 1, -0.5, 2, 1.2])
    X = X.T @ X if symmetric else X
    hidden = np.zeros(X.shape, bool)
    hidden[1, 2] = True
    assert error(completer, X, hidden) < 0.01 * np.abs(X).max()


def test_rows_like_another_one_are_completed_like_it():
    X = np.array([[0.1, 0.9, 0.3], [0.8, 0.15, 0.1], [0.9, 0.2, 0.05], [0.2, 1.0, 0.3]])
    hidden = np.zeros(X.shape, bool)
    hidden[1, 1] = hidden[3, 0] = True
    assert error(KNNCompleter(1), X, hidden) < 0.11


@pytest.mark.parametrize("cls", [KNNCompleter, SVDCompleter, MeanCompleter])
def test_a_complete_matrix_is_returned_as_it_is(cls):
    X = low_rank(12, 6)
    np.testing.assert_array_equal(cls().fit_transform(X), X)
