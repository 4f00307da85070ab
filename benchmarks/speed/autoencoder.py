"""The speed of an autoencoder: ``python -m benchmarks.speed.autoencoder [parts]``.

``epoch`` compares one pass over 500 x 784, with 100 hidden units, with a plain loop of
the same steps (autograd of the whole loss, `torch.optim.Adam` with its defaults,
missing inputs as a masked parameter), and with the six matrix products of a pass alone.
Times are medians of alternating runs on one thread. ``memory`` is a whole fit of
100 000 x 500 in its own process.
"""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import in_turns
from skmc import Observed
from skmc.linalg import Randomness
from skmc.models import Autoencoder
from skmc.solvers import RowDescent
from skmc.terms import SquaredNorm

SHAPE, WIDTH, LR, DECAY = (500, 784), 100, 0.01, 0.3 * 500


class Plain:
    """A plain training loop."""

    def __init__(self, data: Observed, network: nn.Module, batches: list):
        self.network, self.batches = copy.deepcopy(network), batches
        self.values, self.mask = data.values, data.mask.to(data.values.dtype)
        self.free = [nn.Parameter(torch.zeros_like(self.values[b])) for b in batches]
        self.weights = torch.optim.Adam(self.network.parameters(), lr=LR)
        self.inputs = [torch.optim.Adam([free], lr=LR) for free in self.free]

    def epoch(self) -> Tensor:
        total = torch.zeros(())
        for rows, free, inputs in zip(
            self.batches, self.free, self.inputs, strict=True
        ):
            values, mask = self.values[rows], self.mask[rows]
            output = self.network(values * mask + free * (1 - mask))
            decay = sum(W.square().sum() for W in self.network.weights)
            loss = 0.5 * ((output - values) * mask).square().sum()
            loss = loss + len(values) / len(self.values) * DECAY / 2 * decay
            for optimizer in (self.weights, inputs):
                optimizer.zero_grad()
            loss.backward()
            for optimizer in (self.weights, inputs):
                optimizer.step()
            total += loss.detach()
        return total


def epoch(batch_size: int, n_epochs: int = 5) -> dict:
    m, n = SHAPE
    rng = np.random.RandomState(0)
    values = rng.randn(m, 20) @ rng.randn(20, n) / 20**0.5
    data = Observed(
        torch.tensor(values, dtype=torch.float32),
        torch.tensor(rng.random_sample(SHAPE) > 0.3),
    )
    network = Autoencoder.random([n, WIDTH, n], Randomness.of([0]), gain=0.3)
    solver = RowDescent(
        network,
        {name: SquaredNorm(DECAY) for name in ("weights.0", "weights.1")},
        lr=LR,
        horizon=10**9,
        batch_size=batch_size,
        rng=Randomness.of([0]),
        free=True,
    )
    state = solver.init(data)
    parts = [slice(None) if b.rows is None else b.rows[:, 0] for b in state.batches]
    plain = Plain(data, network, parts)
    rows = torch.randn(min(m, batch_size), n)
    codes, W, V = torch.randn(len(rows), WIDTH), network.weights[0], network.weights[1]
    loss = torch.zeros(())

    @torch.no_grad()
    def ours():
        nonlocal state
        for _ in range(n_epochs):
            state = solver.step(data, state)

    def loop():
        nonlocal loss
        for _ in range(n_epochs):
            loss = plain.epoch()

    @torch.no_grad()
    def products():
        for _ in range(n_epochs * len(state.batches)):
            _ = rows @ W, codes @ V, codes.T @ rows, rows @ V.T, codes @ W.T
            _ = rows.T @ codes

    seconds = dict(
        zip(
            ("ours", "plain", "products"),
            in_turns(ours, loop, products) / n_epochs,
            strict=True,
        )
    )
    return {
        "seconds an epoch": seconds,
        "plain / ours": seconds["plain"] / seconds["ours"],
        "ours / products": seconds["ours"] / seconds["products"],
        "loss, ours": float(state.objective),
        "loss, plain": float(loss),
    }


def epochs() -> dict:
    torch.set_num_threads(1)
    return {f"batches of {size}": epoch(size) for size in (500, 100)}


CHILD = """
import time, warnings
import numpy as np
import torch
from benchmarks.shared.timing import peak_memory
from skmc import AutoencoderCompleter

def peak():
    return peak_memory() / 1e9

warnings.simplefilter("ignore")
torch.set_num_threads(1)
rng = np.random.default_rng(0)
X = np.empty((100_000, 500), np.float32)
B = rng.standard_normal((10, 500), np.float32)
for rows in np.split(X, 100):
    rows[:] = rng.standard_normal((len(rows), 10), np.float32) @ B
    rows[rng.random(rows.shape, np.float32) < 0.3] = np.nan
before, start = peak(), time.perf_counter()
completer = AutoencoderCompleter(
    max_iter=2, early_stopping={early_stopping}, random_state=0, device="cpu"
).fit(X)
print(time.perf_counter() - start, peak(), before)
"""


def memory() -> dict:
    """Peak memory (GB, 1e9 bytes) and seconds of a fit of two epochs."""
    found = {}
    for early_stopping in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", CHILD.format(early_stopping=early_stopping)],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds, peak, before = map(float, done.stdout.split())
        found[f"early_stopping={early_stopping}"] = {
            "seconds": seconds,
            "peak": peak,
            "before the fit": before,
        }
    return found


PARTS = {"epoch": epochs, "memory": memory}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        record("speed-autoencoder", {part: {"hardware": hardware(), **PARTS[part]()}})
