"""The benchmark for a CUDA device runs, before there is one."""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path

import pytest
from second_device import DEVICE, backend

from skmc import KNNCompleter

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.second_device


def test_the_benchmark_runs_on_the_second_device(tmp_path, monkeypatch, capsys):
    backend()
    monkeypatch.syspath_prepend(BENCHMARKS)
    import gpu
    from common import Results

    results = Results(tmp_path, "gpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpu.measure(results, DEVICE, "second device", gpu.SMALL)
    with (tmp_path / "gpu.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert not [row for row in rows if row["measure"] == "error"]
    printed = capsys.readouterr().out
    for cls in gpu.completers():
        assert f"{cls.__name__} 20 x 15" in printed
    assert not gpu.failed_checks(KNNCompleter, DEVICE)
    for name in ("gpu", "common"):
        sys.modules.pop(name)
