"""Blocks on the workers of a Dask cluster, which are real processes and may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import version

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.comm import CommClosedError
from distributed.utils import get_mp_context
from stored_ratings import NAMES, films, triplets, users, weighted_cells, write

from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    MeanCompleter,
)
from skmc.blocks import workers
from skmc.persistence import checkpoint

PARAMS = {"rank": 2, "lambda_ridge": 0.1, "random_state": 0, "device": "cpu", "tol": 0}


def fit(ratings, **params):
    completer = FactorizationCompleter(**{**PARAMS, "max_iter": 6, **params})
    with pytest.warns(UserWarning, match="stopped after"):
        return completer.fit(ratings)


@pytest.fixture
def patient():
    """Workers start quickly, and a slow machine may take its time to do so."""
    options = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.deploy.lost-worker-timeout": "120 s",
    }
    with dask.config.set(options):
        get_mp_context().set_forkserver_preload(["skmc.persistence", "pyarrow.dataset"])
        yield


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "ratings", *triplets())


def assert_same(found, expected):
    for name in ("row_factors_", "col_factors_"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=0, atol=1e-11)


# Dask itself.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_a_cluster_gives_the_same_factors(files, tmp_path, patient):
    """The same factors on two workers, one of which is killed during the fit."""
    expected = fit(Entries.from_parquet(files, *NAMES))
    rows, cols, values = triplets()
    table = {"user": users(rows), "film": films(cols), "stars": values}
    frame = dd.from_pandas(pd.DataFrame(table), npartitions=3)
    local = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit=None,
        host="127.0.0.1",
        local_directory=str(tmp_path),
    )
    with local, Client(local) as client:
        before = set(client.run(os.getpid).values())
        ratings = Entries.from_parquet(
            files, *NAMES, folder=tmp_path / "b", client=client, block_cells=200
        )
        sent = threading.Timer(
            0.5, os.kill, (sorted(before)[0], signal.SIGKILL)
        )  # any moment will do
        sent.start()
        assert_same(fit(ratings), expected)
        sent.join()
        client.wait_for_workers(2, timeout=120)
        assert before != set(client.run(os.getpid).values())
        ratings = Entries.from_dask(
            frame, *NAMES, folder=tmp_path / "c", client=client, block_cells=300
        )
        assert_same(fit(ratings), expected)
        chosen = {"rank": "auto", "lambda_ridge": "auto", "max_iter": 3}
        there = fit(ratings, **chosen)
        here = fit(Entries.from_parquet(files, *NAMES), **chosen)
        assert (there.rank_, there.lambda_ridge_) == (here.rank_, here.lambda_ridge_)
        # What a task raises arrives as it is.
        write(files, rows, cols, np.where(values > 0, np.nan, values))
        ratings = Entries.from_parquet(
            files, *NAMES, folder=tmp_path / "b", client=client
        )
        with pytest.raises(ValueError, match=r"'stars' of .* holds nan"):
            MeanCompleter().fit(ratings)
    with pytest.raises(ValueError, match="The client is closed; connect a new one"):
        MeanCompleter().fit(ratings)


@pytest.mark.long
def test_a_cluster_gives_the_same_draws(files, tmp_path):
    completer = BayesianFactorizationCompleter(
        2,
        n_draws=2,
        n_burn_in=0,
        implicit=True,
        heteroscedastic=True,
        device="cpu",
        random_state=0,
    )
    wanted = completer.fit(Entries.from_parquet(files, *NAMES)).row_factors_
    local = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=":0",
        memory_limit=None,
        local_directory=str(tmp_path),
    )
    with local, Client(local) as client:
        ratings = Entries.from_parquet(
            files, *NAMES, folder=tmp_path / "b", client=client, block_cells=400
        )
        found = completer.fit(ratings).row_factors_
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


def test_weights_of_a_dask_frame(tmp_path):
    rows, cols, values, weights = weighted_cells()
    table = {"user": rows, "film": cols, "stars": values, "times": weights}
    frame = dd.from_pandas(pd.DataFrame(table), npartitions=3)
    ratings = Entries.from_dask(
        frame, *NAMES, "times", folder=tmp_path, block_cells=200
    )
    cells = Entries.from_triplets(rows, cols, values)
    with pytest.warns(UserWarning, match="stopped after"):
        expected = FactorizationCompleter(**PARAMS, max_iter=6).fit(
            cells, cell_weight=weights
        )
    assert_same(fit(ratings), expected)
    assert fit(ratings).score(ratings) == pytest.approx(expected.score(cells))


@pytest.mark.long
def test_the_scheduler_dies(files, tmp_path):
    """An error reports it; the same code continues without a cluster."""
    expected = fit(Entries.from_parquet(files, *NAMES), max_iter=40)
    address = tmp_path / "scheduler.json"
    program = [sys.executable, "-m", "distributed.cli.dask_"]
    options = ["--scheduler-file", str(address), "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*program[:2], program[2] + "scheduler", *options, "--port", "0"],
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen(
        [
            *program[:2],
            program[2] + "worker",
            *options,
            "--nthreads",
            "1",
            "--no-nanny",
        ],
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    def kill():
        while not (tmp_path / "fit/running.skmc").exists():
            time.sleep(0.05)
        scheduler.kill()

    def ratings(client=None):
        return Entries.from_parquet(
            files, *NAMES, folder=tmp_path / "b", client=client, block_cells=200
        )

    try:
        while not address.exists():
            time.sleep(0.1)
        with Client(scheduler_file=str(address), timeout=60) as client:
            client.wait_for_workers(1, timeout=120)
            killer = threading.Thread(target=kill)
            killer.start()
            lost = pytest.raises(RuntimeError, match="scheduler of the cluster was")
            with lost, checkpoint(tmp_path / "fit", every=0):
                FactorizationCompleter(**PARAMS, max_iter=40).fit(ratings(client))
            killer.join()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    with checkpoint(tmp_path / "fit", every=0):
        resumed = fit(ratings(), max_iter=40)
    assert_same(resumed, expected)


class Answers:
    """What a client says of its workers."""

    status = "running"

    def __init__(self, answer):
        self.answer = answer

    def run(self, function, on_error):
        return {"tcp://w:1": self.answer}


class Silent(Answers):
    def who_has(self, *handles):
        raise CommClosedError

    nthreads = submit = who_has


def test_a_scheduler_that_does_not_answer():
    cluster = workers.OnCluster(Silent(version("skmc")))
    with pytest.raises(RuntimeError, match="scheduler of the cluster was lost"):
        next(cluster.map(len, []))
    with pytest.raises(RuntimeError, match="scheduler of the cluster was lost"):
        _ = cluster.at_once


def test_workers_without_the_package(files, tmp_path):
    options = {"folder": tmp_path / "b"}
    for answer, match in (
        (ModuleNotFoundError("No module named 'skmc'"), "tcp://w:1 cannot import skmc"),
        ("0.0.1", "tcp://w:1 has skmc 0.0.1, this process has"),
    ):
        ratings = Entries.from_parquet(files, *NAMES, client=Answers(answer), **options)
        with pytest.raises(RuntimeError, match=match):
            MeanCompleter().fit(ratings)
    with pytest.raises(ValueError, match="folder must name a folder that all workers"):
        Entries.from_parquet(files, *NAMES, client=Answers("0.0.1"))


def test_a_fit_without_workers_ends(monkeypatch):
    """A fit does not wait forever."""

    class Never:
        status = "pending"

        def result(self, timeout):
            raise TimeoutError

    monkeypatch.setattr(workers, "WITHOUT_WORKERS", -1.0)
    import skmc

    client = Answers(skmc.__version__)
    client.nthreads = dict
    runner = workers.OnCluster(client)
    with pytest.raises(RuntimeError, match="has had no worker for"):
        runner._result(Never())
    client.status = "connecting"
    with pytest.raises(RuntimeError, match="scheduler of the cluster was lost"):
        runner._result(Never())


@pytest.mark.parametrize("status", ["finished", "error"])
def test_a_result_that_arrives_at_the_end_of_a_wait(status):
    """It is not an error unless the task has raised one."""
    import skmc

    class Late:
        waits = 0

        def result(self, timeout):
            self.waits += 1
            if self.waits == 1 or status == "error":
                raise TimeoutError
            return 7

    client, late = Answers(skmc.__version__), Late()
    client.nthreads, late.status = lambda: {"worker": 1}, status
    runner = workers.OnCluster(client)
    if status == "error":
        with pytest.raises(TimeoutError):
            runner._result(late)
    else:
        assert runner._result(late) == 7
