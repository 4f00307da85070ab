"""
Factorize ratings that do not fit in memory
===========================================

`FactorizationCompleter` reads ratings from Parquet files, sorts them into blocks on the
disk, and holds one block and the factors in memory. Here the files have a million
ratings. Increase ``N`` to try it with more.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skmc import Entries, FactorizationCompleter

N = 10**6
PART = 2**19  # ratings written at once
N_USERS, N_FILMS = N // 50, N // 1000

# %%
# The files
# ---------
# The ratings are simulated. Some users rate many films, and some films have many
# ratings. The ratings of a user may be in several files, in any order.
rng = np.random.default_rng(0)
taste = rng.standard_normal((N_USERS, 4), np.float32)
kind = rng.standard_normal((N_FILMS, 4), np.float32) / 2
folder = TemporaryDirectory()
files = Path(folder.name)
(files / "train").mkdir()


def drawn(size):
    user = (N_USERS * rng.random(size) ** 2).astype(np.int64)
    film = (N_FILMS * rng.random(size) ** 3).astype(np.int64)
    noise = rng.standard_normal(size, np.float32) / 2
    stars = 3 + (taste[user] * kind[film]).sum(1) + noise
    return {
        "user": np.char.add("user-", user.astype(str)),
        "film": film,
        "stars": stars,
    }


for k, begin in enumerate(range(0, N, PART)):
    part = pa.table(drawn(min(PART, N - begin)))
    pq.write_table(part, files / "train" / f"{k:03d}.parquet")
test = drawn(N // 100)


# %%
# The fit
# -------
# `Entries.from_parquet` reads nothing; `fit` does. ``block_cells`` bounds the memory of
# a block. `Entries.from_csv` does the same for CSV files.
ratings = Entries.from_parquet(
    files / "train",
    "user",
    "film",
    "stars",
    duplicates="mean",
    folder=files,
    block_cells=2**19,
)
als = FactorizationCompleter(
    8, lambda_ridge=0.05, max_iter=20, tol=0.01, scaling="global", random_state=0
)
start = time.perf_counter()
als.fit(ratings)
seconds = time.perf_counter() - start
print(f"{len(als.row_ids_)} users, {len(als.col_ids_)} films, {seconds:.0f} s")

# %%
# Predictions and recommendations
# -------------------------------
# Users and films keep their names. The simulated ratings have noise with a standard
# deviation of 0.5, which no method can predict.
known = np.isin(test["user"], als.row_ids_)
guess = als.predict_entries(test["user"][known], test["film"][known])
error = np.sqrt(np.mean((guess - test["stars"][known]) ** 2))
print(f"Root mean square error on {known.sum()} held-out ratings: {error:.3f}")
films, values = als.recommend(["user-0"], 5)
print("Recommended to user-0:", films[0])

figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
axis.hexbin(test["stars"][known], guess, gridsize=60, bins="log", cmap="viridis")
axis.axline((3, 3), slope=1, color="white", linewidth=1)
axis.set(xlabel="held-out rating", ylabel="predicted", xlim=(-2, 8), ylim=(-2, 8))
axis.set_title(f"RMSE of the held-out ratings: {error:.2f}")
plt.show()
folder.cleanup()
