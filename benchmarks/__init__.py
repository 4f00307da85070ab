"""Measurements: ``python -m benchmarks`` lists the records, with when and on what.

The load is taken here, before the imports, so that it is that of other programs.
"""

from __future__ import annotations

import os
import time


def load() -> float | None:
    """The mean number of busy processes in the last minute, for each core."""
    if not hasattr(os, "getloadavg"):  # Windows
        return None
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


START, LOAD = time.time(), load()
