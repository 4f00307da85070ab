"""The speed of feeding patches to a network: ``python -m benchmarks.speed.patches``.

The baseline is a `torch.utils.data.DataLoader` over a data set of patches, without
workers, as in a usual training script. Each number is a ratio of median run times,
measured alternately on one core.
"""

from __future__ import annotations

import time

import torch
from torch.nn.functional import pad
from torch.utils.data import DataLoader, Dataset

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.problems import hide, matrix
from benchmarks.shared.timing import in_turns, prepared
from skmc import Observed
from skmc.completers import PatchCNNCompleter
from skmc.linalg import Randomness
from skmc.models import PatchCNN, Patches
from skmc.solvers import BATCH, PatchTraining

SIDES = (7, 11)


class PatchDataset(Dataset):
    """One observed cell and the patch around it, the cell itself hidden."""

    def __init__(self, data: Observed, side: int):
        self.side, self.values = side, data.values
        self.cells = torch.nonzero(data.mask).tolist()
        picture = torch.stack([data.values, data.indicator])
        self.padded = pad(picture[None], [side // 2] * 4, mode="reflect")[0]

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, number):
        i, j = self.cells[number]
        patch = self.padded[:, i : i + self.side, j : j + self.side].clone()
        patch[:, self.side // 2, self.side // 2] = 0
        return patch, self.values[i, j]


def loader_of(data: Observed, side: int) -> DataLoader:
    generator = torch.Generator().manual_seed(0)
    return DataLoader(
        PatchDataset(data, side), BATCH, shuffle=True, generator=generator
    )


def extraction(data: Observed, side: int) -> dict:
    """Only the patches and targets of an epoch, in random order."""
    loader = loader_of(data, side)
    generator = torch.Generator().manual_seed(0)
    rows, cols = torch.nonzero(data.mask, as_tuple=True)

    def ours():
        picture = torch.stack([data.values, data.indicator], -1)
        patches = Patches(picture, side)
        for chosen in torch.randperm(len(rows), generator=generator).split(BATCH):
            r, c = rows[chosen], cols[chosen]
            patches.around(r, c) * patches.elsewhere(r, c)[..., None]
            data.values[r, c]

    def theirs():
        for _ in loader:
            pass

    mine, loaded = in_turns(ours, theirs)
    return {
        "seconds per epoch": {"view": mine, "DataLoader": loaded},
        "DataLoader / view": loaded / mine,
    }


def training(data: Observed, side: int) -> dict:
    """An epoch of training with the same network and optimizer; ours also drops cells.

    A fifth of the cells is used, so that there is time for several turns.
    """
    lot = torch.rand(data.shape, generator=torch.Generator().manual_seed(0))
    data = data.hide(lot > 0.2)
    n_cells = int(data.n_observed)
    solver = PatchTraining(side, lr=1e-3, horizon=10**9, rng=Randomness.of([0]))
    state = solver.init(data)
    loader = loader_of(data, side)
    network = PatchCNN(side, 1.0, Randomness.of([0]))
    all_of_it = torch.ones(1, side, side, dtype=torch.bool)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    @torch.no_grad()
    def ours():
        nonlocal state
        state = solver.step(data, state)
        while len(state.queue):
            state = solver.step(data, state)

    def theirs():
        for patches, targets in loader:
            optimizer.zero_grad()
            predicted = network(
                *network.windows(patches.permute(0, 2, 3, 1), all_of_it)
            )
            loss = (predicted - targets).square().mean() / 2
            loss.backward()
            optimizer.step()

    mine, loaded = in_turns(ours, theirs)
    return {
        "cells": n_cells,
        "seconds per epoch": {"PatchTraining": mine, "DataLoader": loaded},
        "DataLoader / PatchTraining": loaded / mine,
    }


def measure() -> dict:
    """Barbara with 30 % hidden, float32."""
    truth, _ = matrix("Barbara")
    X = hide(truth, "random 30 %", 0)
    completer = PatchCNNCompleter(random_state=0, device="cpu")
    data = prepared(X, completer).data
    results: dict = {}
    for side in SIDES:
        results[f"patches of {side} x {side}"] = {
            "extraction": extraction(data, side),
            "training": training(data, side),
        }
    start = time.perf_counter()
    completer.fit(X)
    results["seconds of a whole fit"] = time.perf_counter() - start
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    record("speed-patches", {"hardware": hardware(), **measure()})
