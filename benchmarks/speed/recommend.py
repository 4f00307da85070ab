"""The best films of all users.

``python -m benchmarks.speed.recommend [PYTHON FOLDER]``:

25 000 users, 60 000 films of unequal popularity, about 118 ratings of each user, and
the ten best other films. The package implicit ranks the same factors, and Faiss
searches them approximately. Given PYTHON, an interpreter with ``pyspark``, Spark
instead: it fits factors of the same rank, and ranks all films, with those that a user
has rated.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from benchmarks.shared.pages import hardware, record
from benchmarks.shared.timing import both_clocks, in_turns
from benchmarks.speed.spark import SESSION
from skmc import Entries, FactorizationCompleter

USERS, FILMS, RANK, N = 25_000, 60_000, 64, 10
THREADS = (1, 2)
VISITED = (64, 256)  # nodes of the graph, in an approximate search

SPARK = (
    """
import json, sys, time
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
folder, rank, n, threads = sys.argv[1:]
"""
    + SESSION
    + """\
als = ALS(rank=int(rank), maxIter=1, regParam=0.05, userCol="user", itemCol="film",
          ratingCol="stars", seed=0)
model = als.fit(spark.read.parquet(folder))
model.userFactors.cache().count(), model.itemFactors.cache().count()
start = time.perf_counter()
best = model.recommendForAllUsers(int(n))
best.write.format("noop").mode("overwrite").save()
print(json.dumps(time.perf_counter() - start))
"""
)


def ratings() -> Entries:
    """Products of factors and a little noise; popularity is a power law."""
    rng = np.random.default_rng(0)
    popularity = rng.permutation((10.0 + np.arange(FILMS)) ** -0.8)
    share = np.cumsum(popularity) / popularity.sum()
    drawn = np.searchsorted(share, rng.random((USERS, 120)))
    cells = np.unique(np.arange(USERS)[:, None] * FILMS + drawn)
    rows, cols = np.divmod(cells, FILMS)
    U, V = (rng.standard_normal((n, RANK), np.float32) for n in (USERS, FILMS))
    values = np.einsum("ik,ik->i", U[rows], V[cols]) / RANK**0.5
    values += 0.3 * rng.standard_normal(len(rows), np.float32)
    liking = np.log(popularity / popularity.mean()).astype(np.float32) / 4
    return Entries.from_triplets(rows, cols, values + liking[cols], (USERS, FILMS))


def exact(completer: FactorizationCompleter, cells: Entries, threads: int) -> dict:
    """Wall and processor seconds of both, in turns, and the share of equal films."""
    from implicit.als import AlternatingLeastSquares

    torch.set_num_threads(threads)
    users, found = np.arange(USERS), {}
    places = cells.rows, cells.cols
    seen = csr_matrix((np.ones(len(cells), np.float32), places), cells.matrix_shape)
    model = AlternatingLeastSquares(RANK, num_threads=threads)
    model.user_factors = completer.row_factors_
    model.item_factors = completer.col_factors_

    def ours() -> None:
        found["ours"] = completer.recommend(users, N)[0].filled(-1)

    def theirs() -> None:
        with threadpool_limits(1, "blas"):  # otherwise its threads slow each other
            found["implicit"] = model.recommend(users, seen, N)[0]

    seconds = in_turns(ours, theirs, repeats=5, clock=both_clocks)
    clocks = ("seconds", "processor seconds")
    result: dict[str, Any] = {
        name: dict(zip(clocks, own, strict=True))
        for name, own in zip(found, seconds.tolist(), strict=True)
    }
    for clock in clocks:
        ratio = result["ours"][clock] / result["implicit"][clock]
        result[f"ours / implicit, {clock}"] = ratio
    equal = found["ours"] == found["implicit"]
    return {"hardware": hardware(), **result, "equal": float(equal.mean())}


def approximate(completer: FactorizationCompleter) -> dict:
    """The graph of Faiss, beside the exact search; here no film is left out."""
    import faiss

    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    U, V = completer.row_factors_, completer.col_factors_
    index = faiss.IndexHNSWFlat(V.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    best = completer.recommend(np.arange(USERS), N, exclude_seen=False)[0]
    searches: dict[str, Any] = {}
    (build,) = in_turns(lambda: index.add(V), repeats=1)
    for visited in VISITED:
        index.hnsw.efSearch = visited
        (seconds,) = in_turns(lambda: index.search(U, N), repeats=3)
        _, items = index.search(U, N)
        common = (items[:, :, None] == best.filled(-1)[:, None]).any(2)
        searches[f"efSearch={visited}"] = {"seconds": seconds, "recall": common.mean()}
    (seconds,) = in_turns(
        lambda: completer.recommend(np.arange(USERS), N, exclude_seen=False), repeats=3
    )
    ours = {"hardware": hardware(), "exact, seconds": seconds}
    return {**ours, "seconds of the index": build, **searches}


def by_spark(python: str, folder: Path, cells: Entries, threads: int) -> dict:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    table = {"user": cells.rows, "film": cells.cols, "stars": cells.values}
    small = {"user": pa.int32(), "film": pa.int32(), "stars": pa.float32()}
    columns = {name: pa.array(table[name], type=kind) for name, kind in small.items()}
    pq.write_table(pa.table(columns), folder / "0.parquet")
    torch.set_num_threads(threads)
    command = [python, "-c", SPARK, str(folder), *map(str, (RANK, N, threads))]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    return {"hardware": hardware(), "seconds": json.loads(ran.stdout.splitlines()[-1])}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cells = ratings()
    if sys.argv[1:]:
        python, root = sys.argv[1:]
        for threads in THREADS:
            found = by_spark(python, Path(root) / "recommend", cells, threads)
            record("speed-recommend", {f"Spark, {threads} threads": found})
    else:
        completer = FactorizationCompleter(
            RANK, lambda_ridge=0.05, max_iter=5, tol=0.0, device="cpu", random_state=0
        ).fit(cells)
        for threads in THREADS:
            found = exact(completer, cells, threads)
            record("speed-recommend", {f"exact, {threads} threads": found})
        record("speed-recommend", {"approximate": approximate(completer)})
