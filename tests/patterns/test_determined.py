"""Which cells a mask determines, against the rank of a dense Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

from skmc.patterns import is_determined


def by_rank(mask, rank):
    """A cell is determined if its derivative lies in the span of those observed."""
    rng = np.random.RandomState(1)
    (m, n), r = mask.shape, rank
    U, V = rng.randn(m, r), rng.randn(n, r)
    J = np.zeros((m, n, m + n, r))
    for i in range(m):
        for j in range(n):
            J[i, j, i], J[i, j, m + j] = V[j], U[i]
    J = J.reshape(m, n, -1)
    _, s, Vt = np.linalg.svd(J[mask])
    kernel = Vt[(s > 1e-9 * s[0]).sum() :]
    return (np.abs(J @ kernel.T) < 1e-7).all(-1)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("shape", [(12, 9), (7, 13)])
def test_it_is_the_kernel_of_the_jacobian(shape, share, rank):
    rng = np.random.RandomState(rank)
    for _ in range(5):
        mask = rng.rand(*shape) < share
        found = is_determined(mask, rank)
        np.testing.assert_array_equal(found, by_rank(mask, rank))


def test_blocks_do_not_determine_each_other():
    mask = np.zeros((20, 16), bool)
    mask[:10, :8] = mask[10:, 8:] = True
    np.testing.assert_array_equal(is_determined(mask, 2), mask)


def test_a_large_mask():
    rng = np.random.RandomState(0)
    mask = rng.rand(2000, 1500) < 0.02
    rows, cols = mask.sum(1) >= 3, mask.sum(0) >= 3
    found = is_determined(mask, 3)
    np.testing.assert_array_equal(found[rows][:, cols].all(1), True)
    assert not (found & ~mask)[~rows].any()


@pytest.mark.parametrize(
    ("mask", "rank", "message"),
    [
        (np.ones((3, 2)), 1, "boolean matrix.*~np.isnan"),
        (np.ones(3, bool), 1, "boolean matrix"),
        (np.ones((3, 2), bool), 3, "from 1 to min.*=2"),
        (np.ones((3, 2), bool), 0, "from 1 to"),
        (np.ones((3, 2), bool), 1.5, "integer"),
    ],
)
def test_errors_say_what_to_pass(mask, rank, message):
    with pytest.raises(ValueError, match=message):
        is_determined(mask, rank)
