"""Full disks: the error names the path, and what was there remains."""

from __future__ import annotations

import contextlib
import json
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from children import (
    apart,
    digest,
    finished,
    fit,
    same,
    some_holes,
    sort,
    write_ratings,
)

from skmc import AIRCompleter, SVDCompleter
from skmc.persistence import load, save

pytestmark = pytest.mark.long
SIZE = 4 * 2**20
SEED = 0


class Disk:
    """A small disk in memory if it is mounted, else any folder.

    In the latter, no file may exceed the room that is left.
    """

    def __init__(self, path: Path, mounted: bool):
        self.path, self.mounted = path, mounted
        self.ballast = path / "ballast"

    @contextlib.contextmanager
    def room(self, n_bytes: int) -> Iterator[None]:
        """Leave so many bytes."""
        if self.mounted:
            left = shutil.disk_usage(self.path).free
            self.ballast.write_bytes(bytes(max(left - n_bytes, 0)))
            try:
                yield
            finally:
                self.ballast.unlink()
            return
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def small_disk(folder: Path, mounted: bool) -> Iterator[Disk]:
    path = folder / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path)]
    if mounted and subprocess.run(command, capture_output=True).returncode:
        raise PermissionError("this process may not mount a disk")
    try:
        yield Disk(path, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", str(path)], check=True)


def attempted(work: Callable[[], object], said: Path, disk: Disk, room: int) -> str:
    """What the error says of a child process to which little room is left."""

    def child() -> None:
        try:
            with disk.room(room) if not disk.mounted else contextlib.nullcontext():
                work()
        except Exception as error:
            said.write_text(json.dumps([isinstance(error, OSError), str(error)]))

    said.unlink(missing_ok=True)
    with disk.room(room) if disk.mounted else contextlib.nullcontext():
        finished(child)
    if not said.exists():
        return ""
    expected, text = json.loads(said.read_text())
    return text if expected else f"no OSError: {text}"


def fill_disks(tries: int, seed: int, folder: Path, mounted: bool) -> dict[str, Any]:
    """Save, write checkpoints and sort with too little room, then with enough."""
    rng, said = random.Random(seed), folder / "said.json"
    found: dict[str, dict[str, Any]] = {}
    with small_disk(folder, mounted) as disk:
        target = disk.path / "fit.skmc"
        paths = [folder / "1.skmc", folder / "2.skmc"]
        air = AIRCompleter(max_iter=60, random_state=0, device="cpu")
        plain, answer = folder / "plain.npz", folder / "answer.npz"
        source = folder / "ratings.parquet"

        def fit_both() -> None:
            for rank, path in enumerate(paths, 1):
                completer = SVDCompleter(rank, max_iter=3, random_state=0)
                save(completer.fit(some_holes(400, 100)), path)

        def old_stays() -> bool:
            parts = list(disk.path.glob(".*"))
            return not parts and target.read_bytes() == paths[0].read_bytes()

        def resumes() -> bool:
            finished(fit, air, disk.path / "checkpoint", 0.0, answer)
            return same(plain, answer)

        def sorts() -> bool:
            finished(sort, source, 700, disk.path / "blocks")
            return digest(disk.path / "blocks") == digest(folder / "blocks")

        finished(fit_both)
        finished(fit, air, None, 0.0, plain)
        finished(write_ratings, source)
        finished(sort, source, 700, folder / "blocks")
        shutil.copy(paths[0], target)
        # The work, what the error is to name, and what must hold afterwards.
        cases: dict[str, tuple[Callable, str, Callable[[], bool], int]] = {
            "save": (
                lambda: save(load(paths[1]), target),
                str(target),
                old_stays,
                paths[1].stat().st_size,
            ),
            "checkpoint": (
                lambda: fit(air, disk.path / "checkpoint", 0.0, answer),
                str(disk.path / "checkpoint"),
                resumes,
                40_000,
            ),
            "sort": (
                lambda: sort(source, 700, disk.path / "blocks"),
                str(disk.path / "blocks"),
                sorts,
                300_000 if disk.mounted else 20_000,  # of one file
            ),
        }
        for name, (work, named, holds, most) in cases.items():
            lost, full = [], 0
            for _ in range(tries):
                text = attempted(work, said, disk, rng.randrange(most))
                full += bool(text)
                if text and named not in text:
                    lost.append(text)
                elif not holds():
                    lost.append("what was there, or what follows, is wrong")
                if name == "sort":
                    shutil.rmtree(disk.path / "blocks", ignore_errors=True)
            found[name] = {"tried": tries, "lost": lost, "full": full}
    return found


@pytest.mark.parametrize("mounted", [True, False])
def test_a_full_disk(mounted, tmp_path):
    try:
        found = apart(fill_disks, 3, SEED, tmp_path, mounted)
    except PermissionError as error:
        pytest.skip(str(error))
    assert not any(part["lost"] for part in found.values()), (SEED, found)
    assert all(part["full"] for part in found.values()), (SEED, found)
