"""Metrics against scikit-learn, scikit-image and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import low_rank
from scipy.stats import energy_distance, norm
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


def test_crps_is_that_of_a_normal_distribution():
    """Gneiting and Raftery's closed form, for N(0, 1) and a truth of 1."""
    z = 1.0
    exact = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)
    draws = np.random.RandomState(0).randn(200, 40, 50)
    assert metrics.crps(draws, np.full((40, 50), z)) == pytest.approx(exact, abs=0.01)
    assert metrics.crps(X[None], M, CELLS) == pytest.approx(metrics.mae(X, M, CELLS))
    apart = np.abs(draws[:5, None] - draws[None, :5]).sum((0, 1)) / (2 * 5 * 4)
    by_hand = (np.abs(draws[:5] - z).mean(0) - apart).mean()
    assert metrics.crps(draws[:5], np.full((40, 50), z)) == pytest.approx(by_hand)


def test_the_best_interval_is_central():
    truth = np.random.RandomState(0).randn(200, 200)

    def score(low, high):
        ends = np.full(truth.shape, low), np.full(truth.shape, high)
        return metrics.interval_score(*ends, truth, 0.9)

    best = score(*norm.ppf([0.05, 0.95]))
    for levels in ([0.02, 0.92], [0.1, 0.9], [0.01, 0.99]):
        assert score(*norm.ppf(levels)) > best
    with pytest.raises(ValueError, match="low exceeds high"):
        score(1, 0)


def test_energy_distance_sees_spread_and_not_order_or_units():
    rng = np.random.RandomState(0)
    truth = rng.randn(1200, 2) @ [[1, 0.8], [0, 0.6]]
    draw, mean = truth.copy(), truth.copy()
    draw[:600, 1] = 0.8 * truth[:600, 0] + 0.6 * rng.randn(600)
    mean[:600, 1] = 0.8 * truth[:600, 0]
    assert metrics.rmse(mean, truth) < metrics.rmse(draw, truth)
    assert 3 * metrics.energy_distance(draw, truth) < metrics.energy_distance(
        mean, truth
    )
    assert metrics.energy_distance(rng.permutation(truth), truth) < 1e-12
    unit = np.array([1e-3, 1e3])
    assert metrics.energy_distance(draw * unit, truth * unit) == pytest.approx(
        metrics.energy_distance(draw, truth)
    )
    one = metrics.energy_distance(draw[:, :1] + 0.1, truth[:, :1])
    scaled = [a[:, 0] / truth[:, 0].std() for a in (draw + 0.1, truth)]
    assert one == pytest.approx(energy_distance(*scaled) ** 2)
    with pytest.raises(ValueError, match="3 columns, and M has 2"):
        metrics.energy_distance(np.ones((2, 3)), truth)
    hole = np.array([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="X has missing cells"):
        metrics.energy_distance(hole, truth)
    with pytest.raises(ValueError, match="M has no row without a missing cell"):
        metrics.energy_distance(truth, hole)
