"""Speed of recommenders: cmfrec, implicit, Faiss and Spark beside ours.

``pip install -r benchmarks/requirements.txt`` installs the first three. ``SKMC_SPARK``
is an interpreter with ``pyspark`` (4 or newer, which needs Java 17) and ``numpy``,
``SKMC_SCRATCH`` a folder for the Parquet files that both programs read. The number of
threads for Spark is that of this process (``OMP_NUM_THREADS``).
"""

from __future__ import annotations

import json
import subprocess
import time
from bisect import bisect_left
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Results, folder_of, run
from problems import split, write_ratings
from scipy.sparse import coo_matrix, csr_matrix
from threadpoolctl import threadpool_limits
from timing import both_clocks, in_turns

from skmc import Entries, FactorizationCompleter
from skmc.datasets import load_movielens

MILLION = "1m", "90/10", 0  # the split of MovieLens-1M
RANK, ALPHA, RIDGE = 40, 2.0, 5.0
WITHIN = (0.02, 0.001)  # of the lowest loss
MOST = 200  # sweeps
Factors = tuple[np.ndarray, np.ndarray]


def cmfrec() -> dict:
    """Factorization and cmfrec on MovieLens-1M: same rank, sweeps and precision.

    Both have biases and a weight per rating: .06 of unit variance for us and .06 of the
    ratings for cmfrec. Half-steps of cmfrec are three steps of conjugate gradients, and
    exact at the end; ``cholesky`` makes all of them exact.
    """
    from cmfrec import CMF

    train, test = split(*MILLION)
    single = Entries.from_triplets(
        train.rows, train.cols, train.values.astype(np.float32), train.matrix_shape
    )
    places = train.rows, train.cols
    matrix = coo_matrix((train.values, places), train.matrix_shape)
    errors = {}

    def rmse(guess) -> float:
        return float(np.sqrt(np.mean((np.clip(guess, 1, 5) - test.values) ** 2)))

    def ours():
        completer = FactorizationCompleter(
            RANK, lambda_ridge=0.06, max_iter=10, tol=0.0, random_state=0
        ).fit(single)
        errors["ours"] = rmse(completer.predict_entries(test.rows, test.cols))

    def theirs(name, use_cg, threads):
        def run():
            model = CMF(
                k=RANK,
                lambda_=0.06,
                scale_lam=True,
                niter=10,
                use_cg=use_cg,
                nthreads=threads,
                use_float=True,
                verbose=False,
            ).fit(matrix)
            errors[name] = rmse(model.predict(test.rows, test.cols))

        return run

    result = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        names = ["cmfrec", "cmfrec, cholesky"]
        others = [theirs(names[0], True, threads), theirs(names[1], False, threads)]
        seconds = in_turns(ours, *others)
        result[f"{threads} threads"] = {
            "seconds": dict(zip(["ours", *names], seconds, strict=True)),
            "ours / cmfrec": seconds[0] / seconds[1],
            "ours / cmfrec, cholesky": seconds[0] / seconds[2],
            "RMSE": dict(errors),
        }
    return result


class Counts:
    """Counts in single precision, and fits that return factors."""

    def __init__(self, entries: Entries):
        self.places = entries.rows, entries.cols
        values, shape = entries.values.astype(np.float32), entries.matrix_shape
        self.single = Entries.from_triplets(*self.places, values, shape)
        self.weights = 1 + ALPHA * values
        self.confidence = coo_matrix((self.weights, self.places), shape).tocsr()

    def loss(self, U: np.ndarray, V: np.ndarray) -> float:
        """The loss of `FactorizationCompleter`."""
        guess = np.einsum("ik,ik->i", U[self.places[0]], V[self.places[1]])
        seen = self.weights * (guess - 1) ** 2 - guess**2
        every = np.sum((U.T @ U).astype(float) * (V.T @ V))
        ridges = RIDGE * (np.sum(U**2, dtype=float) + np.sum(V**2, dtype=float))
        return float(seen.sum(dtype=float) + every + ridges) / 2

    def ours(self, sweeps: int) -> Factors:
        completer = FactorizationCompleter(
            RANK,
            lambda_ridge=RIDGE,
            alpha=ALPHA,
            per_cell=0.0,
            max_iter=sweeps,
            tol=0.0,
            random_state=0,
        ).fit(self.single)
        U, V = completer.row_factors_, completer.col_factors_
        return U[:, :RANK], V[:, :RANK]

    def theirs(self, sweeps: int, use_cg: bool = True) -> Factors:
        from implicit.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            RANK,
            regularization=RIDGE,
            alpha=1.0,
            iterations=sweeps,
            use_cg=use_cg,
            num_threads=torch.get_num_threads(),
            random_state=0,
        )
        with threadpool_limits(1, "blas"):  # otherwise its threads slow each other
            model.fit(self.confidence, show_progress=False)
        return model.user_factors, model.item_factors


def sweeps_of_counts() -> dict:
    """implicit takes three steps of conjugate gradients for each user, or solves."""
    torch.set_num_threads(1)
    return by_sweeps(Counts(split(*MILLION)[0]))


def likes_to_loss(size: str, threads: int, share: float) -> dict:
    """Ratings of at least four stars, as ones."""
    torch.set_num_threads(threads)
    entries = load_movielens(size).entries
    likes = entries[entries.values >= 4]
    ones = np.ones(len(likes), np.float32)
    places = likes.rows, likes.cols
    likes = Entries.from_triplets(*places, ones, likes.matrix_shape)
    return to_loss(Counts(likes), share)


def by_sweeps(data: Counts) -> dict:
    """15 sweeps each, timed in turns. Other numbers of sweeps are run once."""
    runs: dict[str, Callable[[int], Factors]] = {
        "ours": data.ours,
        "implicit": data.theirs,
        "implicit, cholesky": partial(data.theirs, use_cg=False),
    }
    seconds = in_turns(*(partial(fit, 15) for fit in runs.values()))
    result = {
        "seconds": dict(zip(runs, seconds, strict=True)),
        "ours / implicit": seconds[0] / seconds[1],
        "ours / implicit, cholesky": seconds[0] / seconds[2],
        "loss": {name: data.loss(*fit(15)) for name, fit in runs.items()},
        "by sweeps": {"ours": {}, "implicit": {}},
    }
    for name, points in result["by sweeps"].items():
        for sweeps in (2, 3, 5, 15, 50, 150):
            start = time.process_time()
            factors = runs[name](sweeps)
            took = time.process_time() - start
            point = {"processor seconds": took, "loss": data.loss(*factors)}
            points[sweeps] = point
    return result


def to_loss(data: Counts, share: float) -> dict:
    """Processor seconds of the fewest sweeps to within a share of the lowest loss."""
    runs = {"ours": data.ours, "implicit": data.theirs}
    enough = (1 + share) * min(data.loss(*fit(MOST)) for fit in runs.values())
    sweeps = {}
    for name, fit in runs.items():

        def gain(k: int, fit: Callable[[int], Factors] = fit) -> float:
            return enough - data.loss(*fit(k))

        sweeps[name] = 1 + bisect_left(range(1, MOST), 0.0, key=gain)
    timed = (partial(fit, sweeps[name]) for name, fit in runs.items())
    seconds = in_turns(*timed, clock=time.process_time)
    return {
        "loss": enough,
        "sweeps": sweeps,
        "processor seconds": dict(zip(runs, seconds, strict=True)),
        "ours / implicit": seconds[0] / seconds[1],
    }


# ------------------------------------------------------- the best films of all users

USERS, FILMS, WIDE, N = 25_000, 60_000, 64, 10
THREADS = (1, 2)
VISITED = (64, 256)  # nodes of the graph, in an approximate search


@cache
def wide_ratings() -> Entries:
    """Products of factors and a little noise; popularity is a power law."""
    rng = np.random.default_rng(0)
    popularity = rng.permutation((10.0 + np.arange(FILMS)) ** -0.8)
    share = np.cumsum(popularity) / popularity.sum()
    drawn = np.searchsorted(share, rng.random((USERS, 120)))
    cells = np.unique(np.arange(USERS)[:, None] * FILMS + drawn)
    rows, cols = np.divmod(cells, FILMS)
    U, V = (rng.standard_normal((n, WIDE), np.float32) for n in (USERS, FILMS))
    values = np.einsum("ik,ik->i", U[rows], V[cols]) / WIDE**0.5
    values += 0.3 * rng.standard_normal(len(rows), np.float32)
    liking = np.log(popularity / popularity.mean()).astype(np.float32) / 4
    return Entries.from_triplets(rows, cols, values + liking[cols], (USERS, FILMS))


@cache
def wide_factors() -> FactorizationCompleter:
    return FactorizationCompleter(
        WIDE, lambda_ridge=0.05, max_iter=5, tol=0.0, device="cpu", random_state=0
    ).fit(wide_ratings())


def exact(threads: int) -> dict:
    """implicit ranks the same factors: seconds in turns, share of equal films."""
    from implicit.als import AlternatingLeastSquares

    cells, completer = wide_ratings(), wide_factors()
    torch.set_num_threads(threads)
    users, found = np.arange(USERS), {}
    places = cells.rows, cells.cols
    seen = csr_matrix((np.ones(len(cells), np.float32), places), cells.matrix_shape)
    model = AlternatingLeastSquares(WIDE, num_threads=threads)
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
    return {**result, "equal": float(equal.mean())}


def approximate() -> dict:
    """The graph of Faiss, beside the exact search; here no film is left out."""
    import faiss

    completer = wide_factors()
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
    ours = {"exact, seconds": seconds}
    return {**ours, "seconds of the index": build, **searches}


def by_spark(threads: int) -> dict:
    """Spark fits factors of the same rank, and ranks all films, rated ones too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    python, cells = spark(), wide_ratings()
    folder = scratch() / "recommend"
    folder.mkdir(parents=True, exist_ok=True)
    table = {"user": cells.rows, "film": cells.cols, "stars": cells.values}
    small = {"user": pa.int32(), "film": pa.int32(), "stars": pa.float32()}
    columns = {name: pa.array(table[name], type=kind) for name, kind in small.items()}
    pq.write_table(pa.table(columns), folder / "0.parquet")
    torch.set_num_threads(threads)
    command = [
        str(python),
        "-c",
        BEST_BY_SPARK,
        str(folder),
        *map(str, (WIDE, N, threads)),
    ]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    return {"seconds": json.loads(ran.stdout.splitlines()[-1])}


# ------------------------------------------------------------------------------ Spark


def spark() -> Path:
    return folder_of("SKMC_SPARK", "an interpreter with pyspark")


def scratch() -> Path:
    return folder_of("SKMC_SCRATCH", "a folder with space for Parquet files")


SPARK_REPEATS = {"1m": 3, "1e7": 1}
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
BEST_BY_SPARK = (
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


def fit_by_spark(python: Path, folder: Path, data: str) -> dict:
    """A fit by Spark in a new process."""
    values = [folder, *SETTINGS[data], torch.get_num_threads()]
    command = [str(python), "-c", THEIRS, *map(str, values)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    found: dict = json.loads(ran.stdout.splitlines()[-1])
    return found


def fit_by_us(folder: Path, data: str, same: bool) -> dict:
    """A fit by `FactorizationCompleter` in this process."""
    import pyarrow.parquet as pq

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


def write_files(folder: Path, data: str) -> None:
    if data != "1m":
        write_ratings(folder, int(float(data)))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, part in zip(("train", "test"), split(*MILLION), strict=True):
        (folder / name).mkdir(parents=True)
        table = {"user": part.rows, "film": part.cols, "stars": part.values}
        pq.write_table(pa.table(table), folder / name / "0.parquet")


def compare(data: str) -> dict:
    """Medians of fits that take turns.

    Spark's model has no mean and no biases, and multiplies the weight by the numbers of
    ratings, as ours does. "ours, same model" is ours without mean and biases; its
    objective is that of Spark.
    """
    python, folder = spark(), scratch() / f"spark-{data}"
    if not folder.exists():
        write_files(folder, data)
    runs: dict[str, list[dict]] = {"Spark": [], "ours, same model": [], "ours": []}
    for _ in range(SPARK_REPEATS[data]):
        runs["Spark"].append(fit_by_spark(python, folder, data))
        runs["ours, same model"].append(fit_by_us(folder, data, True))
        runs["ours"].append(fit_by_us(folder, data, False))
    found: dict = {}
    for name, some in runs.items():
        found[name] = {k: float(np.median([run[k] for run in some])) for k in some[0]}
    for name in ("ours, same model", "ours"):
        ratio = found["Spark"]["seconds"] / found[name]["seconds"]
        found[f"Spark / {name}"] = ratio
    return found


def sweeps(results: Results) -> None:
    key = ("sweeps", "MovieLens-1m", "90/10")
    results.measure((*key, "cmfrec"), cmfrec, limit=None)
    results.measure((*key, "implicit"), sweeps_of_counts, limit=None)
    for size in ("100k", "1m"):
        for threads in THREADS:
            for share in WITHIN:
                case = f"implicit, {threads} threads, within {share:.1%}"
                key = ("to a loss", f"likes of MovieLens-{size}", "none", case)
                results.measure(key, likes_to_loss, size, threads, share, limit=None)


def recommend(results: Results) -> None:
    case = ("recommend", f"{USERS} users, {FILMS} films", "none")
    for threads in THREADS:
        key = (*case, f"implicit, {threads} threads")
        results.measure(key, exact, threads, limit=None)
    results.measure((*case, "Faiss"), approximate, limit=None)
    for threads in THREADS:
        key = (*case, f"Spark, {threads} threads")
        results.measure(key, by_spark, threads, limit=None)


def fits_of_spark(results: Results) -> None:
    for data in SETTINGS:
        rank, weight, n = SETTINGS[data]
        case = f"Spark, rank {rank}, weight {weight}, {n} sweeps"
        key = ("fit", data, "held out", case)
        results.measure(key, compare, data, limit=None)


if __name__ == "__main__":
    run(__doc__, sweeps, recommend, fits_of_spark)
