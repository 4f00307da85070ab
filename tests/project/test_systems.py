"""The package requires no feature that only Linux has.

A child process runs a few fits and commands, so that everything that is not of skmc is
imported. Then it removes what Windows lacks, imports skmc anew, and runs them again.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# What Python's documentation lists as available on Windows, of the functions and flags
# of `os` that come from the operating system.
CODE = """
import os, posix, sys, warnings

ON_WINDOWS = '''
abort access chdir chmod close closerange cpu_count device_encoding dup dup2 environ
error execv execve fspath fstat fsync ftruncate get_handle_inheritable get_inheritable
get_terminal_size getcwd getcwdb getlogin getpid getppid isatty kill link listdir lseek
lstat mkdir open pipe putenv read readlink remove rename replace rmdir scandir
set_inheritable spawnv spawnve stat stat_result strerror symlink system terminal_size
times times_result truncate umask uname_result unlink unsetenv urandom utime waitpid
waitstatus_to_exitcode write DirEntry
F_OK R_OK W_OK X_OK O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY TMP_MAX
EX_OK P_NOWAIT P_NOWAITO P_WAIT
'''.split()


def work():
    import numpy as np
    from skmc import KNNCompleter, MeanCompleter, SVDCompleter, TreesCompleter
    from skmc._command import main
    from skmc.distributed import OneDevice
    from skmc.model_selection import BatchedGridSearchCV, compare
    from skmc.persistence import checkpoint, load, save

    rng = np.random.RandomState(0)
    X = np.outer(1 + rng.rand(30), 1 + rng.rand(6))
    X[rng.rand(*X.shape) < 0.2] = np.nan
    with checkpoint("folder"):
        fitted = SVDCompleter(1, random_state=0).fit(X)
    for _ in range(2):  # a new file, and one that is replaced
        save(fitted, "fitted.skmc")
    assert (load("fitted.skmc").transform(X) == fitted.transform(X)).all()
    TreesCompleter(estimator="extra_trees", max_iter=1, random_state=0).fit(X)
    search = BatchedGridSearchCV(KNNCompleter(), {"n_neighbors": [2, 3]}, cv=2)
    search.fit(X)
    table = compare([MeanCompleter(), KNNCompleter()], X, cv=2)
    assert table["error"].isna().all()
    lines = (",".join("" if np.isnan(x) else str(x) for x in row) for row in X)
    with open("table.csv", "w", encoding="utf-8") as file:
        print("a,b,c,d,e,f", *lines, sep="\\n", file=file)
    force = "--force", "--quiet"
    assert main(["complete", "table.csv", "out.csv", "--method", "knn", *force]) == 0
    assert main(["compare", "table.csv", "--methods", "knn,mean", "--quiet"]) == 0
    plugin = OneDevice(["0"])
    plugin.setup(None)
    plugin.teardown(None)
    return np.append(fitted.transform(X), table["mean"]), table["memory_mib"]


def refuse(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        # threadpoolctl has other ways on other systems.
        mine = arguments[0] == "/proc/self/maps"
        if arguments[0].startswith(("/proc", "/sys")) and not mine:
            raise FileNotFoundError(arguments[0])
        if os.path.isdir(arguments[0]):
            raise PermissionError(arguments[0])


warnings.simplefilter("ignore")
before, _ = work()
for name in [n for n in sys.modules if n.split(".")[0] == "skmc"]:
    del sys.modules[name]
kept = {*ON_WINDOWS, "O_NONBLOCK", "fchmod"}  # filelock chose its way
for name in [n for n in dir(posix) if n[0] != "_" and n not in kept]:
    if hasattr(os, name):
        delattr(os, name)
for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[name] = None
import signal
for name in ("SIGALRM", "SIGPROF", "SIGKILL", "SIGPIPE", "setitimer", "alarm"):
    delattr(signal, name)
sys.addaudithook(refuse)
sys.platform = "win32"
after, memory = work()
assert (before == after).all() and memory.isna().all()

import torch
from skmc.linalg import memory_of
assert memory_of(torch.device("cpu")) == 8 * 2**30
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing to remove")
def test_features_of_linux_are_not_required(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
