"""Rows that occur several times are held out together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skmc import (
    AutoCompleter,
    ChainedCompleter,
    Entries,
    SVDCompleter,
    TreesCompleter,
    patterns,
)
from skmc.cells import SparseObserved
from skmc.cells.copies import copies
from skmc.model_selection import CellSplit
from skmc.new_rows import FoldIn
from skmc.stacking import Stacking

RNG = np.random.RandomState(0)
TRUTH = RNG.randn(40, 2) @ RNG.randn(2, 6) + 0.5 * RNG.randn(40, 6)


def joined_twice(seed=0):
    """Each row twice, with other missing cells."""
    twice = np.concatenate([TRUTH, TRUTH * (1 + 1e-9)])
    return np.where(np.random.RandomState(seed).rand(80, 6) < 0.15, np.nan, twice)


def test_copies_are_found_among_missing_cells():
    found = copies(joined_twice())
    assert (found[40:] == found[:40]).mean() > 0.8
    assert (copies(TRUTH) == np.arange(40)).all()


@pytest.mark.parametrize("values", [[0.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_rows_that_are_equal_by_chance_are_no_copies(values):
    cells = np.random.RandomState(0).choice(values, (60, 5))
    assert (copies(cells) == np.arange(60)).all()


@pytest.mark.parametrize(
    "draw",
    [
        lambda X: patterns.parts_like_missing(X, 5, random_state=0) == 0,
        lambda X: SVDCompleter()._drawn(X, 0.1, 0),
    ],
)
def test_no_copy_shows_a_held_out_cell(draw):
    X = joined_twice()
    hidden, group = draw(X), copies(X)
    for first in np.unique(group):
        own = group == first
        shown = (~np.isnan(X[own]) & ~hidden[own]).any(0)
        assert not (shown & hidden[own].any(0)).any()
    assert hidden.any()


def test_intervals_cover_the_cells_of_rows_without_copies():
    X = joined_twice()
    truth = np.concatenate([TRUTH, TRUTH])
    unknown = np.isnan(X[:40]) & np.isnan(X[40:])
    unknown = np.concatenate([unknown, unknown])
    auto = AutoCompleter(["mean", "knn", "svd"], random_state=0).fit(X)
    low, high = auto.predict_interval(X, 0.9)
    assert ((low <= truth) & (truth <= high))[unknown].mean() > 0.6


@pytest.mark.parametrize(
    "completer",
    [
        TreesCompleter(n_estimators=20, random_state=0),
        ChainedCompleter(n_draws=8, max_iter=1, random_state=0),
    ],
)
def test_no_tree_has_seen_a_copy_of_the_row_that_it_predicts(completer):
    noise = np.random.RandomState(0).randn(60, 4)
    found = completer.fit(np.repeat(noise, 2, 0)).reconstruction_[::2]
    assert abs(np.corrcoef(found.ravel(), noise.ravel())[0, 1]) < 0.2


def test_weights_of_a_stack_are_judged_on_rows_without_copies(monkeypatch):
    of, found = Stacking.of, []

    def recorded(residuals, rows, *others, **known):
        found.append(np.unique(rows))
        return of(residuals, rows, *others, **known)

    monkeypatch.setattr(Stacking, "of", recorded)
    AutoCompleter(["mean", "knn"], random_state=0).fit(joined_twice())
    assert max(map(len, found)) <= 40 + 5  # a few have too few common cells


def test_empty_rows_and_columns_change_no_other_held_out_cell():
    X = joined_twice()[:40]
    wider = np.full((42, 8), np.nan)
    rows, cols = np.delete(np.arange(42), [3, 20]), np.delete(np.arange(8), [0, 5])
    wider[np.ix_(rows, cols)] = X
    own, other = (SVDCompleter()._drawn(cells, 0.1, 0) for cells in (X, wider))
    np.testing.assert_array_equal(other[np.ix_(rows, cols)], own)


@pytest.mark.parametrize("pattern", ["mcar", "rows", "like_missing"])
def test_splits_hold_out_the_cells_of_copies_together(pattern):
    cells = Entries(np.repeat(TRUTH, 2, 0))
    for train, test in CellSplit(pattern, n_splits=3, random_state=0).split(cells):
        parts = [
            {*zip(cells.rows[part] // 2, cells.cols[part], strict=True)}
            for part in (train, test)
        ]
        assert not parts[0] & parts[1] and len(train) + len(test) == len(cells)


def test_ratings_that_occur_twice_are_held_out_together():
    cells = Entries(np.repeat(TRUTH, 2, 0))
    place = cells.rows, cells.cols, torch.from_numpy(cells.values)
    data = SparseObserved.of(*place, cells.matrix_shape)
    train, held_out = data.split(0.1, 0)
    assert 0.05 < len(held_out.values) / len(cells) < 0.15
    assert not np.isin(held_out.values, train.values).any()


def test_noise_is_chosen_on_halves_without_common_copies():
    rng = np.random.RandomState(0)
    truth = rng.randn(40, 2) @ rng.randn(2, 12) + 0.7 * rng.randn(40, 12)
    whole = torch.from_numpy(np.repeat(truth, 2, 0))
    mask = torch.from_numpy(rng.rand(80, 12) > 0.2)
    twice = FoldIn.of(whole, whole, mask).noise
    once = FoldIn.of(whole[::2], whole[::2], mask[::2]).noise
    assert once / 3 < twice < 3 * once
