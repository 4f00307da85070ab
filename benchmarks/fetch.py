"""Download what has a public address to ``SKMC_DATA``, and check its SHA-256.

What is there is left alone. The other files are evaluation files in the layout that
`skmc.datasets` describes; most may not be passed on. A person gets them here:

- ``ratings``: https://grouplens.org/datasets/movielens (100K with ``u.item``, and 1M);
  Flixster and the graphs of MovieLens-100K are in https://github.com/fmonti/mgcnn, as
  is Syn-Netflix of ``graph``.
- ``drug_target``: https://github.com/stephenliu0423/PyDTI.
- ``images``: https://github.com/lizhemin15/AIR-Net, which has the masks, too, and the
  standard test pictures in 256 x 256.
- ``gene_expression``: Spellman and others (1998), and the R package impute.
- ``tabular``: https://archive.ics.uci.edu, under the names of the files.
- ``digits``: the first 100 training images of MNIST.
- ``panel/prop99.npz``: https://github.com/TianyiPeng/causaltensor.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import sys
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from scipy.io import loadmat

GITHUB = "https://raw.githubusercontent.com"
TRANSDIM = "xinychen/transdim/99a31275f12504f59b0c3d3debd50fea92b2e973/datasets"
PYSYNCON = "sdfordham/pysyncon/34350ca548370902bc40cfcf6d37d97b9de0839e/data"
SYNTHDID = "synth-inference/synthdid/70c1ce3eac58e28c30b67435ca377bb48baa9b8a/data"
NCF = (
    "hexiangnan/neural_collaborative_filtering/"
    "4aab159e81c44b062c091bdaed0ab54ac632371f/Data"
)
# The file, its address, and the SHA-256 of what is at the address.
FILES = {
    "panel/germany.csv": (
        f"{PYSYNCON}/germany.csv",
        "c59ff635faaf43729eaefdf5e9a4584fc3112a56fdab84b9ac5f78e1b6302e83",
    ),
    "panel/basque.csv": (
        f"{PYSYNCON}/basque.csv",
        "7f7f90d7a01984a33a2ea3efc311ce826c05b61234a52c27445adacc6f52bf70",
    ),
    "panel/texas.csv": (
        f"{PYSYNCON}/texas.csv",
        "cd26d6828924951662ea3607cbc27d6f67bdf8b9c44234e88f32602d3f124023",
    ),
    "panel/CPS.csv": (
        f"{SYNTHDID}/CPS.csv",
        "b859140a1374b92e5de480d300d9971b633b13926cba88caf21db2cc03e214b3",
    ),
    "panel/PENN.csv": (
        f"{SYNTHDID}/PENN.csv",
        "f0d00c351aa4c82bee3d6e0b5cd5d7f9528487f28a3dd4b2cdea93a53d987c74",
    ),
    "ratings/ncf/ml-1m.test.rating": (
        f"{NCF}/ml-1m.test.rating",
        "231ae11eb060b643a8c58c063cd17ffc743b54f569afb073d1abb6cf126b88b5",
    ),
    "ratings/ncf/ml-1m.test.negative": (
        f"{NCF}/ml-1m.test.negative",
        "127853228a76b7d21c0481e8ef8d00dd009cd5c88670dbdd9e9debfdb9f93de4",
    ),
    "series/nyc.mat": (
        f"{TRANSDIM}/NYC-data-set/tensor.mat",
        "3514ad3922083176215590c4a59563464833b2d889764199de3913f71fff47be",
    ),
    "series/hangzhou.npz": (
        f"{TRANSDIM}/Hangzhou-data-set/tensor.mat",
        "55891c7e102a8352f3c8022f79bc588ae77a68625a565d79ed8aaadbf8e9202d",
    ),
    "series/birmingham.npz": (
        f"{TRANSDIM}/Birmingham-data-set/tensor.mat",
        "ebb2e47871294cb143be3549d1f618062b5327b2da7251b1bdafc145880b5e4a",
    ),
}


def fetch(path: Path, address: str, expected: str) -> None:
    """Download a file. Tensors of MATLAB become ``values`` of an ``.npz`` file."""
    with urlopen(f"{GITHUB}/{address}") as reply:
        content = reply.read()
    if (found := hashlib.sha256(content).hexdigest()) != expected:
        sys.exit(f"{address} has SHA-256 {found}, not {expected}")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    if path.suffix == ".npz":
        with fresh.open("wb") as file:
            np.savez_compressed(file, values=loadmat(io.BytesIO(content))["tensor"])
    else:
        fresh.write_bytes(content)
    fresh.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    home = Path(os.environ.get("SKMC_DATA") or "~/skmc_data").expanduser()
    for name, (address, expected) in FILES.items():
        if not (home / name).exists():
            print(f"{GITHUB}/{address} -> {home / name}", flush=True)
            fetch(home / name, address, expected)
