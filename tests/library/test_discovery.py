"""A method is one file and one line, and is known everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import skmc

FILE = '''\
"""Half of the mean."""

from skmc.completers.mean import MeanCompleter


class HalfMeanCompleter(MeanCompleter):
    """Complete by column means, under another name."""
'''
USE = """\
from skmc import HalfMeanCompleter
from skmc._command import main
from skmc.checks import all_completers

assert HalfMeanCompleter in all_completers()
assert main(["methods", "half-mean"]) == 0
"""


def test_a_new_method_is_known(tmp_path):
    unread = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(
        Path(skmc.__file__).parent, tmp_path / "skmc", ignore=unread
    )
    (package / "completers" / "half_mean.py").write_text(FILE)
    names = package / "completers" / "__init__.py"
    line = 'COMPLETERS = {\n    "HalfMeanCompleter": ("half_mean", "nothing"),'
    names.write_text(names.read_text().replace("COMPLETERS = {", line))
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", USE]
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith("HalfMeanCompleter\n")
