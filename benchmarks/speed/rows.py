"""AIR on many rows: ``python -m benchmarks.speed.rows [accuracy|growth|page]``.

``accuracy`` compares the sparse graph with all pairs where both are possible.
``growth`` measures time and memory for up to 400 000 rows, each fit in a process of its
own. Records are in ``docs/reproduction/records/air-rows.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import geometric_mean
from unittest import mock

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.shared import made
from benchmarks.shared.pages import dots, hardware, record, table, write_page
from benchmarks.shared.problems import matrix
from benchmarks.shared.timing import peak_memory
from skmc import AIRCompleter
from skmc.datasets import load_expression, load_table
from skmc.metrics import rmse

N_ROWS = 1500
FILES = {
    "letter": "letter",
    "airfoil": "airfoil",
    "spambase": "spambase",
    "concrete": "concrete",
}
PICTURES = ("Cameraman", "peppers", "house")
# Rows, columns, and iterations of a fit.
SIZES = [
    *((20_000, 60, 400), (100_000, 20, 400)),
    *((n_rows, 20, 12) for n_rows in (50_000, 100_000, 200_000, 400_000)),
]


def truth_of(name: str) -> np.ndarray:
    """Some complete rows with standardized columns, or a picture."""
    if name in PICTURES:
        return matrix(name)[0]
    if name == "digits":
        return load_digits().data[:N_ROWS]
    if name == "yeast":
        data = load_expression()
        alpha = [str(column).startswith("alpha") for column in data["columns"]]
        X = data.data[:, alpha].astype(float)
    else:
        X = load_table(FILES[name]).data.astype(float)
    X = X[~np.isnan(X).any(1)][-N_ROWS:]
    return (X - X.mean(0)) / X.std(0)


def accuracy() -> dict:
    """Errors with neighbors over errors with all pairs; columns have all pairs.

    Pictures have as many columns as rows, so both have neighbors.
    """
    found: dict = {}
    for name in (*FILES, "digits", "yeast", *PICTURES):
        truth = truth_of(name)
        for percent in (20, 50):
            hidden = np.random.default_rng(3).random(truth.shape) < percent / 100
            X = np.ma.masked_array(truth, hidden)
            errors = []
            for many in (10**6, 100):
                with mock.patch("skmc.completers._energies.MANY", many):
                    air = AIRCompleter(random_state=0)
                    errors.append(float(rmse(air.fit_transform(X), truth, hidden)))
            found[f"{name} {truth.shape[0]} x {truth.shape[1]}, {percent} % hidden"] = {
                "all pairs": errors[0],
                "neighbors": errors[1],
                "ratio": errors[1] / errors[0],
            }
    return {"accuracy": found}


def grown(n_rows: int, n_cols: int, max_iter: int) -> dict:
    """One fit: a smooth function of four hidden variables and noise."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, 4))
    truth = np.tanh(Z @ rng.normal(size=(4, n_cols)))
    truth += 0.5 * np.sin(Z @ rng.normal(size=(4, n_cols)))
    truth += 0.1 * rng.normal(size=truth.shape)
    hidden = rng.random(truth.shape) < 0.2
    X = np.where(hidden, np.nan, truth)
    start, cpu = time.perf_counter(), time.process_time()
    completed = AIRCompleter(max_iter=max_iter, random_state=0).fit_transform(X)
    return {
        "seconds": time.perf_counter() - start,
        "processor seconds": time.process_time() - cpu,
        "peak GB": peak_memory() / 1e9,
        "RMSE / deviation": float(rmse(completed, truth, hidden) / truth.std()),
    }


def growth() -> dict:
    """Seconds and peak memory for more and more rows."""
    found = {}
    for size in SIZES:
        command = [
            sys.executable,
            "-m",
            "benchmarks.speed.rows",
            "one",
            *map(str, size),
        ]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        found["{} x {}, {} iterations".format(*size)] = json.loads(output.stdout)
    return {"growth": found, "hardware": hardware()}


def page() -> None:
    """Write the page from the records."""
    known = made.known("air-rows")
    errors = [
        [name, *(f"{value:.4f}" for value in row.values())]
        for name, row in known.get("accuracy", {}).items()
    ]
    sizes = [
        [name, *(f"{value:.3g}" for value in row.values())]
        for name, row in known.get("growth", {}).items()
    ]
    ratios = {
        name: {"neighbors": row["ratio"]}
        for name, row in known.get("accuracy", {}).items()
    }
    each = [row["neighbors"] for row in ratios.values()]
    measure = "RMSE with 10 neighbors / RMSE with all pairs"
    fields = {
        "mean": f"{geometric_mean(each):.3f}",
        "least": f"{min(each):.2f}",
        "most": f"{max(each):.2f}",
        "n_cases": len(each),
        "chart": dots("air-rows", measure, ratios, at=1),
        "accuracy": table(["", "all pairs", "neighbors", "ratio"], errors),
        "growth": table(["", "s", "processor s", "peak GB", "RMSE / deviation"], sizes),
        "hardware": known["hardware"],
    }
    write_page("air-rows", fields)


if __name__ == "__main__":
    what = sys.argv[1:] or ["accuracy", "growth", "page"]
    if what[0] == "one":
        print(json.dumps(grown(*map(int, what[1:]))))
    else:
        for part in what:
            if part == "page":
                page()
            else:
                run = {"accuracy": accuracy, "growth": growth}[part]
                record("air-rows", run())
