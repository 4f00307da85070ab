"""The choice of hyper-parameters by trials."""

from __future__ import annotations

import pytest

from skmc.base import Trials
from skmc.linalg import Randomness
from skmc.solvers import HardRank


def test_an_interrupt_while_cells_are_split_ends_the_choice():
    def split():
        raise KeyboardInterrupt

    trials = Trials(split, Randomness.of([0]))
    with pytest.raises(KeyboardInterrupt):
        trials.run(HardRank(1))
    assert trials.interrupted
