"""Patterns hide the stated share of cells, and only observed ones."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import low_rank

from skmc import patterns

PATTERNS = {
    "random": lambda X: patterns.random(X, 0.3, random_state=0),
    "spare": lambda X: patterns.random(X, 0.9, spare=True, random_state=0),
    "patch": lambda X: patterns.patch(X, [(2, 9, 3, 11)]),
    "texture": lambda X: patterns.texture(X, np.indices(X.shape).sum(0) % 5),
    "text": lambda X: patterns.text(X, "skmc", height=0.5),
    "rows": lambda X: patterns.rows(X, 0.2, random_state=0),
    "columns": lambda X: patterns.columns(X, 0.2, random_state=0),
    "mar": lambda X: patterns.mar(X, 0.2, random_state=0),
    "mnar": lambda X: patterns.mnar(X, 0.2, random_state=0),
    "per_row": lambda X: patterns.per_row(X, 0.2, random_state=0),
}


@pytest.fixture(scope="module")
def X():
    truth = low_rank(40, 30)
    return np.ma.masked_array(truth, np.random.RandomState(0).rand(40, 30) < 0.1)


@pytest.mark.parametrize("name", PATTERNS)
def test_only_observed_cells_and_the_same_ones_again(name, X):
    hidden = PATTERNS[name](X)
    assert hidden.shape == X.shape
    assert hidden.dtype == bool
    assert 0 < hidden.sum() < X.count()
    assert not (hidden & X.mask).any()
    np.testing.assert_array_equal(hidden, PATTERNS[name](X))


@pytest.mark.parametrize("name", ["random", "mar", "mnar"])
def test_shares_are_exact(name, X):
    hidden = getattr(patterns, name)(X, 0.25, random_state=1)
    assert hidden.sum() == round(0.25 * X.count())


def test_sparing_leaves_a_cell_in_every_row_and_column(X):
    hidden = patterns.random(X, 1.0, spare=True, random_state=0)
    left = ~X.mask & ~hidden
    assert left.any(0).all()
    assert left.any(1).all()
    assert left.sum() < 2 * sum(X.shape)


def test_rows_and_columns_are_whole(X):
    rows = patterns.rows(X, 0.25, random_state=0)
    assert (rows == ~X.mask)[rows.any(1)].all()
    assert rows.any(1).sum() == 10
    columns = patterns.columns(X, 0.1, random_state=0)
    assert columns.any(0).sum() == 3


def test_per_row_hides_the_same_share_of_each_row(X):
    hidden = patterns.per_row(X, 0.2, random_state=0)
    np.testing.assert_array_equal(hidden.sum(1), np.ceil(0.2 * X.count(1)))
    lonely = np.ma.masked_array(np.ones((2, 3)), [[0, 1, 1], [0, 0, 1]])
    assert patterns.per_row(lonely, 0.9).sum(1).tolist() == [0, 1]


def test_mnar_prefers_large_cells_and_mar_large_rows(X):
    hidden = patterns.mnar(X, 0.2, random_state=0)
    assert X[hidden].mean() > X[~hidden].mean() + 0.5
    table = np.ma.masked_array(np.random.RandomState(1).randn(200, 9), False)
    hidden = patterns.mar(table, 0.2, random_state=0)
    shown = ~hidden.any(0)
    assert shown.sum() == 3
    score = table.data[:, shown].mean(1)
    assert score[hidden.any(1)].mean() > score[~hidden.any(1)].mean() + 0.5
    # Given the shown columns the hidden values are those of any row.
    assert abs(table.data[hidden].mean()) < 0.2


def test_the_papers_patch():
    hidden = patterns.patch(np.ones((240, 240)))
    assert hidden.mean() == pytest.approx(0.0365, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: patterns.random(X, 1.2), r"fraction must lie in \[0, 1\], got 1.2"),
        (lambda X: patterns.patch(X, [(0, 99, 0, 2)]), "does not lie in a matrix"),
        (lambda X: patterns.texture(X, np.ones((3, 3))), "mask_image has shape"),
        (lambda X: patterns.text(X, height=0), "height must lie in"),
        (lambda X: patterns.random(X.data[0]), "X must be a matrix, got 1"),
    ],
)
def test_bad_arguments_are_named(call, message, X):
    with pytest.raises(ValueError, match=message):
        call(X)
