"""Whole fits of patch networks: ``python -m benchmarks.speed.patch_fits [FOLDER]``.

Processor seconds on one thread, and NMAE over the hidden pixels. ``FOLDER`` holds
another version of this repository, such as a ``git worktree`` of an earlier commit. Its
fits take turns with ours, each in a process of its own, and the ratios are recorded.
The defaults were chosen on other pictures; these have been scored more than once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.problems import PICTURES, hide, matrix
from skmc.completers import PatchCNNCompleter
from skmc.metrics import nmae

SIDE = 240
PATTERNS = ("random 30 %", "random 50 %", "text", "patch")
FIT = "import runpy; runpy.run_path({!r})['fit']({!r}, {!r})"


def fit(picture: str, pattern: str) -> None:
    """Print the cost and the error of a fit to the middle of a picture."""
    truth, _ = matrix(picture)
    start = (len(truth) - SIDE) // 2
    truth = truth[start : start + SIDE, start : start + SIDE]
    X = hide(truth, pattern, 0)
    began = time.process_time()
    completer = PatchCNNCompleter(random_state=0, device="cpu").fit(X)
    seconds = time.process_time() - began
    found = {
        "processor seconds": round(seconds, 2),
        "nmae": round(float(nmae(completer.transform(X), truth, X.mask)), 5),
        "patch_size_": completer.patch_size_,
        "n_iter_": int(completer.n_iter_),
    }
    print(json.dumps(found))


def fit_of(folder: Path, picture: str, pattern: str) -> dict:
    """The same by the version in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", FIT.format(__file__, picture, pattern)],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def compared(fits: dict[str, dict[str, dict]]) -> dict:
    """Ratios of both versions, of time and of error."""
    ratios = {
        name: np.array(
            [pair["this"][name] / pair["before"][name] for pair in fits.values()]
        )
        for name in ("processor seconds", "nmae")
    }
    times, errors = (
        {
            "geometric mean": round(float(np.exp(np.log(r).mean())), 3),
            "largest": round(float(r.max()), 3),
        }
        for r in ratios.values()
    )
    means = {
        version: np.mean([pair[version]["nmae"] for pair in fits.values()])
        for version in ("this", "before")
    }
    errors["of means"] = round(float(means["this"] / means["before"]), 3)
    return {
        "before / this": round(1 / times["geometric mean"], 3),
        "processor seconds of this over before": times,
        "nmae of this over before": errors,
    }


def measure(before: Path | None) -> dict:
    """All pictures and masks."""
    folders = {"this": Path(__file__).resolve().parents[2]}
    if before is not None:
        folders["before"] = before.resolve()
    fits: dict = {}
    for pattern in PATTERNS:
        for picture in PICTURES:
            name = f"{picture}, {pattern}"
            fits[name] = {
                version: fit_of(folder, picture, pattern)
                for version, folder in folders.items()
            }
            print(name, fits[name], file=sys.stderr, flush=True)
    ratios = {} if before is None else {"whole fits": compared(fits)}
    return {**ratios, "fits": fits}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    record("speed-patch-fits", {"hardware": hardware(), **measure(folder)})
