"""Calls of one function for many blocks: sequentially, or on a cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from skmc.blocks.packed import Packed

WAIT = 5.0  # seconds between inspections of a cluster
WITHOUT_WORKERS = 300.0  # seconds without a worker that end a fit

logger = logging.getLogger("skmc.blocks")


def logged(results: Iterable[Any], what: str, n: int) -> Iterator[Any]:
    """Log each result, at the level INFO of the logger "skmc.blocks"."""
    for k, result in enumerate(results, 1):
        logger.info("%s: %d of %d", what, k, n)
        yield result


class Local:
    """Calls in this process. A block is loaded while the call for the last one runs."""

    @property
    def at_once(self) -> int:
        """Number of calls that run at the same time."""
        return 1

    def load(self, loaders: Sequence[Callable[[], Any]], small: bool) -> Sequence[Any]:
        """Return handles of blocks for `map`."""
        return [cache(loader) for loader in loaders] if small else loaders

    def map(
        self,
        function: Callable[..., Any],
        handles: Sequence[Any],
        *common: object,
        each: Iterable[Any] | None = None,
    ) -> Iterator[Any]:
        """Call ``function(block, own, *common)`` for every block, in order."""
        with ThreadPoolExecutor(1) as pool:
            loading = map(pool.submit, handles)
            ahead: Any = next(loading, None)
            for own in each or [None] * len(handles):
                block = ahead.result()
                ahead = next(loading, None)
                yield function(block, own, *common)

    def call(
        self, function: Callable[..., Any], items: Iterable[object], *common: object
    ) -> Iterator[Any]:
        """Call ``function(item, *common)`` for every item, in order."""
        for item in items:
            yield function(item, *common)


class OnCluster(Local):
    """Calls as tasks of a Dask cluster.

    Loaded blocks stay with their workers. The arguments that all calls share are the
    result of one task, whose data the scheduler keeps, so that the loss of a worker
    loses no data.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    """

    def __init__(self, client: Any):
        self.client = client
        if client.status != "running":
            raise ValueError(
                f"The client is {client.status}; connect a new one and pass it to "
                "Entries as client."
            )
        self._check_workers()

    @property
    def at_once(self) -> int:
        return max(1, sum(self._ask("nthreads").values()))

    def _check_workers(self) -> None:
        def version() -> str:  # sent by value: the worker need not know this module
            from importlib import import_module

            return str(import_module("skmc").__version__)

        versions = self.client.run(version, on_error="return")
        for address, answer in versions.items():
            if isinstance(answer, BaseException):
                raise RuntimeError(
                    f"The worker {address} cannot import skmc ({answer}); install the "
                    "same versions of Python, skmc and its requirements on all workers."
                ) from answer
            if answer != version():
                raise RuntimeError(
                    f"The worker {address} has skmc {answer}, this process has "
                    f"{version()}; install the same version."
                )

    def load(self, loaders: Sequence[Callable[[], Any]], small: bool) -> Sequence[Any]:
        return [self.client.submit(loader, pure=False) for loader in loaders]

    def map(
        self,
        function: Callable[..., Any],
        handles: Sequence[Any],
        *common: object,
        each: Iterable[Any] | None = None,
    ) -> Iterator[Any]:
        own = each or [None] * len(handles)
        submit, held = self.client.submit, self._ask("who_has", handles)
        with _large_messages():
            shared = submit(_identity, Packed(common), pure=False)
            futures = [
                submit(
                    *(_call, function, block, Packed(x), shared),
                    workers=held.get(block.key),
                    allow_other_workers=bool(held.get(block.key)),
                    pure=False,
                )
                for block, x in zip(handles, own, strict=True)
            ]
        for result in self._results(futures):
            yield result.data

    def call(
        self, function: Callable[..., Any], items: Iterable[object], *common: object
    ) -> Iterator[Any]:
        yield from self._results(
            [self.client.submit(function, x, *common, pure=False) for x in items]
        )

    def _results(self, futures: list[Any]) -> Iterator[Any]:
        futures.reverse()
        while futures:
            future = futures.pop()  # its result is released after use
            yield self._result(future)

    def _result(self, future: Any) -> Any:
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError

        seen = time.monotonic()
        while True:
            try:
                return future.result(timeout=WAIT)
            except (CancelledError, CommClosedError) as error:
                raise self._lost() from error
            except TimeoutError as error:
                if future.status == "error":  # the task itself has raised it
                    raise
                if self.client.status != "running":
                    raise self._lost() from error
                if self._ask("nthreads"):
                    seen = time.monotonic()
                elif time.monotonic() - seen > WITHOUT_WORKERS:
                    raise RuntimeError(
                        f"The cluster has had no worker for {WITHOUT_WORKERS:g} "
                        "seconds. Start workers and run the fit again; inside of "
                        "skmc.persistence.checkpoint it continues."
                    ) from error

    def _ask(self, question: str, *about: object) -> Any:
        try:
            return getattr(self.client, question)(*about)
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> RuntimeError:
        return RuntimeError(
            "The scheduler of the cluster was lost during the fit. Connect a new "
            "client and run the fit again; inside of skmc.persistence.checkpoint it "
            "continues from the last sweep that was written."
        )


def _identity(data: object) -> object:
    return data


def _call(
    function: Callable[..., Any], block: object, own: Packed, common: Packed
) -> Packed:
    return Packed(function(block, own.data, *common.data))


def _large_messages() -> Any:
    """Suppress warnings that factors are large: the scheduler must keep a copy."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"})
