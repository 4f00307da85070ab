"""Searches under joblib's "dask" and "ray", on workers that are real processes."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from configparser import ConfigParser
from pathlib import Path
from unittest import mock

import dask
import numpy as np
import pytest
from conftest import low_rank
from distributed import LocalCluster
from distributed.utils import get_mp_context
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from skmc import AIRCompleter, Entries, MeanCompleter, SVDCompleter, patterns
from skmc.distributed import Client, OneDevice
from skmc.distributed.cluster import VISIBLE
from skmc.model_selection import BatchedGridSearchCV, compare

DEVICES = ["GPU-a", "GPU-b"]
CELLS = KFold(3, shuffle=True, random_state=0)
WEIGHTS = {"lambda_row": [0.0, 0.1, 0.3]}
AIR = AIRCompleter(max_iter=100, random_state=0, device="cpu")
SVD = SVDCompleter(tol=0.01, max_iter=500, random_state=0, device="cpu")
SEARCHES = [
    GridSearchCV(SVD, {"rank": [1, 2, 3]}, cv=CELLS),
    BatchedGridSearchCV(AIR, WEIGHTS, cv=CELLS),
]


def some_cells():
    truth = low_rank(30, 20) + 0.3 * low_rank(30, 20, rank=20, seed=1)
    hidden = patterns.random(truth, 0.3, random_state=0)
    return Entries(np.ma.masked_array(truth, hidden))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Where this process and those it starts keep their temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def assert_same(found, expected):
    assert found.best_params_ == expected.best_params_
    for name, values in expected.cv_results_.items():
        if "test_score" in name:
            np.testing.assert_allclose(found.cv_results_[name], values, rtol=1e-6)


@pytest.fixture
def quick_workers():
    """Workers are forked from a process that has imported everything once."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(method):
        context = get_mp_context()  # names modules of its own when it is called first
        context.set_forkserver_preload(["skmc.distributed", "torch._dynamo"])
        yield


def test_dask(scratch, quick_workers):
    """Equal results; workers may die in mid-search; each has a device of its own."""

    cells = some_cells()

    def seen():
        import torch

        from skmc.linalg import resolve_device

        with mock.patch.object(torch.cuda, "is_available", lambda: True):
            device = str(resolve_device("auto"))  # the first that is visible
        return os.environ[VISIBLE], device, torch.get_num_threads()

    def deadly(iteration):
        """A score that kills its worker, the first time that a fit is so far."""
        here, died = os.getpid(), str(scratch / f"died-{iteration}")

        def score(completer, X, y=None):
            if completer.n_iter_ >= iteration and os.getpid() != here:
                try:
                    os.close(os.open(died, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            return completer.score(X)

        return score

    competitors = [SVD, MeanCompleter()]
    scores = ["completer", "mean", "std_error", "p_value", "error"]
    expected = [clone(search).fit(cells) for search in SEARCHES]
    local = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        memory_limit=None,
        dashboard_address=":0",
        host="127.0.0.1",
        local_directory=str(scratch),
    )
    with local, Client(local) as client, parallel_config(backend="dask"):
        client.register_plugin(OneDevice(DEVICES))
        pids = set(client.run(os.getpid).values())
        assert len(pids) == 2
        assert os.getpid() not in pids
        for search, wanted in zip(SEARCHES, expected, strict=True):
            assert_same(clone(search).fit(cells), wanted)
        table = compare(competitors, cells, cv=2)[scores]
        assert_same(
            clone(SEARCHES[0]).set_params(scoring=deadly(1)).fit(cells), expected[0]
        )
        client.wait_for_workers(2, timeout=60)  # joblib fits here if one is left
        assert not pids <= set(client.run(os.getpid).values())
        views = client.run(seen).values()
        assert sorted(views) == [(device, "cuda", 1) for device in DEVICES]
        assert len(list(scratch.glob("died-*"))) == 1
    assert table.equals(compare(competitors, cells, cv=2)[scores])


def test_without_dask_the_extra_is_named(monkeypatch):
    """The extra exists, and those of the documentation and the tests include it."""
    monkeypatch.setitem(sys.modules, "dask", None)
    for name in ("skmc.distributed", "skmc.distributed.cluster"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'pip install "skmc\[distributed\]"'):
        importlib.import_module("skmc.distributed")
    config = ConfigParser()
    config.read(Path(__file__).parents[2] / "setup.cfg")
    extras = config["options.extras_require"]
    for extra in ("distributed", "docs", "test"):
        assert {"dask", "distributed"} <= set(extras[extra].split())


def test_each_worker_has_its_own_device(scratch, monkeypatch):
    monkeypatch.setenv(VISIBLE, "all")
    first, second, third = (OneDevice(DEVICES) for _ in range(3))
    first.setup(None)
    assert os.environ[VISIBLE] == "GPU-a"
    second.setup(None)
    assert os.environ[VISIBLE] == "GPU-b"
    with pytest.raises(RuntimeError, match=r"devices, \['GPU-a', .* one worker for"):
        third.setup(None)
    assert os.environ[VISIBLE] == ""
    third.teardown(None)
    first.teardown(None)
    third.setup(None)
    assert os.environ[VISIBLE] == "GPU-a"


@pytest.mark.parametrize(
    ("listed", "count", "shown"),
    [
        (None, 2, "0"),
        ("3,1", 2, "3"),
        ("5,-1,2", 1, "5"),
        ("", 0, ""),
        (None, 0, None),
    ],
)
def test_devices_are_the_visible_ones(listed, count, shown, scratch, monkeypatch):
    monkeypatch.setenv(VISIBLE, "")  # to be restored
    monkeypatch.delenv(VISIBLE)
    if listed is not None:
        monkeypatch.setenv(VISIBLE, listed)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    OneDevice().setup(None)
    assert os.environ.get(VISIBLE) == shown


def test_pinning_precedes_cuda(scratch, monkeypatch):
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    with pytest.raises(RuntimeError, match="register OneDevice before the first fit"):
        OneDevice(["0", "1"]).setup(None)
    assert os.environ[VISIBLE] == "0,1"


RAY = """
import os, sys, time
from tempfile import gettempdir
import ray
from joblib import Parallel, delayed, parallel_config
from ray.util.joblib import register_ray
from sklearn.base import clone

sys.path.insert(0, sys.argv[1])
from test_cluster import SEARCHES, assert_same, some_cells

def device():
    time.sleep(1)  # while the other works
    return os.environ["CUDA_VISIBLE_DEVICES"]

cells = some_cells()
register_ray()
ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, _temp_dir=gettempdir())
with parallel_config(backend="ray", n_jobs=2, ray_remote_args={"num_gpus": 1}):
    assert sorted(Parallel()(delayed(device)() for _ in range(2))) == ["0", "1"]
    found = [clone(search).fit(cells) for search in SEARCHES[:2]]
ray.shutdown()
for search, other in zip(SEARCHES, found, strict=False):
    assert_same(other, clone(search).fit(cells))
print("the same")
"""


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="ray is not installed")
def test_ray(tmp_path):
    """Equal results, one device per worker; apart, as ray changes joblib for good."""
    ran = subprocess.run(
        [sys.executable, "-c", RAY, os.path.dirname(__file__)],
        capture_output=True,
        text=True,
        timeout=180,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
        },
    )
    assert ran.stdout.endswith("the same\n"), ran.stderr
