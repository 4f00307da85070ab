"""Metrics against scikit-learn, scikit-image and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import low_rank
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from skmc import metrics

M = np.abs(low_rank(12, 9, rank=4))
X = M + 0.1 * np.random.RandomState(0).randn(*M.shape)
CELLS = np.random.RandomState(1).rand(*M.shape) < 0.4


def test_errors_on_cells():
    assert metrics.mae(X, M, CELLS) == pytest.approx(
        mean_absolute_error(M[CELLS], X[CELLS])
    )
    assert metrics.rmse(X, M, CELLS) == pytest.approx(
        root_mean_squared_error(M[CELLS], X[CELLS])
    )
    spread = M.max() - M.min()
    assert metrics.nmae(X, M, CELLS) == pytest.approx(metrics.mae(X, M, CELLS) / spread)
    lost = np.square(X - M)[CELLS].sum() / np.square(M)[CELLS].sum()
    assert metrics.relative_error(X, M, CELLS) ** 2 == pytest.approx(lost)


def test_psnr_of_a_picture_with_peak_one():
    picture = M / M.max()
    assert metrics.psnr(X / M.max(), picture) == pytest.approx(
        peak_signal_noise_ratio(picture, X / M.max(), data_range=1.0)
    )
    assert metrics.psnr(picture, picture) == np.inf


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_the_peak_of_integers_is_that_of_their_type(dtype):
    dark = (20 * M).astype(dtype)
    expected = peak_signal_noise_ratio(dark, dark + dtype(3))
    assert metrics.psnr(dark + dtype(3), dark) == pytest.approx(expected)
    assert metrics.psnr(dark + 3.0, dark, peak=1) == pytest.approx(-20 * np.log10(3))


def test_a_mask_of_pixels_serves_all_channels():
    truth = np.random.RandomState(0).rand(6, 5, 3)
    found, pixels = truth + 0.1, np.eye(6, 5, dtype=bool)
    cells = np.repeat(pixels[:, :, None], 3, axis=2)
    assert metrics.psnr(found, truth, pixels) == metrics.psnr(found, truth, cells)


def test_ssim():
    assert metrics.ssim(M, M) == pytest.approx(1)
    assert metrics.ssim(X, M) < 1
    colors, found = np.stack([M, 2 * M, X], 2), np.stack([X, 2 * X, X], 2)
    assert metrics.ssim(found, colors, channel_axis=2) == pytest.approx(
        structural_similarity(colors, found, channel_axis=2, data_range=np.ptp(colors))
    )


def test_effective_rank():
    assert metrics.effective_rank(np.eye(5)) == pytest.approx(5)
    assert metrics.effective_rank(np.outer([1, 2], [3, 4, 5])) == pytest.approx(1)
    assert metrics.effective_rank(np.zeros((3, 2))) == 0


def test_unknown_cells_of_the_truth_do_not_count():
    truth = np.ma.masked_array(M, CELLS)
    assert metrics.mae(X, truth) == pytest.approx(metrics.mae(X, M, ~CELLS))


def test_degenerate_ranges():
    assert metrics.nmae(np.full((2, 2), 3.0), np.ones((2, 2))) == 2
    assert metrics.relative_error(np.ones((1, 1)), np.zeros((1, 1))) == np.inf
    assert metrics.relative_error(np.zeros((1, 1)), np.zeros((1, 1))) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, M[:3]), ValueError, "must share a shape"),
        ((X, M, CELLS.astype(int)), TypeError, "cells must be boolean"),
        ((X, M, np.zeros_like(CELLS)), ValueError, "cells selects no cell"),
        ((np.ma.masked_array(X, CELLS), M), ValueError, "X is missing at a compared"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        metrics.mae(*arguments)
