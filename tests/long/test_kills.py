"""``kill -9`` at random moments, and suspended processes: nothing is lost."""

from __future__ import annotations

import pytest
from children import COMPLETERS, apart, kill_fits, kill_saves, kill_sorts, suspend
from own_method import OwnCompleter

pytestmark = pytest.mark.long
SEED = 0


def test_killed_fits_resume_to_the_same_answer(tmp_path):
    completers = [*COMPLETERS, OwnCompleter(max_iter=300)]
    found = apart(kill_fits, completers, 2, SEED, tmp_path)
    assert found["tried"] == 12 and not found["lost"], (SEED, found)


def test_a_file_is_the_old_fit_or_the_new_one(tmp_path):
    found = apart(kill_saves, 10, SEED, tmp_path)
    assert not found["lost"], (SEED, found)


def test_killed_sorting_is_done_again(tmp_path):
    found = apart(kill_sorts, 8, SEED, tmp_path)
    assert not found["lost"], (SEED, found)


def test_suspension_counts_as_time(tmp_path):
    found = apart(suspend, 4.0, tmp_path)
    assert not found["lost"], found
