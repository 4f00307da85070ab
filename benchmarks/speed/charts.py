"""Charts of the hand-written pages of speed: ``python -m benchmarks.speed.charts``."""

from __future__ import annotations

from benchmarks.shared.made import read
from benchmarks.shared.pages import chart, dots

SIZES = {"100K": "likes of MovieLens-100k", "1M": "likes of MovieLens-1m"}


def low_rank() -> None:
    """Times of the programs that do the same, with one thread and with two."""
    found, ranked = read("speed-low-rank"), read("speed-recommend")
    rows: dict[str, dict[str, float]] = {}
    for threads in (1, 2):
        column = f"{threads} thread" + "s" * (threads > 1)
        ratings = found["ratings"][f"{threads} threads"]
        times = {
            "cmfrec, ratings": ratings["ours / cmfrec"],
            "cmfrec, ratings, exact": ratings["ours / cmfrec, cholesky"],
        }
        for size, likes in SIZES.items():
            for near in ("0.02", "0.001"):
                counts = found["counts"][f"{likes}, {threads} threads"]
                ratio = counts[f"within {near}"]["ours / implicit"]
                times[f"implicit, likes of {size}, within {near}"] = ratio
        recommended = ranked[f"exact, {threads} threads"]
        times["implicit, recommend"] = recommended["ours / implicit, seconds"]
        for case, ratio in times.items():
            rows.setdefault(case, {})[column] = ratio
    dots("low-rank-speed", "Our time / theirs", rows, log=True, at=1)


def networks() -> None:
    """How much longer plain implementations in PyTorch take."""
    epochs, patches = read("speed-autoencoder")["epoch"], read("speed-patches")
    times = {
        f"AutoencoderCompleter, {batches}": epochs[batches]["plain / ours"]
        for batches in ("batches of 500", "batches of 100")
    }
    for size in ("patches of 7 x 7", "patches of 11 x 11"):
        training = patches[size]["training"]["DataLoader / PatchTraining"]
        times[f"PatchCNNCompleter, {size}"] = training
    measure = "Time of plain PyTorch / ours, an epoch"
    chart("networks-speed", measure, times, " times", higher=True)


if __name__ == "__main__":
    low_rank()
    networks()
