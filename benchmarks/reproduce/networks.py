"""The networks: tables of DNN-NSR, other data, and the patch network.

``python -m benchmarks.reproduce nsr-table1|nsr-table2|nsr-table4|nsr-table5|networks``
fit what is not in ``networks.json`` yet and write ``networks.md``, which describes the
protocols. Nothing is chosen by hidden cells: completers have their defaults, which
choose on held-out observed cells.
"""

from __future__ import annotations

import time
from functools import partial
from unittest import mock

import numpy as np
import torch
from sklearn.datasets import load_sample_image

from benchmarks.reproduce import ratings
from benchmarks.shared.problems import (
    FIRST_SEED,
    completion_error,
    energy_lost,
    hide,
    matrix,
    nonlinear_matrix,
)
from benchmarks.shared.results import Results
from benchmarks.shared.timing import prepared, solver_of
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
from skmc.datasets import load_mask
from skmc.linalg import Randomness
from skmc.loop import solve
from skmc.metrics import nmae, psnr, ssim
from skmc.solvers import RowDescent, patches
from skmc.terms import SquaredNorm

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


def fit_all(results, part, case, methods, seed, score, limit: int | None = LIMIT):
    for method, make in methods.items():
        results.measure(f"{part}/{case}/{method}/{seed}", make(seed), score, limit)


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


def table1(results: Results, n_seeds: str = "10") -> None:
    """Share of the hidden energy that is lost, and PSNR, on the synthetic matrix."""
    for seed in range(int(n_seeds)):
        truth, left = synthetic(seed)
        for percent, X in left.items():
            errors = {"percent": energy_lost, "psnr": whole_psnr}
            score = completion_error(X, truth, errors)
            fit_all(results, "table1", f"{percent} %", ON_SYNTHETIC, seed, score)


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


def table2(results: Results, n_seeds: str = "1") -> None:
    """PSNR and SSIM on a color picture."""
    truth = color_picture()
    errors = {"psnr": whole_psnr, "ssim": channels_ssim, "nmae": nmae}
    for methods in (ON_PICTURE, PATCHES):  # the slow one last
        for seed in range(int(n_seeds)):
            for percent in PICTURE_HIDDEN:
                X = hide(truth, f"random {percent} %", seed)
                score = completion_error(X, truth, errors)
                fit_all(results, "table2", f"{percent} %", methods, seed, score)


# Size, methods, protocols; the quick ones first.
ON_RATINGS = [
    ("100k", ("AEMC", "BiBNN", "DLMC", "SVD", "Soft-Impute")),
    ("1m", ("AEMC", "BiBNN")),
    ("100k", ("NSR", "linked", "NSR, paper's", "IALM", "NCARL")),
    ("1m", ("DLMC", "NSR")),
]


def table4(results: Results, *sizes: str) -> None:
    """NMAE on MovieLens, one split each."""
    every = {**NETWORKS, **LINKED, **PLAIN, **LOW_RANK}
    for size, names in ON_RATINGS:
        if sizes and size not in sizes:
            continue
        for protocol in ("30 %", "50 %"):
            score = ratings.prediction_error(*ratings.split(size, protocol, 0))
            methods = {name: every[name] for name in names}
            fit_all(results, "table4", f"{size}, {protocol}", methods, 0, score)


MU_MAX = tuple(10.0**k for k in range(6, -1, -1))
ON_GRADUAL = {
    **{f"{mu:g}": partial(papers, mu_max=mu) for mu in MU_MAX},
    "no penalties": partial(papers, alpha=0.0, beta=0.0),
    "lambda 10": partial(papers, lambda_weights=10.0),
}
OMEGAS = {"0": 0.0, "0.45": 0.45, "adaptive": None}


def table5(results: Results, n_seeds: str = "2") -> None:
    """The paper's network: gradual learning, Adam instead of it, extrapolation."""
    for seed in range(int(n_seeds)):
        truth, left = synthetic(seed)
        for percent in (50, 80):
            case, X = f"{percent} %", left[percent]
            score = both_errors(X, truth)
            fit_all(results, "table5", case, ON_GRADUAL, seed, score)
            key = f"table5/{case}/Adam/{seed}"
            results.measure(key, Adam(seed), score, LIMIT)
    picture = color_picture()
    X = hide(picture, "random 50 %", 0)
    fit_all(results, "table5", "picture", ON_GRADUAL, 0, both_errors(X, picture))
    _, left = synthetic(0)
    for case, cells, mu in (("synthetic", left[80], 1e5), ("picture", X, 1e6)):
        for name, omega in OMEGAS.items():
            key = f"extrapolation/{case}/{name}/0"
            results.measure(key, papers(0, mu_max=mu), losses(cells, omega), LIMIT)


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
    """``|P(f - M)|^2 + lambda |W|^2`` over ``|P(M)|^2``, at every 25th epoch."""

    def score(completer) -> dict:
        solver, data = solver_of(X, completer)
        solver.omega = omega
        seen: list[float] = []

        def look(progress) -> None:
            loss = progress.state.found.forward.loss
            seen.append(round(float(loss / data.energy), 5))

        solve(solver, data, max_iter=EPOCHS, callbacks=[look], check_every=25)
        return {"loss": seen}

    return score


ON_OTHERS = {**PLAIN, **NETWORKS, **LINKED}
NOISE = 0.1  # its energy over that of the noise-free matrix


def robustness(results: Results, n_seeds: int = 3) -> None:
    """Data with noise, data from dense networks, and a picture."""
    for seed in range(n_seeds):
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
            fit_all(results, "robustness", case, ON_OTHERS, seed, score)
    barbara, _ = matrix("Barbara")
    X = hide(barbara, "random 30 %", 0)
    score = completion_error(X, barbara, {"percent": energy_lost, "nmae": nmae})
    fit_all(results, "robustness", "Barbara", ON_OTHERS, 0, score)


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
            fit_all(results, "pnmc", f"{name}, {pattern}", PATCHES, 0, score, None)
            fit_all(results, "pnmc", f"{name}, {pattern}", AIR, 0, score, None)


def dropped(results: Results) -> None:
    """Shares of patches that lose cells, judged on held-out holes of similar shape."""
    truth, _ = matrix("Barbara")
    for seed in range(2):
        for pattern, shifts in SHIFTS.items():
            hidden = ~load_mask(pattern)
            held_out = np.roll(hidden, shifts[seed], (0, 1)) & ~hidden
            train = np.ma.masked_array(truth.astype(np.float32), hidden | held_out)
            for share in DROPPED:
                share_of = patches.dropped_share
                if share != "computed":
                    share_of = _always(float(share))
                with mock.patch.object(patches, "dropped_share", share_of):
                    results.measure(
                        f"dropped/{pattern}/{share}/{seed}",
                        PatchCNNCompleter(random_state=0),
                        dropped_error(train, truth, held_out, hidden),
                        None,
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


PARTS = {"robustness": robustness, "pnmc": pnmc, "dropped": dropped}


def run(results: Results, *names: str) -> None:
    """Fit the parts that are named, or all of them; "page" fits nothing."""
    if unknown := set(names) - {*PARTS, "page"}:
        raise SystemExit(f"unknown parts {sorted(unknown)}; there are {list(PARTS)}")
    for name in names or PARTS:
        if name != "page":
            PARTS[name](results)
