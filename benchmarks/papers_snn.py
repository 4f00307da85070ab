"""Numbers of the figures of the paper on spectral neural networks (SNN)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch
from common import Results, run

from skmc.datasets import load_mnist_digits
from skmc.linalg import ACTIVATIONS
from skmc.loop import solve
from skmc.metrics import psnr
from skmc.models import SpectralNetwork
from skmc.sensing import (
    DiagonalMeasurements,
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    Measured,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
)
from skmc.solvers import GradientFlow
from skmc.terms import MeasurementError

N_SEEDS = 10
N_COMMUTING = 5
NOISES = 0.0, 1e-2
STEPS = 20000
TO_THE_END = 100000
SHARE = 0.6  # of measurements to cells, for the digits


def effective_rank(X: np.ndarray) -> float:
    """The exponential of the entropy of the normalized singular values.

    Roy, Vetterli. The effective rank. EUSIPCO 2007.
    """
    s = np.linalg.svd(X, compute_uv=False)
    p = s[s > 0] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def truth(rng: np.random.RandomState) -> np.ndarray:
    """``T T'`` with uniform ``T`` (10, 6), of nuclear norm one."""
    T = rng.rand(10, 6)
    X = T @ T.T
    return X / np.linalg.norm(X, "nuc")


def commuting(results: Results) -> None:
    """Figure 2: measurements that share their singular vectors, spectral start."""
    for noise, seed in product(NOISES, range(N_COMMUTING)):
        key = ("commuting", "T T'", f"noise {noise:g}", "gradient flow", seed)
        results.measure(key, one_commuting, seed, noise, None, TO_THE_END, limit=None)
    for seed in range(3):
        key = ("commuting", "T T'", "noise 0", "learning rate 0.01", seed)
        results.measure(key, one_commuting, seed, 0.0, 1e-2, limit=None)


def one_commuting(
    seed: int, noise: float, lr: float | None, max_iter: int = STEPS
) -> dict[str, float]:
    """Gradient flow from the spectral start: its end and its fitted rate."""
    rng = np.random.RandomState(seed)
    X = truth(rng)
    sigma, Phi = (part[..., ::-1].copy() for part in np.linalg.eigh(X))
    spectra = -np.sort(-rng.rand(50, 10), 1)
    u, v = -np.sort(-rng.rand(2, 2, 10), -1)
    alpha = rng.rand(1, 2)
    G = np.linalg.qr(rng.randn(10, 10))[0]
    basis = torch.from_numpy(Phi)
    A = DiagonalMeasurements(basis, torch.from_numpy(spectra), basis)
    y = A.forward(torch.from_numpy(X)) + noise * torch.from_numpy(rng.randn(50))
    U, V = (torch.from_numpy((Phi * d[:, None, :]) @ G) for d in (u, v))
    model = SpectralNetwork(U, V, [torch.from_numpy(alpha)], ACTIVATIONS["tanh"])
    steps, paths = [], []

    def look(progress: Any) -> None:
        steps.append(progress.n_iter)
        paths.append((Phi.T @ progress.state.X.numpy() @ Phi).diagonal())

    flow = GradientFlow(model, [MeasurementError(A, y)], lr=lr)
    solution = solve(
        flow, Measured.of(A, y), max_iter=max_iter, callbacks=[look], check_every=100
    )
    path, times = np.array(paths), np.array(steps) * (lr or 1)
    # The limit: with noise, the least-squares answer instead of sigma.
    limit = np.linalg.lstsq(spectra, y.numpy())[0]
    gaps = np.linalg.norm(path - limit, axis=1)
    half = len(gaps) // 2
    convex = NuclearSensingRegressor(1e-5, device="cpu").fit(A, y.numpy()).matrix_
    end = solution.X.numpy()
    return {
        "nuclear norm": np.linalg.norm(end, "nuc"),
        "nuclear norm of least squares": np.abs(limit).sum(),
        "distance": np.linalg.norm(end - convex) / np.linalg.norm(convex),
        "missed": np.linalg.norm(path[-1] - sigma),
        "rate": -np.polyfit(times[half:], np.log(gaps[half:]), 1)[0],
    }


GAUSSIAN: dict[str, Any] = {
    "linear": LinearSensingRegressor(device="cpu"),
    "three factors": FactorizedSensingRegressor(device="cpu"),
    "SNN": SpectralSensingRegressor(random_state=0, device="cpu"),
    "SNN (4, 8, 16)": SpectralSensingRegressor(
        (4, 8, 16), random_state=0, device="cpu"
    ),
    "nuclear norm": NuclearSensingRegressor(0, device="cpu"),
}
PAPER = {"linear": (1.5, 7), "SNN": (0.95, 20)}  # effective rank and PSNR


def sensed(name: str, seed: int) -> dict[str, float]:
    rng = np.random.RandomState(seed)
    X = truth(rng)
    A = rng.randn(50, 10, 10)
    y = np.tensordot(A, X) + 1e-2 * rng.randn(50)
    model = GAUSSIAN[name]
    found = model.fit(A, y).matrix_
    relative = np.linalg.norm(model.predict(A) - y) / np.linalg.norm(y)
    return {
        "training error": float(relative),
        "nuclear norm": float(np.linalg.norm(found, "nuc")),
        "effective rank": effective_rank(found),
        "psnr": psnr(found, X),
    }


def gaussian(results: Results) -> None:
    """Figures 3 and 4: Gaussian measurements, start near zero."""
    case = ("gaussian", "T T'", "noise 0.01")
    for seed in range(N_SEEDS):
        for name in GAUSSIAN:
            results.measure((*case, name, seed), sensed, name, seed, limit=None)
    for k, measure in enumerate(("effective rank", "psnr")):
        printed = {f"{name}, {measure}": each[k] for name, each in PAPER.items()}
        results.published(*case, measure, printed)


DIGITS: dict[str, Any] = {
    "linear": LinearSensingRegressor(device="cpu"),
    "SNN": SpectralSensingRegressor((4,), random_state=0, device="cpu"),
    "SNN (4, 8, 16)": SpectralSensingRegressor(
        (4, 8, 16), random_state=0, device="cpu", max_iter=1000
    ),
    "nuclear norm": NuclearSensingRegressor(device="cpu"),
}


def drawn(digit: int, name: str) -> dict[str, float]:
    data = load_mnist_digits()
    place = int(np.argmax(data.target == digit))
    X = data.images[place].astype(float)
    rng = np.random.RandomState(digit)
    n = round(SHARE * X.size)
    A = rng.randn(n, *X.shape)
    y = np.tensordot(A, X)
    y = y + 1e-2 * rng.randn(n)
    return {"psnr": float(psnr(DIGITS[name].fit(A, y).matrix_, X)), "number": place}


def digits(results: Results) -> None:
    """Figure 5: ten digits from Gaussian measurements."""
    for digit in range(10):
        for name in DIGITS:
            key = ("digits", f"digit {digit}", "60 % as many measurements", name)
            results.measure(key, drawn, digit, name, limit=None)


if __name__ == "__main__":
    run(__doc__, commuting, gaussian, digits)
