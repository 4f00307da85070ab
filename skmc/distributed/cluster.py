"""A Dask client and a worker plugin for searches on a cluster.

``docs/guide/scale.md`` shows how to use them, and how to use Ray instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import torch

from skmc.cells import Entries

try:
    import dask
    import distributed
    from dask.sizeof import sizeof
    from filelock import FileLock, Timeout
except ImportError as error:
    raise ImportError(
        'skmc.distributed needs Dask: pip install "skmc[distributed]".'
    ) from error

VISIBLE = "CUDA_VISIBLE_DEVICES"  # read by CUDA when it is first used


class Client(distributed.Client):
    """A `distributed.Client` whose data survive the loss of a worker.

    joblib passes all but small arrays to ``scatter``, which stores each on one worker.
    If that worker dies, a search ends with a ``CancelledError``. This client keeps a
    copy at the scheduler, which sends the data to another worker. The parameters are
    those of `distributed.Client`.

    See Also
    --------
    OneDevice : Gives each worker a CUDA device of its own.

    Notes
    -----
    A fit whose worker dies is repeated. A fit that has lost more than
    ``distributed.scheduler.allowed-failures`` workers (3) ends the search with
    `distributed.KilledWorker`. Data that a fit itself sends from inside a worker,
    because it is parallel too, are not kept.

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
    >>> local = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    >>> with local, Client(local), parallel_config(backend="dask"):
    ...     search.fit(X).best_params_
    {'rank': 1}
    """

    def scatter(
        self, data: object, *args: Any, asynchronous: object = None, **options: Any
    ) -> Any:
        """Send data to the cluster as tasks, one for each item of a list.

        Parameters
        ----------
        data : object or list
            Data for the workers.
        *args : object
            Ignored, like ``options``: Dask decides where data are stored.
        asynchronous : bool, optional
            Whether to return an awaitable.
        **options : object
            Options of `distributed.Client.scatter`.

        Returns
        -------
        Future or list of Future
            References to the data.
        """
        limit = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}
        with dask.config.set(limit):
            send = partial(self.submit, _identity, pure=False)
            futures = [*map(send, data)] if isinstance(data, list) else send(data)

        async def awaited() -> Any:
            return futures

        return awaited() if asynchronous else futures


def _identity(data: object) -> object:
    return data


# Dask sends large data only once, instead of with every fit.
@sizeof.register(Entries)
def _size_of_entries(cells: Entries) -> int:
    return sizeof(cells.rows) + sizeof(cells.cols) + sizeof(cells.values)


class OneDevice(distributed.WorkerPlugin):
    """Assign each worker its own CUDA device, the only one that it sees.

    ``device="auto"`` and ``device="cuda"`` then select this device. Register the plugin
    before the first fit: ``client.register_plugin(OneDevice())``. It also applies to
    workers that join later or are restarted. On machines without a device it has no
    effect.

    Parameters
    ----------
    devices : sequence of str, optional
        Devices of each machine, numbers or UUIDs as in ``CUDA_VISIBLE_DEVICES``. By
        default all devices that a worker sees.

    Raises
    ------
    RuntimeError
        A machine has more workers than devices, or a worker has used CUDA before.

    See Also
    --------
    Client : A client whose data survive the loss of a worker.
    """

    name = "skmc-one-device"

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        self.devices = devices

    def setup(self, worker: object) -> None:
        devices = _visible() if self.devices is None else list(self.devices)
        for device in devices:
            # The operating system releases the lock of a process that dies.
            # On Windows, the folder already belongs to the user.
            user = os.getuid() if hasattr(os, "getuid") else "user"
            path = Path(gettempdir()) / f"skmc-{user}-{device}.lock"
            lock = FileLock(path, timeout=0, mode=0o600, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            self._lock = lock
            _show(device)
            return
        if devices:
            _show("")  # no device rather than that of another worker
            raise RuntimeError(
                f"Other workers of this machine use all of its devices, {devices}; "
                "start one worker for each device."
            )

    def teardown(self, worker: object) -> None:
        if hasattr(self, "_lock"):
            self._lock.release()
            del self._lock


def _visible() -> list[str]:
    """The devices that this process sees, as listed by ``CUDA_VISIBLE_DEVICES``."""
    count = torch.cuda.device_count()
    listed = os.environ.get(VISIBLE)
    if listed is None:
        return [str(k) for k in range(count)]
    return listed.split(",")[:count]


def _show(device: str) -> None:
    if torch.cuda.is_initialized() and os.environ.get(VISIBLE) != device:
        raise RuntimeError(
            "This worker already uses CUDA; register OneDevice before the first fit."
        )
    os.environ[VISIBLE] = device
