"""Errors of held-out cells as draws."""

from __future__ import annotations

import numpy as np

from skmc.model_selection import HeldOutErrors


def test_errors_of_a_row_are_from_one_donor():
    """Two columns are correlated; another one has few donors, and the last has none."""
    rng = np.random.RandomState(0)
    pairs = rng.randn(300, 1) + 0.3 * rng.randn(300, 2)
    values = np.r_[pairs.ravel(), 5.0, 6.0]
    donors = np.r_[np.repeat(np.arange(300), 2), 500, 501]
    cols = np.r_[np.tile([0, 1], 300), 2, 2]
    errors = HeldOutErrors.of(values, donors, cols)
    missing = np.tile([True, True, False, False], (2000, 1))
    missing[:100] = True
    found = errors.draw(missing, np.random.RandomState(1))
    assert (found[~missing] == 0).all()
    assert np.corrcoef(found[:, :2].T)[0, 1] > 0.9
    assert set(found[:100, 2]) == {5.0, 6.0}
    assert len(np.unique(found[:100, 3])) > 50
    np.testing.assert_allclose(found[:, 0].std(), pairs[:, 0].std(), rtol=0.1)
    assert len(np.unique(found[:, 0])) > 290
