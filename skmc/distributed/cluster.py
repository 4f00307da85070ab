"""Searches on a cluster of dask workers: one device each, and any of them may die.

``docs/cluster.md`` has the ten lines for a cluster of GPUs, with dask and with ray.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import torch

from skmc.cells import Entries
from skmc.model_selection import Folds

try:
    import dask
    import distributed
    from dask.sizeof import sizeof
except ImportError as error:
    raise ImportError(
        "skmc.distributed needs dask: pip install dask distributed."
    ) from error

VISIBLE = "CUDA_VISIBLE_DEVICES"  # CUDA reads it when it is first used


class Client(distributed.Client):
    """`distributed.Client` which sends data so that it is not lost with a worker.

    `joblib` hands arrays of more than a kilobyte to ``scatter``, which leaves them on
    one worker, and when that dies a search ends in a ``CancelledError``. Here the
    scheduler has the data too, and puts them onto another worker. Parameters are those
    of `distributed.Client`.

    Notes
    -----
    A fit that a dying worker was at is done again, and one that has taken down more
    than ``distributed.scheduler.allowed-failures`` workers (3) ends the search with
    `distributed.KilledWorker`. What a fit sends from inside a worker, being itself
    parallel, is not kept.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import LocalCluster
    >>> from joblib import parallel_config
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from skmc import Entries, SVDCompleter
    >>> from skmc.distributed import Client
    >>> X = Entries(np.outer(np.arange(1.0, 31), np.arange(1.0, 21)))
    >>> folds = KFold(3, shuffle=True, random_state=0)
    >>> search = GridSearchCV(SVDCompleter(scaling=None), {"rank": [1, 2]}, cv=folds)
    >>> local = LocalCluster(1, processes=False, dashboard_address=None)
    >>> with local, Client(local), parallel_config(backend="dask"):
    ...     search.fit(X).best_params_
    {'rank': 1}
    """

    def scatter(self, data: Any, *args: Any, asynchronous=None, **options: Any):
        """Hand over ``data``, or each item of a list, as tasks.

        Parameters
        ----------
        data : object or list
            What the workers need.
        *args : object
            Left unused, as is ``options``: where to is dask's matter.
        asynchronous : bool, optional
            Whether an awaitable is returned.
        **options : object
            As `distributed.Client.scatter` has them.

        Returns
        -------
        Future or list of Future
            Of the data.
        """
        limit = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}
        with dask.config.set(limit):
            if isinstance(data, list):
                kept: Any = [self.submit(_given, item, pure=False) for item in data]
            else:
                kept = self.submit(_given, data, pure=False)

        async def handed_over():
            return kept

        return handed_over() if asynchronous else kept


def _given(data):
    return data


# With sizes known, cells are sent once rather than along with every fit.
@sizeof.register(Entries)
def _of_entries(cells: Entries) -> int:
    return sizeof(cells.rows) + sizeof(cells.cols) + sizeof(cells.values)


@sizeof.register(Folds)
def _of_folds(folds: Folds) -> int:
    return sizeof(folds.X) + sizeof(folds.splits)


class OneDevice(distributed.WorkerPlugin):
    """Shows each worker one CUDA device, which no other worker of its machine sees.

    ``device="auto"`` and ``device="cuda"`` are then this one. To be registered before
    the first fit: ``client.register_plugin(OneDevice())``. Workers that join later, and
    those that are started again, have theirs as well. Where there is no device nothing
    changes.

    Parameters
    ----------
    devices : sequence of str, optional
        Numbers or UUIDs as ``CUDA_VISIBLE_DEVICES`` lists them, for workers on each
        machine. Default: all that a worker sees.

    Raises
    ------
    RuntimeError
        A machine has more workers than devices, or its worker used CUDA before.
    """

    name = "skmc-one-device"

    def __init__(self, devices: Sequence[str] | None = None):
        self.devices = devices

    def setup(self, worker) -> None:
        import fcntl  # there is none on Windows

        devices = _visible() if self.devices is None else list(self.devices)
        for device in devices:
            # The system takes back the claim of a process that dies.
            path = Path(gettempdir()) / f"skmc-{os.getuid()}-{device}.lock"
            claim = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(claim)
                continue
            self._claim = claim
            _show(device)
            return
        if devices:
            _show("")  # rather none than another's
            raise RuntimeError(
                f"Other workers of this machine have all of its devices, {devices}; "
                "start one worker for each device."
            )

    def teardown(self, worker) -> None:
        if hasattr(self, "_claim"):
            os.close(self._claim)
            del self._claim


def _visible() -> list[str]:
    """The devices this process sees, as ``CUDA_VISIBLE_DEVICES`` lists them."""
    count = torch.cuda.device_count()
    listed = os.environ.get(VISIBLE)
    if listed is None:
        return [str(k) for k in range(count)]
    return listed.split(",")[:count]


def _show(device: str) -> None:
    if torch.cuda.is_initialized() and os.environ.get(VISIBLE) != device:
        raise RuntimeError(
            "This worker uses CUDA already; register OneDevice before the first fit."
        )
    os.environ[VISIBLE] = device
