"""Measurements: ``python -m benchmarks`` lists the records, with when and on what.

The load is counted from here, so that most of it falls into the time of the imports.
"""

from __future__ import annotations

import os
import time

import psutil

START = time.time()
_counted = time.perf_counter(), time.process_time()
psutil.cpu_percent()


def load() -> float:
    """The share of the cores that other programs took since this was last called."""
    global _counted
    before, _counted = _counted, (time.perf_counter(), time.process_time())
    elapsed, own = (now - then for now, then in zip(_counted, before, strict=True))
    others = psutil.cpu_percent() / 100 - own / elapsed / (os.cpu_count() or 1)
    return round(max(others, 0), 2)
