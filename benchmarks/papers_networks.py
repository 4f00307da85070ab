"""The networks: tables of DNN-NSR, other data, and the patch network of PNMC.

Completers have their defaults, which choose on held-out observed cells; nothing is
chosen by hidden cells.
"""

from __future__ import annotations

import time
from functools import partial
from unittest import mock

import numpy as np
import torch
from common import Results, run
from problems import (
    FIRST_SEED,
    completion_error,
    energy_lost,
    hide,
    matrix,
    nonlinear_matrix,
    prediction_error,
    split,
)
from sklearn.datasets import load_sample_image
from timing import prepared, solver_of

from skmc import (
    AIRCompleter,
    AutoencoderCompleter,
    BiBNNCompleter,
    GradualNSRCompleter,
    IALMCompleter,
    LinkedFactorizationCompleter,
    NCARLCompleter,
    NSRCompleter,
    PatchCNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
)
from skmc.completers import patch_cnn
from skmc.datasets import load_mask
from skmc.linalg import Randomness
from skmc.loop import solve
from skmc.metrics import nmae, psnr, ssim
from skmc.solvers import RowDescent
from skmc.terms import SquaredNorm

# Of DNN-NSR, Table I: percent of the hidden energy that is lost, by percent hidden.
NSR_METHODS = ("IALM", "NCARL", "AEMC", "DLMC", "BiBNN", "DNN-NSR")
NSR_TABLE1 = {
    10: (15.4390, 4.8132, 4.5421, 3.7843, 3.2200, 1.9130),
    30: (18.2639, 6.8739, 6.4113, 4.3082, 3.4340, 2.7940),
    50: (22.7209, 14.3484, 12.2660, 10.0870, 8.3160, 4.1823),
    80: (48.8798, 27.1525, 27.9435, 24.9295, 24.4341, 18.5580),
}
# Table IV: NMAE in percent on MovieLens.
NSR_TABLE4 = {
    "100k, 30 %": (19.69, 19.01, 18.87, 18.39, 17.23, 15.54),
    "100k, 50 %": (20.22, 19.61, 19.06, 18.75, 18.12, 17.07),
    "1m, 30 %": (18.51, 18.25, 18.18, 18.03, 17.02, 16.82),
    "1m, 50 %": (18.95, 18.78, 18.36, 18.31, 17.78, 17.16),
}

LIMIT = 300  # seconds
EPOCHS = 1000  # of the paper's method
DEPTH = (100, 50)  # DLMC's encoder


def papers(seed: int, **params) -> GradualNSRCompleter:
    return GradualNSRCompleter(
        scaling="global", max_iter=EPOCHS, random_state=seed, **params
    )


NETWORKS = {
    "AEMC": lambda seed: AutoencoderCompleter(random_state=seed),
    "DLMC": lambda seed: AutoencoderCompleter(DEPTH, random_state=seed),
    "BiBNN": lambda seed: BiBNNCompleter(scaling="global", random_state=seed),
    "NSR": lambda seed: NSRCompleter(scaling="global", random_state=seed),
    "NSR, paper's": papers,
}
LINKED = {
    "linked": lambda seed: LinkedFactorizationCompleter(
        scaling="global", random_state=seed
    )
}
LOW_RANK = {
    "IALM": lambda seed: IALMCompleter(scaling="global"),
    "NCARL": lambda seed: NCARLCompleter(scaling="global", random_state=seed),
}
PLAIN = {
    "IALM": lambda seed: IALMCompleter(scaling="global"),
    "SVD": lambda seed: SVDCompleter(random_state=seed),
    "Soft-Impute": lambda seed: SoftImputeCompleter(
        scaling="global", fixed_effects=None, random_state=seed
    ),
}
PATCHES = {"PNMC": lambda seed: PatchCNNCompleter(random_state=seed)}
AIR = {"AIR": lambda seed: AIRCompleter(scaling="global", random_state=seed)}


def fit_all(results, case, methods, seed, score, limit: int | None = LIMIT):
    for method, make in methods.items():
        results.measure((*case, method, seed), score, make(seed), limit=limit)


def whole_psnr(X, M, _) -> float:
    """Equation (65) of DNN-NSR: over all cells; observed cells are exact."""
    return psnr(X, M)


HIDDEN = (10, 30, 50, 80)
ON_SYNTHETIC = {**LOW_RANK, **NETWORKS, **LINKED}


def synthetic(seed: int) -> tuple[np.ndarray, dict[int, np.ma.MaskedArray]]:
    """The matrix, and its masked copies by percentage hidden."""
    rng = np.random.RandomState(FIRST_SEED + seed)
    truth = nonlinear_matrix(rng)
    hidden = {p: rng.random_sample(truth.shape) <= p / 100 for p in HIDDEN}
    single = truth.astype(np.float32)
    return truth, {p: np.ma.masked_array(single, cells) for p, cells in hidden.items()}


def table1(results: Results) -> None:
    """Share of the hidden energy that is lost, and PSNR, on the synthetic matrix."""
    for seed in range(10):
        truth, left = synthetic(seed)
        for percent, X in left.items():
            errors = {"percent": energy_lost, "psnr": whole_psnr}
            score = completion_error(X, truth, errors)
            case = ("table 1", "synthetic", f"{percent} %")
            fit_all(results, case, ON_SYNTHETIC, seed, score)
    for percent, printed in NSR_TABLE1.items():
        published = dict(zip(NSR_METHODS, printed, strict=True))
        case = ("table 1", "synthetic", f"{percent} %")
        results.published(*case, "percent", published)


CHANNELS = 3
PICTURE_HIDDEN = (30, 40, 50)
ON_PICTURE = {**LOW_RANK, **NETWORKS, **LINKED, **AIR}


def color_picture() -> np.ndarray:
    """Three channels of 142 x 213 side by side, in [0, 1]."""
    blocks = load_sample_image("china.jpg")[:426, :639].reshape(142, 3, 213, 3, 3)
    return np.hstack(list(np.moveaxis(blocks.mean((1, 3)) / 255, -1, 0)))


def channels_ssim(X, M, _) -> float:
    """Mean over channels."""
    pairs = zip(np.hsplit(X, CHANNELS), np.hsplit(M, CHANNELS), strict=True)
    return float(np.mean([ssim(x, m) for x, m in pairs]))


def table2(results: Results) -> None:
    """PSNR and SSIM on a color picture."""
    truth = color_picture()
    errors = {"psnr": whole_psnr, "ssim": channels_ssim, "nmae": nmae}
    for methods in (ON_PICTURE, PATCHES):  # the slow one last
        for percent in PICTURE_HIDDEN:
            X = hide(truth, f"random {percent} %", 0)
            score = completion_error(X, truth, errors)
            fit_all(results, ("table 2", "china", f"{percent} %"), methods, 0, score)


# Size, methods, protocols; the quick ones first.
ON_RATINGS = [
    ("100k", ("AEMC", "BiBNN", "DLMC", "SVD", "Soft-Impute")),
    ("1m", ("AEMC", "BiBNN")),
    ("100k", ("NSR", "linked", "NSR, paper's", "IALM", "NCARL")),
    ("1m", ("DLMC", "NSR")),
]


def table4(results: Results) -> None:
    """NMAE on MovieLens, one split each."""
    every = {**NETWORKS, **LINKED, **PLAIN, **LOW_RANK}
    for size, names in ON_RATINGS:
        for protocol in ("30 %", "50 %"):
            score = prediction_error(*split(size, protocol, 0))
            methods = {name: every[name] for name in names}
            case = ("table 4", f"MovieLens-{size}", protocol)
            fit_all(results, case, methods, 0, score)
    for known, printed in NSR_TABLE4.items():
        published = dict(zip(NSR_METHODS, printed, strict=True))
        size, protocol = known.split(", ")
        data = f"MovieLens-{size}"
        results.published("table 4", data, protocol, "nmae, percent", published)


MU_MAX = tuple(10.0**k for k in range(6, -1, -1))
ON_GRADUAL = {
    **{f"{mu:g}": partial(papers, mu_max=mu) for mu in MU_MAX},
    "no penalties": partial(papers, alpha=0.0, beta=0.0),
    "lambda 10": partial(papers, lambda_weights=10.0),
}
OMEGAS = {"0": 0.0, "0.45": 0.45, "adaptive": None}


def table5(results: Results) -> None:
    """The paper's network: gradual learning, Adam instead of it, extrapolation."""
    for seed in range(2):
        truth, left = synthetic(seed)
        for percent in (50, 80):
            case, X = ("table 5", "synthetic", f"{percent} %"), left[percent]
            score = both_errors(X, truth)
            fit_all(results, case, ON_GRADUAL, seed, score)
            key = (*case, "Adam", seed)
            results.measure(key, score, Adam(seed), limit=LIMIT)
    picture = color_picture()
    X = hide(picture, "random 50 %", 0)
    case = ("table 5", "china", "50 %")
    fit_all(results, case, ON_GRADUAL, 0, both_errors(X, picture))
    _, left = synthetic(0)
    for data, mask, cells, mu in (
        ("synthetic", "80 %", left[80], 1e5),
        ("china", "50 %", X, 1e6),
    ):
        for name, omega in OMEGAS.items():
            key = ("extrapolation", data, mask, name)
            completer = papers(0, mu_max=mu)
            results.measure(key, losses(cells, omega), completer, limit=LIMIT)


def both_errors(X, truth):
    """Percent of the hidden energy lost, and of the observed; PSNR."""

    def score(completer) -> dict[str, float]:
        fitted = completer.fit(X).reconstruction_
        completed = np.where(X.mask, fitted, X.data)
        return {
            "percent": energy_lost(fitted, truth, X.mask),
            "observed": energy_lost(fitted, truth, ~X.mask),
            "psnr": psnr(completed, truth),
        }

    return score


class Adam:
    """The paper's network, start and loss without penalties of Q, by Adam."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X) -> Adam:
        completer = papers(self.seed)
        scaling = prepared(X, completer).scaling
        solver, data = solver_of(X, completer)
        network = solver.network
        decay = SquaredNorm(completer.lambda_weights)
        adam = RowDescent(
            network,
            {f"weights.{i}": decay for i in range(len(network.weights))},
            lr=0.01,
            horizon=EPOCHS,
            batch_size=len(X),
            rng=Randomness.of([self.seed], dtype=data.values.dtype),
        )
        solution = solve(adam, data, max_iter=EPOCHS)
        self.reconstruction_ = scaling.undo(solution.X).numpy()
        return self


def losses(X, omega: float | None):
    """``|P(f - M)|^2 + lambda |W|^2`` over ``|P(M)|^2``, at every 50th epoch."""

    def score(completer) -> dict:
        solver, data = solver_of(X, completer)
        solver.omega = omega
        seen: dict[str, float] = {}

        def look(progress) -> None:
            loss = progress.state.found.forward.loss
            seen[f"loss at {progress.n_iter}"] = float(loss / data.energy)

        solve(solver, data, max_iter=EPOCHS, callbacks=[look], check_every=50)
        return seen

    return score


ON_OTHERS = {**PLAIN, **NETWORKS, **LINKED}
NOISE = 0.1  # its energy over that of the noise-free matrix


def robustness(results: Results) -> None:
    """Data with noise, data from dense networks, and a picture."""
    for seed in range(3):
        rng = np.random.RandomState(FIRST_SEED + seed)
        low = rng.standard_normal((300, 10)) @ rng.standard_normal((10, 200))
        noise = rng.standard_normal(low.shape)
        noise *= np.sqrt(NOISE) * np.linalg.norm(low) / np.linalg.norm(noise)
        codes = rng.standard_normal((300, 10))
        units = np.tanh(codes @ rng.standard_normal((10, 50)) / np.sqrt(10))
        dense = units @ rng.standard_normal((50, 200)) / np.sqrt(50)
        hidden = rng.random_sample(low.shape) <= 0.5
        wide = np.tanh(
            rng.standard_normal((300, 5)) @ rng.standard_normal((5, 500)) / np.sqrt(5)
        )
        wide = wide @ rng.standard_normal((500, 200)) / np.sqrt(500)
        cases = {
            "noise": (low + noise, low),
            "dense network": (dense, dense),
            "wide network": (wide, wide),
        }
        for case, (truth, clean) in cases.items():
            X = np.ma.masked_array(truth.astype(np.float32), hidden)
            errors = {"percent": energy_lost, "clean": against(clean)}
            score = completion_error(X, truth, errors)
            fit_all(results, ("robustness", case, "50 %"), ON_OTHERS, seed, score)
    barbara, _ = matrix("Barbara")
    X = hide(barbara, "random 30 %", 0)
    score = completion_error(X, barbara, {"percent": energy_lost, "nmae": nmae})
    fit_all(results, ("robustness", "Barbara", "30 %"), ON_OTHERS, 0, score)


def against(clean: np.ndarray):
    return lambda X, _, cells: energy_lost(X, clean, cells)


PATTERNS = ("random 30 %", "patch", "texture")
DROPPED = ("0", "0.5", "0.75", "0.95", "computed")
SHIFTS = {"patch": ((-40, -60), (20, -120)), "texture": ((40, 60), (97, -33))}


def pnmc(results: Results) -> None:
    """NMAE on AIR's pictures."""
    for name in ("Barbara", "Baboon"):
        truth, _ = matrix(name)
        for pattern in PATTERNS:
            X = hide(truth, pattern, 0)
            score = timed(completion_error(X, truth, {"nmae": nmae}))
            case = ("PNMC", name, pattern)
            fit_all(results, case, {**PATCHES, **AIR}, 0, score, None)


def dropped(results: Results) -> None:
    """Shares of patches that lose cells, judged on held-out holes of similar shape."""
    truth, _ = matrix("Barbara")
    for seed in range(2):
        for pattern, shifts in SHIFTS.items():
            hidden = ~load_mask(pattern)
            held_out = np.roll(hidden, shifts[seed], (0, 1)) & ~hidden
            train = np.ma.masked_array(truth.astype(np.float32), hidden | held_out)
            for share in DROPPED:
                share_of = patch_cnn.dropped_share
                if share != "computed":
                    share_of = _always(float(share))
                with mock.patch.object(patch_cnn, "dropped_share", share_of):
                    results.measure(
                        ("dropped", "Barbara", pattern, f"share {share}", seed),
                        dropped_error(train, truth, held_out, hidden),
                        PatchCNNCompleter(random_state=0),
                        limit=None,
                    )


def _always(share: float):
    return lambda *_: torch.tensor(share)


def dropped_error(train, truth, held_out, hidden):
    """NMAE over held-out observed cells, and over the hidden cells for comparison."""

    def score(completer) -> dict[str, float]:
        completed = completer.fit_transform(train)
        return {
            "held_out": nmae(completed, truth, held_out),
            "hidden": nmae(completed, truth, hidden),
        }

    return score


def timed(score):
    def scored(completer) -> dict[str, float]:
        start = time.perf_counter()
        record = score(completer)
        return {**record, "wall": round(time.perf_counter() - start, 1)}

    return scored


if __name__ == "__main__":
    run(__doc__, table1, table2, table4, table5, robustness, pnmc, dropped)
