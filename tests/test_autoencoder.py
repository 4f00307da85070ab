"""AEMC and DLMC: what they recover, how layers are put together, new rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import make

from skmc import Observed, SVDCompleter, patterns
from skmc.completers.autoencoder import AutoencoderCompleter, nested
from skmc.folding import ForwardPass, LearnedInputs
from skmc.metrics import relative_error, rmse
from skmc.models import Autoencoder
from skmc.randomness import Randomness

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def draw(seed=0):
    return Randomness.of([seed], dtype=torch.float64)


def curve(n_rows=300, seed=0):
    """Points on a closed curve in ten dimensions, which no plane holds."""
    t = np.random.RandomState(seed).uniform(0, 2 * np.pi, (n_rows, 1))
    k = np.arange(5)
    return np.hstack([np.cos((1 + k % 3) * t + k), np.sin((1 + k % 3) * t + k**2)])


@pytest.fixture(scope="module")
def manifold():
    truth = curve()
    hidden = patterns.random(truth, 0.2, spare=True, random_state=1)
    return truth, hidden


@pytest.fixture(scope="module")
def fitted(manifold):
    truth, hidden = manifold
    completer = AutoencoderCompleter(lambda_weights=0.01, random_state=0, device="cpu")
    return completer.fit(np.ma.masked_array(truth, hidden))


def test_a_curve_is_recovered_as_no_plane_does(manifold, fitted):
    truth, hidden = manifold
    X = np.ma.masked_array(truth, hidden)
    planes = [SVDCompleter(rank).fit_transform(X) for rank in range(1, 9)]
    best = min(relative_error(X, truth, hidden) for X in planes)
    assert relative_error(fitted.reconstruction_, truth, hidden) < 0.5 * best


