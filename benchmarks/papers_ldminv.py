"""Tables 1 to 3 of Xie, Kong, Wu, Liu, Lin: LD-Minv and D-SVD."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from common import Results, run
from torch import Tensor

from skmc.inverses import DSVD, LDMinv, cayley_step, d_minv, offdiag, random_orthonormal

SEEDS = range(3)

# Table 1: seconds by L and K, and of the exact pseudo-inverse.
SIZES = ((10, 15), (50, 75), (100, 150), (200, 300), (500, 750), (1000, 1500))
NETWORKS = ((4, 4), (4, 8), (4, 12), (4, 5), (8, 5), (12, 5))
PAPER_TIMES = {
    (4, 4): (0.0030, 0.0070, 0.010, 0.025, 0.40, 1.23),
    (4, 8): (0.0052, 0.0088, 0.016, 0.047, 0.56, 2.22),
    (4, 12): (0.0083, 0.0133, 0.019, 0.055, 0.64, 3.08),
    (4, 5): (0.0035, 0.0050, 0.013, 0.025, 0.38, 1.38),
    (8, 5): (0.0058, 0.0076, 0.014, 0.051, 0.55, 2.42),
    (12, 5): (0.0084, 0.013, 0.020, 0.059, 0.68, 3.53),
    "exact": (0.46, 0.58, 1.21, 2.60, 11.39, 39.49),
}
BATCH = 100
SMALLER = {500: 4, 1000: 2}  # batches on a CPU, by the number of rows
ROUNDS = 5

# Table 2: -log10 of the test loss by condition number.
CONDITIONS = (1, 2, 3, 4, 5, 10, 50, 100, 1000)
PAPER_FIXED = (7.64, 2.83, 2.49, 2.36, 2.30, 2.27, 2.26, 2.26, 2.25)
PAPER_LEARNED = (5.95, 5.01, 4.19, 3.62, 3.49, 3.30, 3.21, 3.22, 3.21)
SHAPES = {"4 layers of order 10": (10, 4), "4 of order 4": (4, 4), "1 of 10": (10, 1)}
LOOSE = 1.75  # c0 / |A|_2^2 with which one layer resembles the paper's D-Minv

# Table 3: depth -> test loss and SVD MSE, before and after training.
PAPER_SVD = {
    1: (44.9983, 0.8782, 23.1838, 0.2528),
    5: (35.8998, 0.5721, 0.9565, 0.0711),
    10: (26.6607, 0.3373, 0.4043, 0.0626),
    20: (15.6132, 0.1502, 0.2694, 0.0167),
    30: (10.3556, 0.0879, 0.2018, 0.0064),
    40: (7.7057, 0.0568, 0.1243, 0.0052),
    60: (5.0146, 0.0274, 0.0305, 0.0029),
}
ITERATIONS = {1: 200, 5: 200, 10: 200, 20: 40, 30: 40, 40: 40, 60: 20}
INVERSE_DEPTH = 4  # in D-SVD; the paper's 6 is no better
MATRICES = 300  # for training; 100 more for testing


# ---------------------------------------------------------------------- Table 1


def table1(results: Results) -> None:
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        place = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        for k, (m, n) in enumerate(SIZES):
            case = ("table 1", f"{m} x {n}", "none")
            results.measure((*case, place), times, m, n, device, limit=None)
            printed = {
                key if key == "exact" else "L {} K {}".format(*key): each[k]
                for key, each in PAPER_TIMES.items()
            }
            results.published(*case, "seconds", printed)


def times(m: int, n: int, device: str) -> dict:
    """Seconds and relative errors; methods run in turns, so that all share noise."""
    batch = SMALLER.get(m, BATCH) if device == "cpu" else BATCH
    A = torch.randn(batch, m, n, generator=torch.Generator().manual_seed(0))
    A = (A / n**0.5).to(device)
    square = A[..., :m].contiguous()
    methods: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
        "pinv": (torch.linalg.pinv, A),
        "cholesky": (normal_equations, A),
        **{
            f"L {L} K {K}": (lambda A, L=L, K=K: d_minv(A, L, K), A)
            for L, K in NETWORKS
        },
        "square inv": (torch.linalg.inv, square),
        "square L 4 K 4": (lambda A: d_minv(A, 4, 4), square),
        "square L 4 K 12": (lambda A: d_minv(A, 4, 12), square),
    }
    record: dict = {"batch": batch}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for name, (method, matrices) in methods.items():  # also warms up
        wrong = matrices @ method(matrices) @ matrices - matrices
        record[f"error {name}"] = float(f"{wrong.norm() / matrices.norm():.1e}")
    training = torch.randn(A.shape, generator=torch.Generator().manual_seed(1)) / n**0.5
    learned = LDMinv(4, 4).fit(training.to(device)).to(device)
    with torch.no_grad():
        wrong = A @ learned(A) @ A - A
    record["error learned"] = float(f"{wrong.norm() / A.norm():.1e}")
    for _ in range(ROUNDS):
        for name, (method, matrices) in methods.items():
            synchronize(device)
            start = time.perf_counter()
            method(matrices)
            synchronize(device)
            seconds[name].append(time.perf_counter() - start)
    for name, values in seconds.items():
        record[f"seconds {name}"] = float(f"{statistics.median(values):.3g}")
    return record


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def normal_equations(A: Tensor) -> Tensor:
    """``A' (A A')^-1``: the pseudo-inverse of wide matrices of full rank."""
    return torch.cholesky_solve(A, torch.linalg.cholesky(A @ A.mT)).mT


# ---------------------------------------------------------------------- Table 2


def table2(results: Results) -> None:
    """Minus the logarithm of the loss is printed, so ours are losses."""
    for k, condition in enumerate(CONDITIONS):
        case = ("table 2", f"condition {condition}", "none")
        for name, shape in SHAPES.items():
            for seed in SEEDS:
                key = (*case, name, seed)
                results.measure(key, inverted, condition, *shape, seed, limit=None)
        printed = {"D-Minv": PAPER_FIXED[k], "LD-Minv": PAPER_LEARNED[k]}
        results.published(*case, "-log10 of the loss", printed)


def inverted(condition: float, order: int, depth: int, seed: int) -> dict:
    """Test losses of D-Minv and LD-Minv."""
    generator = torch.Generator().manual_seed(seed)
    seen, unseen = (with_condition(condition, generator) for _ in range(2))
    single = unseen.float()
    fixed = LDMinv(order, depth)
    sgd = LDMinv(order, depth).fit(seen, solver="sgd")
    sgd_faster = LDMinv(order, depth).fit(seen, solver="sgd", lr=1e-2)
    learned = LDMinv(order, depth).fit(seen)
    loose = LOOSE * torch.linalg.matrix_norm(unseen, 2).square()
    with torch.no_grad():
        return {
            "fixed": loss(unseen, fixed(unseen)),
            "fixed_loose": loss(unseen, d_minv(unseen, order, depth, c0=loose)),
            "sgd": loss(unseen, sgd(unseen)),
            "sgd_1e-2": loss(unseen, sgd_faster(unseen)),
            "learned": loss(unseen, learned(unseen)),
            "fixed_single": loss(single, fixed(single)),
            "learned_single": loss(single, learned(single)),
            "steps": len(learned.history_) - 1,
        }


def with_condition(condition: float, generator: torch.Generator) -> Tensor:
    """100 of ``U diag(s) V'``, 100 x 100, ``s`` uniform in ``[1 / condition, 1]``."""
    options = {"generator": generator, "dtype": torch.float64}
    U, V = (torch.linalg.qr(torch.randn(100, 100, 100, **options))[0] for _ in range(2))
    s = 1 / condition + (1 - 1 / condition) * torch.rand(100, 100, **options)
    return (U * s[:, None]) @ V.mT


def loss(A: Tensor, X: Tensor) -> float:
    return float((A @ X @ A - A).square().sum((-2, -1)).mean())


# ---------------------------------------------------------------------- Table 3


def table3(results: Results) -> None:
    key = ("table 3", "50 x 100", "none", "small steps")
    results.measure(key, small_steps, limit=None)
    for depth, printed in PAPER_SVD.items():
        key = ("table 3", "50 x 100", "none", f"depth {depth}")
        results.measure(key, decomposed, depth, limit=None)
        names = "loss_before", "mse_before", "loss_after", "mse_after"
        for name, value in zip(names, printed, strict=True):
            known = {f"depth {depth}, {name}": value}
            results.published(*key[:3], name, known)


def decomposed(depth: int) -> dict:
    generator = torch.Generator().manual_seed(0)
    M = torch.randn(MATRICES + 100, 50, 100, generator=generator) / 10
    seen, unseen = M[:MATRICES], M[MATRICES:]
    network = DSVD(depth, inverse_depth=INVERSE_DEPTH)
    record = {f"{name}_before": x for name, x in judged(network, unseen).items()}
    deeper = judged(DSVD(depth, inverse_depth=6), unseen)
    record["mse_before_6"] = deeper["mse"]
    network.fit(seen, max_iter=ITERATIONS[depth])
    record |= {f"{name}_after": x for name, x in judged(network, unseen).items()}
    record["iterations"] = len(network.history_)
    record["trained_inverses"] = sum(bool(net.history_) for net in network.inverses)
    return record


@torch.no_grad()
def small_steps() -> dict:
    """Layers with steps of a thirtieth of the longest, which resemble the paper's."""
    generator = torch.Generator().manual_seed(0)
    M = torch.randn(30, 50, 100, generator=generator) / 10
    U = random_orthonormal((30, 50, 50), M, generator)
    V = random_orthonormal((30, 100, 50), M, generator)
    exact = torch.linalg.svdvals(M)
    record = {}
    for layer in range(1, 11):
        U = small_step(U, M @ V)
        V = small_step(V, M.mT @ U)
        found = (U * (M @ V)).sum(-2).sort(-1, descending=True)[0]
        if layer in PAPER_SVD:
            record[f"gap_{layer}"] = round(float((exact - found).sum(-1).mean()), 4)
            record[f"mse_{layer}"] = round(float((exact - found).square().mean()), 5)
    return record


def small_step(U: Tensor, MV: Tensor) -> Tensor:
    G = MV @ (offdiag(MV.mT @ U) - torch.eye(U.shape[-1]))
    norm = torch.linalg.matrix_norm(G @ U.mT - U @ G.mT, 2)
    return cayley_step(U, G, 2 / norm / 30)


@torch.no_grad()
def judged(network: DSVD, M: Tensor) -> dict[str, float]:
    """The paper's test loss, and its share without off-diagonal cells, and SVD MSE."""
    exact = torch.linalg.svdvals(M)
    found = network(M)
    product = found.U.mT @ M @ found.V
    off = product - torch.diag_embed(found.s)
    gap = (exact - found.s).sum(-1)
    return {
        "loss": round(float((gap + off.square().sum((-2, -1)) / 2).mean()), 4),
        "gap": round(float(gap.mean()), 4),
        "mse": round(float((found.s - exact).square().mean()), 5),
    }


if __name__ == "__main__":
    run(__doc__, table1, table2, table3)
