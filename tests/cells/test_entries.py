"""Cells as samples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import CONTAINERS
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    train_test_split,
)

from skmc import Entries, MeanCompleter
from skmc.cells import to_cells


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_can_be_converted_and_restored(container, small):
    _, masked = small
    cells = Entries(CONTAINERS[container](masked))
    assert cells.matrix_shape == masked.shape
    assert len(cells) == masked.count() == cells.shape[0]
    np.testing.assert_array_equal(cells.to_cells(), masked.filled(np.nan))
    np.testing.assert_array_equal(
        to_cells(CONTAINERS[container](masked)), masked.filled(np.nan)
    )


def test_scikit_learn_splits_cells(small):
    cells = Entries(small[1])
    parts = [
        cells[test] for _, test in KFold(5, shuffle=True, random_state=0).split(cells)
    ]
    assert sum(map(len, parts)) == len(cells)
    assert all(part.matrix_shape == cells.matrix_shape for part in parts)
    train, test = train_test_split(cells, test_size=0.25, random_state=0)
    assert isinstance(train, Entries)
    both = np.where(np.isnan(train.to_cells()), test.to_cells(), train.to_cells())
    np.testing.assert_array_equal(both, cells.to_cells())


@pytest.mark.filterwarnings("ignore:.*no observed cell")
def test_folds_that_hide_whole_rows_are_refused(small):
    """They would give all candidates the same rank."""
    search = GridSearchCV(MeanCompleter(), {"keep_observed": [True]}, cv=3)
    with pytest.raises(ValueError, match=r"shuffled, for example by cv=KFold\(5, shu"):
        search.fit(Entries(small[1]))
    new_rows = search.set_params(cv=LeaveOneGroupOut())
    cells = Entries(small[1])
    assert new_rows.fit(cells, groups=cells.rows).best_score_ < 0
    search.set_params(cv=3)
    shuffled = np.random.RandomState(0).permutation(len(Entries(small[1])))
    assert search.fit(Entries(small[1])[shuffled]).best_score_ < 0


def test_indexing(small):
    cells = Entries(small[1])
    row, col, value = cells[-1]
    assert cells.to_cells()[row, col] == value
    assert len(cells[cells.values > 3]) == (cells.values > 3).sum()
    assert len(cells[::2]) == -(-len(cells) // 2)
    assert len(list(cells)) == len(cells)
    assert repr(cells[:3]) == "Entries(3 cells of a 12 x 6 matrix)"


def test_sparse_matrices_stay_sparse():
    """A dense copy of this matrix would take 80 GB."""
    big = sp.coo_array(([1.0, 2.0], ([0, 99_999], [5, 99_999])), shape=(10**5, 10**5))
    assert len(Entries(big)) == 2


BAD = [
    (([0, 1], [0], [1, 2]), {}, ValueError, "rows and cols must be one-dimensional"),
    (([0], [0], [1, 2]), {}, ValueError, "one item per cell"),
    (([0.0], [0], [1]), {}, TypeError, "rows must be integers"),
    ((["ann"], [0], [1]), {}, TypeError, r"use Entries.from_frame\("),
    (([0, -1], [0, 0], [1, 2]), {}, ValueError, "rows contains -1 at position 1"),
    (([0], [3], [1]), {"shape": (2, 3)}, ValueError, r"cols contains 3 .* 0\.\.2"),
    (([0], [0], [np.nan]), {}, ValueError, "values contains NaN at position 0"),
    (([0], [0], [np.inf]), {}, ValueError, "values contains infinity at position 0"),
    (([0, 0], [1, 1], [1, 2]), {}, ValueError, "row 0, column 1 comes more than once"),
    (([0], [0], [1]), {"duplicates": "sum"}, ValueError, "duplicates must be"),
]


@pytest.mark.parametrize(("triplets", "params", "error", "message"), BAD)
def test_bad_triplets_say_what_and_where(triplets, params, error, message):
    with pytest.raises(error, match=message):
        Entries.from_triplets(*triplets, **params)


def test_duplicates_can_be_averaged():
    cells = Entries.from_triplets(
        [2, 0, 2], [1, 1, 1], [1.0, 5.0, 3.0], duplicates="mean"
    )
    assert sorted(zip(cells.rows, cells.cols, cells.values, strict=True)) == [
        (0, 1, 5.0),
        (2, 1, 2.0),
    ]


def test_a_cell_that_occurs_twice_is_named_by_its_identifiers():
    table = {"user": ["ann", "bob", "ann"], "film": [7, 9, 7], "stars": [1.0, 2, 3]}
    with pytest.raises(ValueError, match="row 'ann', column 7 comes more than once"):
        Entries.from_frame(table, "user", "film", "stars")
