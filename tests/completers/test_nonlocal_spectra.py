"""Spectra of `NonlocalCompleter`: pictures with many channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import make

from skmc import NonlocalCompleter, pictures
from skmc.cells import Observed
from skmc.completers.nonlocal_groups import spectra
from skmc.completers.nonlocal_groups.spectra import SpectralLowRank
from skmc.metrics import relative_error


def cube(side=24, n_bands=8, seed=0):
    """Two maps with edges, times smooth spectra."""
    wave = np.sin(np.arange(side) / 2)
    maps = np.sign(np.add.outer(wave, wave)), np.sign(np.add.outer(wave, -wave))
    band = np.linspace(0, 1, n_bands)
    shades = np.cos(2 * band) + 0.5, np.sin(3 * band)
    return sum(
        np.multiply.outer(one, shade) for one, shade in zip(maps, shades, strict=True)
    )


def missing_cells(shape, share=0.8, seed=0):
    return np.random.RandomState(seed).random_sample(shape) < share


def state_of(truth, missing, n_spectra=2):
    matrix = torch.from_numpy(truth.reshape(len(truth), -1))
    mask = torch.from_numpy(~missing.reshape(len(truth), -1))
    solver = SpectralLowRank(
        6,
        40,
        15,
        4,
        threshold=(0.5, 0.015),
        horizon=8,
        channels=truth.shape[2],
        n_spectra=n_spectra,
    )
    return solver.init(Observed(torch.where(mask, matrix, 0), mask))


@pytest.mark.long
def test_bands_of_a_pixel_determine_the_others():
    truth = cube()
    missing = missing_cells(truth.shape)
    found = pictures.complete(truth, missing, make(NonlocalCompleter))
    alone = pictures.complete(truth, missing, make(NonlocalCompleter, n_spectra=None))
    error = relative_error(found, truth, missing)
    assert error < 0.5 * relative_error(alone, truth, missing)


def test_a_correction_is_the_stationary_point():
    truth = cube()
    state = state_of(truth, missing_cells(truth.shape), 3)
    state = replace(state, picture=state.picture + 0.1)
    z = state.picture
    a = spectra._corrected(state, z)
    variance = z.flatten(1).var(1, correction=0)
    ratio = (variance / variance.max()).clamp_min(spectra.LEAST_VARIANCE)
    gap = torch.tensordot(state.spectra.T, spectra._error(state, a), 1)
    pull = (spectra.NOISE / ratio)[:, None, None] * (a - z)
    torch.testing.assert_close(gap, pull, atol=2e-4, rtol=2e-3)
    empty = ~state.mask.any(0)
    assert empty.any()
    assert torch.equal(a[:, empty], z[:, empty])  # no cell, no correction


def test_a_refit_keeps_what_the_spectra_explain():
    truth = cube()
    state = state_of(truth, np.zeros(truth.shape, bool))
    refitted = spectra._refitted(state)
    before, after = (
        spectra._picture(each, each.estimate) for each in (state, refitted)
    )
    torch.testing.assert_close(after, before, atol=1e-2, rtol=0)
    n = torch.eye(2)
    torch.testing.assert_close(refitted.spectra.T @ refitted.spectra, n)
    covariance = torch.cov(refitted.estimate.flatten(1))
    assert abs(covariance[0, 1]) < 1e-4 * covariance[0, 0]


def test_the_number_of_spectra_is_chosen_where_channels_can_help():
    truth, params = cube(16), {"max_iter": 4, "random_state": 0}

    def chosen(truth, missing, **more):
        X = np.ma.masked_array(truth, missing).reshape(len(truth), -1)
        completer = NonlocalCompleter(channels=truth.shape[2], **params, **more)
        return completer.fit(X).n_spectra_

    missing = missing_cells(truth.shape)
    assert chosen(truth, missing) == 4
    assert chosen(truth, missing, n_spectra=None) is None
    assert chosen(truth, missing, n_spectra=50) == 8
    assert chosen(truth[..., :4], missing[..., :4]) is None
    whole = np.repeat(missing[..., :1], 8, axis=2)
    assert chosen(truth, whole) is None


@pytest.mark.parametrize("n_bands", [5, 6])
def test_channels_in_another_order_give_the_same_answer(n_bands):
    truth = cube(16, n_bands)
    missing = missing_cells(truth.shape, 0.5)
    completer = make(NonlocalCompleter, n_spectra=3)
    found = pictures.complete(truth, missing, completer)
    reverse = pictures.complete(truth[..., ::-1], missing[..., ::-1], completer)
    np.testing.assert_allclose(reverse[..., ::-1], found, atol=1e-2)


@pytest.mark.filterwarnings("ignore:.*no observed cell:UserWarning")
@pytest.mark.parametrize("shape", [(1, 1, 9), (1, 7, 6), (5, 1, 6), (3, 4, 12)])
@pytest.mark.parametrize("n_spectra", [1, "auto"])
def test_tiny_cubes(shape, n_spectra):
    truth = np.random.RandomState(0).randn(*shape)
    missing = missing_cells(shape, 0.5)
    missing[0, 0, 0] = False
    X = np.ma.masked_array(truth, missing).reshape(shape[0], -1)
    completer = NonlocalCompleter(channels=shape[2], n_spectra=n_spectra, max_iter=4)
    assert np.isfinite(completer.fit_transform(X)).all()
    assert np.isfinite(completer.complete_picture(X)).all()


def test_constant_bands_and_a_band_without_cells():
    truth = cube(16)
    truth[..., 2] = 3
    missing = missing_cells(truth.shape, 0.5)
    found = pictures.complete(truth, missing, NonlocalCompleter(max_iter=8))
    np.testing.assert_allclose(found[..., 2], 3, atol=0.1)
    constant = np.full(truth.shape, 7.0)
    same = pictures.complete(constant, missing, NonlocalCompleter(max_iter=4))
    np.testing.assert_allclose(same, 7, atol=1e-6)
    missing[..., 3] = True
    with pytest.raises(ValueError, match="channel 3 of picture has no observed"):
        pictures.complete(truth, missing)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_types_and_observed_cells_stay(dtype):
    truth = (30 * (cube(16) + 4)).astype(dtype)
    missing = missing_cells(truth.shape, 0.5)
    found = pictures.complete(truth, missing, NonlocalCompleter(max_iter=8))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[~missing], truth[~missing])
    assert relative_error(found.astype(float), truth.astype(float), missing) < 0.1
