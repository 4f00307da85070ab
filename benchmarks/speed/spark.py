"""Spark's ALS beside ours: ``python -m benchmarks.speed.spark PYTHON FOLDER [DATA]``.

PYTHON is an interpreter with ``pyspark`` (4 or newer, which needs Java 17) and
``numpy``. DATA is ``1m`` (MovieLens, nine tenths of the ratings) and ``1e7`` (synthetic
ratings of `benchmarks.speed.scale`). Both programs read the same Parquet files in
FOLDER and have as many threads as this process (``OMP_NUM_THREADS``), the same rank,
weight and number of sweeps. Spark's model has no mean and no biases, and multiplies the
weight by the numbers of ratings, as ours does. "ours, same model" is ours without mean
and biases; its objective is that of Spark. Seconds are those of the fit alone, wall
time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from benchmarks.shared.pages import hardware, record
from benchmarks.speed import scale

REPEATS = {"1m": 3, "1e7": 1}
SETTINGS = {"1m": (40, 0.06, 10), "1e7": (16, 0.05, 5)}  # rank, weight, sweeps

SESSION = """\
spark = (
    SparkSession.builder.master(f"local[{threads}]")
    .config("spark.driver.memory", "8g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", 2 * int(threads))
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
"""

THEIRS = (
    """
import json, sys, time
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession, functions
folder, rank, weight, sweeps, threads = sys.argv[1:]
"""
    + SESSION
    + """\
def read(name):
    ratings = spark.read.parquet(f"{folder}/{name}")
    small = [functions.col(k).cast("int").alias(k) for k in ("user", "film")]
    return ratings.select(*small, functions.col("stars").cast("float").alias("stars"))
train, test = read("train").cache(), read("test")
train.count()
als = ALS(rank=int(rank), maxIter=int(sweeps), regParam=float(weight), userCol="user",
          itemCol="film", ratingCol="stars", seed=0, coldStartStrategy="drop",
          numUserBlocks=2 * int(threads), numItemBlocks=2 * int(threads))
start = time.perf_counter()
model = als.fit(train)
model.userFactors.count(), model.itemFactors.count()
seconds = time.perf_counter() - start
off = functions.col("prediction") - functions.col("stars")
found = model.transform(test).select(functions.avg(off * off), functions.count(off))
square, count = found.first()
print(json.dumps({"seconds": seconds, "rmse": square**0.5, "n": count}))
"""
)


def theirs(python: str, folder: Path, data: str) -> dict:
    """A fit by Spark in a new process."""
    values = [folder, *SETTINGS[data], torch.get_num_threads()]
    command = [python, "-c", THEIRS, *map(str, values)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    found: dict = json.loads(ran.stdout.splitlines()[-1])
    return found


def ours(folder: Path, data: str, same: bool) -> dict:
    """A fit by `FactorizationCompleter` in this process."""
    import pyarrow.parquet as pq

    from skmc import Entries, FactorizationCompleter

    train, test = (pq.read_table(folder / name) for name in ("train", "test"))
    places, known = [], []
    for name in ("user", "film"):
        ids, place = np.unique(train[name].to_numpy(), return_inverse=True)
        known.append(ids)
        places.append(place)
    cells = Entries.from_triplets(*places, train["stars"].to_numpy(), duplicates="mean")
    cells.values = cells.values.astype(np.float32)
    rank, weight, sweeps = SETTINGS[data]
    model = {"biases": None, "scaling": None} if same else {"scaling": "global"}
    completer = FactorizationCompleter(
        rank,
        lambda_ridge=weight,
        max_iter=sweeps,
        tol=0,
        device="cpu",
        random_state=0,
        **model,
    )
    start = time.perf_counter()
    completer.fit(cells)
    seconds = time.perf_counter() - start
    new = [test[name].to_numpy() for name in ("user", "film")]
    at = [np.searchsorted(k, x) for k, x in zip(known, new, strict=True)]
    seen = np.ones(len(test), bool)
    for ids, x, place in zip(known, new, at, strict=True):
        seen &= ids[place.clip(max=len(ids) - 1)] == x
    guess = completer.predict_entries(*(place[seen] for place in at))
    off = guess - test["stars"].to_numpy()[seen]
    error = float(np.sqrt(np.mean(np.square(off))))
    return {"seconds": seconds, "rmse": error, "n": int(seen.sum())}


def write(folder: Path, data: str) -> None:
    if data != "1m":
        scale.write(folder, int(float(data)))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from benchmarks.speed.low_rank import million

    for name, part in zip(("train", "test"), million(), strict=True):
        (folder / name).mkdir(parents=True)
        table = {"user": part.rows, "film": part.cols, "stars": part.values}
        pq.write_table(pa.table(table), folder / name / "0.parquet")


def compare(python: str, folder: Path, data: str) -> dict:
    """Medians of fits that take turns."""
    runs: dict[str, list[dict]] = {"Spark": [], "ours, same model": [], "ours": []}
    for _ in range(REPEATS[data]):
        runs["Spark"].append(theirs(python, folder, data))
        runs["ours, same model"].append(ours(folder, data, True))
        runs["ours"].append(ours(folder, data, False))
    found: dict = {"hardware": hardware(), "settings": SETTINGS[data]}
    for name, some in runs.items():
        found[name] = {k: float(np.median([run[k] for run in some])) for k in some[0]}
    for name in ("ours, same model", "ours"):
        ratio = found["Spark"]["seconds"] / found[name]["seconds"]
        found[f"Spark / {name}"] = ratio
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    python, root, *chosen = sys.argv[1:]
    for data in chosen or SETTINGS:
        folder = Path(root) / f"spark-{data}"
        if not folder.exists():
            write(folder, data)
        record("speed-spark", {data: compare(python, folder, data)})
