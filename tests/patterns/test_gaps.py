"""Gaps of series and tails of rows."""

import numpy as np
import pytest

from skmc import patterns
from skmc.model_selection import CellSplit
from skmc.patterns.gaps import gap_lengths, moved_gaps


def test_lengths_of_gaps():
    missing = np.array([[1, 0, 1, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]], bool).T
    assert gap_lengths(missing).T.tolist() == [[1, 0, 2, 2, 0, 3, 3, 3], [0] * 8]
    so_far = gap_lengths(missing, so_far=True).T.tolist()
    assert so_far == [[1, 0, 1, 2, 0, 1, 2, 3], [0] * 8]


def test_hidden_gaps_are_like_the_missing_ones():
    rng = np.random.RandomState(0)
    outage = np.repeat(rng.rand(100, 1) < 0.2, 5, axis=0) & np.ones((1, 10), bool)
    hidden = moved_gaps(outage, ~outage, 400, rng)
    counts = hidden.sum(1)[hidden.any(1)]
    assert (counts == 10).mean() > 0.95  # all series together
    assert not (hidden & outage).any()
    assert 0.08 < hidden.sum() / (~outage).sum() < 0.15
    runs = np.zeros((500, 10), bool)
    for s, start in enumerate(rng.randint(0, 480, 10)):
        runs[start : start + 20, s] = True
    hidden = moved_gaps(runs, ~runs, 150, rng)
    assert np.median(gap_lengths(hidden)[hidden]) == 20
    assert hidden.sum(1).max() <= 3  # not together
    most = rng.rand(60, 4) < 0.8
    hidden = moved_gaps(most, ~most, 43, rng)
    assert (hidden.sum(0) <= (~most).sum(0) / 2).all()
    single = moved_gaps(np.zeros((50, 4), bool), np.ones((50, 4), bool), 20, rng)
    assert single.sum() == 20


def test_gaps_are_hidden_where_they_belong():
    # In their own series; if it has no room, at the last time of others.
    lost = np.zeros((200, 8), bool)
    lost[50:60, 2] = lost[100:130, 2] = True
    hidden = moved_gaps(lost, ~lost, 40, np.random.RandomState(0))
    assert hidden[:, 2].any() and not np.delete(hidden, 2, 1).any()
    last = np.zeros((200, 8), bool)
    last[120:, 5] = True
    hidden = np.delete(moved_gaps(last, ~last, 160, np.random.RandomState(0)), 5, 1)
    assert set(hidden[120:].sum(0)) == {0, 80} and not hidden[:120].any()
    lost[180:, 5] = True
    X = np.where(lost, np.nan, 1.0)
    found = patterns.like_missing(X, 0.1, random_state=0)
    assert gap_lengths(found).max() > 20 and not found[lost].any()
    other = patterns.like_missing(np.ones((200, 8)), 0.1, missing=lost, random_state=0)
    assert other[180:].any() and gap_lengths(other).max() >= 30
    with pytest.raises(ValueError, match="missing must be boolean"):
        patterns.like_missing(X, missing=lost[:, 1:])
    [(train, test)] = CellSplit("like_missing", 1, random_state=0).split(X)
    assert len(train) + len(test) == (~lost).sum() and 4 < len(test) < len(train)


def test_runs_and_tails():
    X = np.ones((40, 30))
    X[:, 0] = np.nan
    for fraction in 0.0, 0.1, 0.5, 0.75, 1.0:
        hidden = patterns.runs(X, 3, fraction, random_state=0)
        share = hidden.sum() / (40 * 29)
        assert share == pytest.approx(min(fraction, 0.75), abs=0.02)
        lengths = gap_lengths(hidden)
        assert set(lengths[3:-3].ravel()) <= {0, 1, 2, 3}  # parts at the first and last
        assert not hidden[:, 0].any()
    hidden = patterns.row_tail(X, 4, 0.1, random_state=0)
    assert (hidden.sum(1) == np.where(hidden.any(1), 4, 0)).all()
    assert hidden.sum() == 16 and hidden[:, -4:].sum() == 16
    assert patterns.row_tail(X, 4, 0.001, random_state=0).sum() == 4
    assert not patterns.row_tail(X, 4, 0.0).any()
    for hide, most in (patterns.runs, 40), (patterns.row_tail, 30):
        with pytest.raises(ValueError, match=rf"length must lie in \[1, {most}\)"):
            hide(X, most)
