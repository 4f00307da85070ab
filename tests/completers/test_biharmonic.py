"""Approximate solutions of Poisson's equation, twice."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from skmc.completers import biharmonic
from skmc.completers.biharmonic import InverseSquare, _laplacian


def scattered(*shape):
    return np.random.RandomState(0).random_sample(shape) < 0.9


def block(*shape):
    mask = np.zeros(shape, bool)
    mask[1:-1, 1:-3] = True
    return mask


def all_but_one(*shape):
    mask = np.ones(shape, bool)
    mask[0, -1] = False
    return mask


def part(mask):
    """The negative Laplacian among the pixels of a mask."""
    D = sp.csr_array(-_laplacian(mask)[:, mask.ravel()])
    D.sum_duplicates()
    return D


@pytest.mark.parametrize("pixels", [scattered, block, all_but_one])
@pytest.mark.parametrize("shape", [(26, 23), (3, 150), (40, 12)])
def test_few_levels_approximate_the_inverse(pixels, shape, monkeypatch):
    mask = pixels(*shape)
    D = part(mask)
    n, dense = D.shape[0], D.toarray()
    exact = InverseSquare(D, mask)(np.eye(n))
    np.testing.assert_allclose(dense @ dense @ exact, np.eye(n), atol=1e-5)
    monkeypatch.setattr(biharmonic, "LARGE", 10)
    monkeypatch.setattr(biharmonic, "FEW", 10)
    inverse = InverseSquare(D, mask)
    approximate = inverse(np.eye(n))
    scale = np.abs(approximate).max()
    np.testing.assert_allclose(approximate, approximate.T, atol=1e-5 * scale)
    half = inverse._cycle(np.eye(n, dtype=np.float32), 0, (), biharmonic.STEPS[::-1])
    sizes = np.linalg.svd(dense @ half, compute_uv=False)
    assert sizes[0] < 6 * sizes[-1]


def test_only_many_connected_pixels_need_levels():
    mask = np.zeros((600, 600), bool)
    mask[::2] = True
    assert not InverseSquare(part(mask), mask)._levels
    mask = all_but_one(300, 300)
    assert [
        len(level[0].indptr) - 1 for level in InverseSquare(part(mask), mask)._levels
    ] == [300**2 - 1, 150**2, 75**2]
