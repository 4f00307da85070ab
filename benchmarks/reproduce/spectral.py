"""The figures of the paper on spectral neural networks, as pictures and numbers."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from benchmarks.shared.pages import chart, save_figure, table, write_page
from benchmarks.shared.results import Results
from skmc.linalg import ACTIVATIONS, Randomness
from skmc.loop import solve
from skmc.metrics import psnr
from skmc.models import FactorProduct, SpectralNetwork
from skmc.sensing import (
    DenseMeasurements,
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
CONSTANT = (1e-2, 1e-3, 1e-4)  # a tenth diverges
SHARE = 0.6  # of measurements to cells, for the digits
RATES = (1e-1, 1e-2, 1e-3, 1e-4)


def effective_rank(X: np.ndarray) -> float:
    """The exponential of the entropy of the normalized singular values.

    Roy, Vetterli. The effective rank. EUSIPCO 2007.
    """
    s = np.linalg.svd(X, compute_uv=False)
    p = s[s > 0] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def figures(results: Results) -> None:
    """Draw the pictures and keep the numbers of the parts that are not recorded."""
    commuting(results)
    for first, part in (("gain", gaussian), ("digit 0", digits)):
        if first not in results.records:
            for key, record in part().items():
                results.keep(key, record)


def truth(rng: np.random.RandomState) -> np.ndarray:
    """``T T'`` with uniform ``T`` (10, 6), of nuclear norm one."""
    T = rng.rand(10, 6)
    X = T @ T.T
    return X / np.linalg.norm(X, "nuc")


def commuting(results: Results) -> None:
    """Figure 2: measurements that share their singular vectors, spectral start."""
    for noise, seed in product(NOISES, range(N_COMMUTING)):
        key = f"noise {noise:g}, seed {seed}"
        if key not in results.records:
            results.keep(key, one_commuting(seed, noise, None, TO_THE_END)["end"])
    if "rates" not in results.records:
        draw_commuting({lr: one_commuting(0, 1e-2, lr) for lr in CONSTANT})
        rates = [one_commuting(seed, 0.0, CONSTANT[0])["rate"] for seed in range(3)]
        results.keep("rates", {"slowest": min(rates), "fastest": max(rates)})


def one_commuting(
    seed: int, noise: float, lr: float | None, max_iter: int = STEPS
) -> dict:
    """Gradient flow from the spectral start: its path, its end, its fitted rate."""
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
    steps, paths, losses = [], [], []

    def look(progress):
        steps.append(progress.n_iter)
        losses.append(float(progress.state.objective))
        paths.append((Phi.T @ progress.state.X.numpy() @ Phi).diagonal())

    flow = GradientFlow(model, [MeasurementError(A, y)], lr=lr)
    solution = solve(
        flow, Measured.of(A, y), max_iter=max_iter, callbacks=[look], check_every=100
    )
    path, steps = np.array(paths), np.array(steps)
    # The limit: with noise, the least-squares answer instead of sigma.
    limit = np.linalg.lstsq(spectra, y.numpy())[0]
    gaps = np.linalg.norm(path - limit, axis=1)
    half = len(gaps) // 2
    convex = NuclearSensingRegressor(1e-5, device="cpu").fit(A, y.numpy()).matrix_
    end = solution.X.numpy()
    return {
        "end": {
            "nuclear norm": np.linalg.norm(end, "nuc"),
            "of least squares": np.abs(limit).sum(),
            "distance": np.linalg.norm(end - convex) / np.linalg.norm(convex),
            "missed": np.linalg.norm(path[-1] - sigma),
        },
        "rate": -np.polyfit(steps[half:] * (lr or 1), np.log(gaps[half:]), 1)[0],
        "curves": (steps, losses, path, gaps, sigma),
    }


def draw_commuting(curves: dict) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(17, 3.8), layout="constrained")
    for number, (lr, found) in enumerate(curves.items()):
        steps, losses, path, gaps, sigma = found["curves"]
        color = f"C{number}"
        axes[0].loglog(steps, losses, color=color, label=f"lr {lr:g}")
        axes[1].semilogx(steps, np.abs(path).sum(1), color=color)
        for i, style in enumerate(("-", "--", ":")):
            axes[2].semilogx(steps, path[:, i], style, color=color)
        axes[3].semilogy(steps, gaps, color=color)
    for i in range(3):
        axes[2].axhline(sigma[i], color="black", lw=0.6)
    axes[1].axhline(1, color="black", lw=0.6)
    titles = "training error", "nuclear norm", "three singular values", "|s - s(end)|"
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel="iteration")
    axes[0].legend()
    save_figure(figure, "spectral-commuting")


def gaussian() -> dict[str, dict]:
    """Figures 3 and 4: Gaussian measurements, start near zero."""
    models = {
        "linear": LinearSensingRegressor(device="cpu"),
        "three factors": FactorizedSensingRegressor(device="cpu"),
        "SNN": SpectralSensingRegressor(random_state=0, device="cpu"),
        "SNN (4, 8, 16)": SpectralSensingRegressor(
            (4, 8, 16), random_state=0, device="cpu"
        ),
        "nuclear norm": NuclearSensingRegressor(0, device="cpu"),
    }
    scores: dict[str, list] = {name: [] for name in models}
    shown = {}
    for seed in range(N_SEEDS):
        rng = np.random.RandomState(seed)
        X = truth(rng)
        A = rng.randn(50, 10, 10)
        y = np.tensordot(A, X) + 1e-2 * rng.randn(50)
        for name, model in models.items():
            found = model.fit(A, y).matrix_
            scores[name].append(
                (
                    np.linalg.norm(model.predict(A) - y) / np.linalg.norm(y),
                    np.linalg.norm(found, "nuc"),
                    effective_rank(found),
                    psnr(found, X),
                )
            )
            if seed == 0:
                shown[name] = found
            print(f"figure 3: seed {seed}", name, scores[name][-1], flush=True)
        if seed == 0:
            shown = {"truth": X, **shown}
            draw_gaussian(A, y, X)
            draw_matrices(shown, X)
    gain = np.array(scores["SNN"])[:, 3] - np.array(scores["linear"])[:, 3]
    records: dict[str, dict] = {
        f"gaussian, {name}": dict(zip(MEASURES, np.median(s, axis=0), strict=True))
        for name, s in scores.items()
    }
    return {**records, "gain": {"mean": gain.mean(), "least": gain.min()}}


def draw_gaussian(A: np.ndarray, y: np.ndarray, X: np.ndarray) -> None:
    """Plain descent with constant rates, the largest that does not diverge first."""
    operator, results = DenseMeasurements(A), torch.from_numpy(y)
    data = Measured.of(operator, results)
    eye = torch.eye(10, dtype=torch.float64)
    starts = {
        "linear": lambda: FactorProduct([0 * eye]),
        "three factors": lambda: FactorProduct([1e-2 * eye] * 3),
        "SNN": lambda: SpectralNetwork.near_zero(
            0 * eye, (2,), ACTIVATIONS["tanh"], Randomness.of([0], dtype=eye.dtype)
        ),
    }
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for number, (name, start) in enumerate(starts.items()):
        for lr in RATES:
            steps, norms, losses, tops = [], [], [], []

            def look(progress, steps=steps, norms=norms, losses=losses, tops=tops):
                s = torch.linalg.svdvals(progress.state.X)
                steps.append(progress.n_iter)
                losses.append(float(progress.state.objective))
                norms.append(float(s.sum()))
                tops.append(s[:3].numpy())

            flow = GradientFlow(start(), [MeasurementError(operator, results)], lr=lr)
            solution = solve(
                flow, data, max_iter=20000, callbacks=[look], check_every=50
            )
            if solution.status[0] != "diverged":
                break
        color = f"C{number}"
        axes[0].loglog(steps, losses, color=color, label=f"{name}, lr {lr:g}")
        axes[1].semilogx(steps, norms, color=color)
        for style, path in zip(("-", "--", ":"), np.array(tops).T, strict=True):
            axes[2].semilogx(steps, path, style, color=color)
    axes[1].axhline(1, color="black", lw=0.6)
    for s in np.linalg.svd(X, compute_uv=False)[:3]:
        axes[2].axhline(s, color="black", lw=0.6)
    titles = "training error", "nuclear norm", "three singular values"
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel="iteration")
    axes[0].legend()
    save_figure(figure, "spectral-gaussian")


def draw_matrices(matrices: dict, X: np.ndarray) -> None:
    figure, axes = plt.subplots(
        1, len(matrices), figsize=(2.6 * len(matrices), 3.5), layout="constrained"
    )
    for ax, (name, found) in zip(axes, matrices.items(), strict=True):
        ax.imshow(found, vmin=X.min(), vmax=X.max(), cmap="gray")
        ax.set(xticks=[], yticks=[])
        score = "" if name == "truth" else f"\n{psnr(found, X):.1f} dB"
        ax.set_title(name + score)
    save_figure(figure, "spectral-matrices")


def digits() -> dict[str, dict]:
    """Figure 5: ten digits from Gaussian measurements."""
    file = Path(os.environ["SKMC_DATA"]) / "digits" / "mnist_train_first100.npz"
    with np.load(file) as stored:
        images, labels = stored["images"], stored["labels"]
    first = [int(np.argmax(labels == digit)) for digit in range(10)]
    models = {
        "linear": LinearSensingRegressor(device="cpu"),
        "SNN": SpectralSensingRegressor((4,), random_state=0, device="cpu"),
        "SNN (4, 8, 16)": SpectralSensingRegressor(
            (4, 8, 16), random_state=0, device="cpu", max_iter=1000
        ),
        "nuclear norm": NuclearSensingRegressor(device="cpu"),
    }
    figure, axes = plt.subplots(
        len(models) + 1, 10, figsize=(14, 1.5 * len(models) + 2), layout="constrained"
    )
    records = {}
    for digit, place in enumerate(first):
        X = images[place] / 255.0
        rng = np.random.RandomState(digit)
        n = round(SHARE * X.size)
        A = rng.randn(n, *X.shape)
        y = np.tensordot(A, X)
        y = y + 1e-2 * rng.randn(n)
        scores: dict[str, float] = {"number": place}
        for ax in axes[:, digit]:
            ax.set(xticks=[], yticks=[])
        axes[0, digit].imshow(X, cmap="gray")
        for row, (name, model) in enumerate(models.items(), start=1):
            found = model.fit(A, y).matrix_
            scores[name] = float(psnr(found, X))
            axes[row, digit].imshow(found, cmap="gray", vmin=0, vmax=1)
            axes[row, digit].set_title(f"{scores[name]:.2f}", fontsize=9)
            axes[row, 0].set_ylabel(name, fontsize=9)
        records[f"digit {digit}"] = scores
        print("figure 5:", scores, flush=True)
    save_figure(figure, "spectral-digits")
    return records


MEASURES = "training error", "nuclear norm", "effective rank", "PSNR"
PAPER = {"linear": "1.5, 7", "SNN": ".95, 20"}
MODELS = "linear", "three factors", "SNN", "SNN (4, 8, 16)", "nuclear norm"


def write(results: Results) -> None:
    """Write ``docs/reproduction/spectral.md``."""
    known = results.records
    head = "nuclear norm", "of least squares", "distance", "missed"
    commuting = []
    for noise in NOISES:
        keys = (f"noise {noise:g}, seed {seed}" for seed in range(N_COMMUTING))
        found = np.array([[known[key][name] for name in head] for key in keys])
        low, high = ([f"{x:.4f}" for x in end] for end in (found.min(0), found.max(0)))
        spans = [f"{low[i]} to {high[i]}" for i in range(2)]
        commuting.append([f"{noise:g}", *spans, *high[2:]])
    gaussian = [
        [name, PAPER.get(name, "")]
        + [f"{known[f'gaussian, {name}'][measure]:.3g}" for measure in MEASURES]
        for name in MODELS
    ]
    shown = [known[f"digit {digit}"] for digit in range(10)]
    digits = [
        [str(digit), str(record["number"])]
        + [f"{score:.2f}" for name, score in record.items() if name != "number"]
        for digit, record in enumerate(shown)
    ]
    scores = {name: known[f"gaussian, {name}"]["PSNR"] for name in MODELS}
    fields = {
        "chart": chart("spectral", "PSNR, dB (median)", scores, higher=True),
        "n_commuting": N_COMMUTING,
        "commuting": table(["noise", *head], commuting),
        "slowest": f"{known['rates']['slowest']:.3g}",
        "fastest": f"{known['rates']['fastest']:.3g}",
        "n_seeds": N_SEEDS,
        "gaussian": table(["model", "paper", *MEASURES], gaussian),
        "gain": f"{known['gain']['mean']:.1f}",
        "least_gain": f"{known['gain']['least']:.1f}",
        **{
            key: f"{scores[name]:.1f}"
            for key, name in (("snn", "SNN"), ("line", "linear"), ("norm", MODELS[-1]))
        },
        "digits": table(["digit", *shown[0]], digits),
    }
    write_page("spectral", fields)
