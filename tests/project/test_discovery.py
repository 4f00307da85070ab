"""A method is one file, which is discovered everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FILE = '''\
"""Half of the mean."""

from skmc.base import CompleterTags
from skmc.completers.costs import Cost, Variant
from skmc.completers.mean import MeanCompleter


class HalfMeanCompleter(MeanCompleter):
    """Complete by column means, under another name.

    Notes
    -----
    Memory grows with the matrix.
    """

    completer_tags = CompleterTags(recovers=1.2)
    advice = "nothing but this test"
    cost = Cost(0.001, cells=4e-8)
    stacked = (Variant("half"),)
'''
LIST = """\
import sys
from skmc._command import main
from skmc._command.methods import method_list

assert "half-mean" in method_list("all")
assert main(["methods"]) == 0
assert not {"torch", "sklearn", "numpy"} & set(sys.modules)
"""
USE = """\
import sys
from pathlib import Path

docs = Path(sys.argv[1])
sys.path.insert(0, str(docs / "_ext"))

from method_rows import method_table
from skmc import AutoCompleter, HalfMeanCompleter
from skmc._command import main
from skmc.checks import all_completers

assert HalfMeanCompleter in all_completers()
row = "| Complete by column means, under another name. | nothing but this test |"
assert f"\\n| `HalfMeanCompleter` {row}\\n" in method_table()
assert main(["methods", "half-mean", "--shape", "20x5"]) == 0
command = ["compare", "in.csv", "--methods", "mean,half-mean", "--splits", "1"]
assert main(command) == 0
import numpy as np

X = np.loadtxt("in.csv", delimiter=",", skiprows=1)
X[::7, 2] = np.nan
auto = AutoCompleter(["means", "half"], random_state=0).fit(X)
assert "half" in {row["candidate"] for row in auto._leaderboard}
"""


def test_a_new_file_is_discovered_everywhere(tmp_path):
    package = tmp_path / "skmc"
    shutil.copytree(
        ROOT / "skmc", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "completers" / "half_mean.py").write_text(FILE)
    X = np.random.RandomState(0).randn(20, 5)
    np.savetxt(tmp_path / "in.csv", X, delimiter=",", header="a,b,c,d,e", comments="")

    def run(code, *arguments):
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    assert "half-mean" in run(LIST) and "nothing but this test" in run(LIST)
    out = run(USE, str(ROOT / "docs"))
    assert out.startswith("half-mean  less than 1 s") and out.count("half-mean") == 2
