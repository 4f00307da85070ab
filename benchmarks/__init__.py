"""Measurements: ``python -m benchmarks`` lists the records, with when and on what.

The load is counted from here, so that most of it falls into the time of the imports.
"""

from __future__ import annotations

import os
import time
from pathlib import Path


def _others() -> float | None:
    """Seconds that all cores have worked for other programs."""
    try:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    except OSError:  # not Linux
        return None
    ticks = [int(field) for field in fields]
    idle = ticks[3] + ticks[4]  # "idle" and "iowait"
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK") - time.process_time()


START = time.time()
_counted = time.perf_counter(), _others()


def load() -> float | None:
    """The share of the cores that other programs took since this was last called."""
    global _counted
    (then, before), _counted = _counted, (time.perf_counter(), _others())
    now, after = _counted
    if before is None or after is None:
        return None
    return round(max((after - before) / (now - then) / (os.cpu_count() or 1), 0), 2)
