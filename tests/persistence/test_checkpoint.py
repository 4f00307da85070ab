"""Killed fits give the result of uninterrupted ones, to the last bit."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import COMPLETERS, low_rank, make
from own_method import OwnCompleter
from sklearn.model_selection import GridSearchCV, KFold

from skmc import (
    AutoencoderCompleter,
    DMFCompleter,
    Entries,
    MixedCompleter,
    SNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    TNNRCompleter,
    patterns,
)
from skmc.base import IterativeCompleter
from skmc.persistence import archive, checkpoint

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short


class Killed(BaseException):
    """Not caught by anything that tidies up after an error."""


@pytest.fixture
def kill(monkeypatch):
    """After so many writes; each write is one that a crash may follow."""
    left = [0]
    write = archive.write

    def writes_then_dies(*args, **kwargs):
        write(*args, **kwargs)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(archive, "write", writes_then_dies)
    monkeypatch.setattr(archive.os, "fsync", lambda _: None)  # slow

    def after(n: int) -> None:
        left[0] = n

    return after


@pytest.fixture(scope="module")
def X():
    truth = low_rank(30, 12)
    return np.where(
        patterns.random(truth, 0.2, spare=True, random_state=0), np.nan, truth
    )


VARIANTS = [(c, {}) for c in COMPLETERS if issubclass(c, IterativeCompleter)] + [
    (AutoencoderCompleter, {"hidden": (8, 4), "batch_size": 7}),
    (DMFCompleter, {"regularizer": "dirichlet"}),
    (SoftImputeCompleter, {"random_state": np.random.RandomState(0)}),
    (SoftImputeCompleter, {"fixed_effects": "both"}),
    (TNNRCompleter, {"solver": "apgl"}),
    (TNNRCompleter, {"weighted": True}),
    (OwnCompleter, {}),
]


def answers(completer, X) -> list[np.ndarray]:
    return [
        completer.reconstruction_,
        completer.transform(X[:5] + 0.1),
        *completer.history_.values(),
        np.array([completer.n_iter_]),
    ]


@pytest.mark.parametrize(
    ("cls", "params"),
    VARIANTS,
    ids=lambda v: ",".join(v) if isinstance(v, dict) else v.__name__,
)
def test_resumed_fits_equal_uninterrupted_ones(cls, params, X, kill, tmp_path):
    def fit():
        return make(cls, **{"max_iter": 12, **copy.deepcopy(params)}).fit(X)

    expected = answers(fit(), X)
    for n in (2, 9):  # a chain: each goes on where the last one died
        try:
            with checkpoint(tmp_path / "fit", every=0):
                kill(n)
                fit()
        except Killed:
            continue
        break
    kill(0)
    with checkpoint(tmp_path / "fit"):
        found = answers(fit(), X)
    assert not (tmp_path / "fit").exists()
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


def test_tracked_spectra_are_resumed(kill, tmp_path):
    """The checkpoint includes the state that a module keeps from its last step."""
    X = low_rank(110, 105)
    X[::7, ::5] = np.nan

    def fit():
        return make(SNNCompleter, max_iter=12).fit(X)

    expected = answers(fit(), X)
    with pytest.raises(Killed), checkpoint(tmp_path / "fit", every=0):
        kill(7)
        fit()
    with checkpoint(tmp_path / "fit"):
        found = answers(fit(), X)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


def test_containers_and_a_search(X, kill, tmp_path):
    """A block contains several fits to ratings, and one to a mixed table."""

    def search():
        folds = KFold(3, shuffle=True, random_state=0)
        grid = {"lambda_nuclear": [0.5, 0.1, 0.02]}
        search = GridSearchCV(SoftImputeCompleter(random_state=0), grid, cv=folds)
        found = search.fit(Entries(X)).cv_results_["mean_test_score"]
        mixed = MixedCompleter(make(SVDCompleter)).fit_transform(X)
        return [found, search.best_estimator_.reconstruction_, mixed]

    expected = search()
    for n in (5, 5, 5):
        with pytest.raises(Killed), checkpoint(tmp_path / "fit", every=0):
            kill(n)
            search()
    with checkpoint(tmp_path / "fit"):
        for a, b in zip(expected, search(), strict=True):
            assert np.array_equal(a, b)


def test_a_fresh_seed_is_kept(X, kill, tmp_path):
    """``random_state=None`` is drawn once, and the crash changes nothing."""
    with pytest.raises(Killed), checkpoint(tmp_path / "fit", every=0):
        kill(9)
        make(DMFCompleter, random_state=None).fit(X)
    (seed,) = json.loads((tmp_path / "fit" / "seeds.json").read_text())
    with checkpoint(tmp_path / "fit"):
        found = answers(make(DMFCompleter, random_state=None).fit(X), X)
    expected = answers(make(DMFCompleter, random_state=seed).fit(X), X)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)
    again = make(DMFCompleter, random_state=None).fit(X)
    assert not np.array_equal(again.reconstruction_, found[0])


def test_no_step_is_repeated(X, kill, tmp_path, monkeypatch):
    """Steps are taken as often as without a crash."""
    from skmc.solvers import HardRank

    steps = [0]
    step = HardRank.step

    def counted(*args):
        steps[0] += 1
        return step(*args)

    monkeypatch.setattr(HardRank, "step", counted)
    make(SVDCompleter).fit(X)
    wanted, steps[0] = steps[0], 0
    for n in (3, 30, 25, 0):
        try:
            with checkpoint(tmp_path / "fit", every=0):
                kill(n)
                make(SVDCompleter).fit(X)
        except Killed:
            pass
    assert steps[0] == wanted


def test_an_interruption_is_like_a_crash(X, tmp_path):
    """Ctrl-C in a long fit; the folder stays."""

    class Interrupt:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            if context.parent is not None and context.task_id == 1:
                raise KeyboardInterrupt

    completer = make(DMFCompleter, max_iter=100)
    expected = answers(completer.fit(X), X)
    with pytest.raises(KeyboardInterrupt), checkpoint(tmp_path / "fit", every=0):
        make(DMFCompleter, max_iter=100).set_callbacks(Interrupt()).fit(X)
    assert (tmp_path / "fit" / "running.skmc").exists()
    with checkpoint(tmp_path / "fit"):
        found = answers(make(DMFCompleter, max_iter=100).fit(X), X)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("change", ["data", "params", "class", "version"])
def test_a_checkpoint_of_another_fit_is_refused(change, X, kill, tmp_path, monkeypatch):
    with pytest.raises(Killed), checkpoint(tmp_path / "fit", every=0):
        kill(3)
        make(SVDCompleter, rank=2).fit(X)
    before = {f: f.read_bytes() for f in (tmp_path / "fit").iterdir()}
    other = make(SVDCompleter, rank=2)
    if change == "data":
        X = X + 1e-9
    elif change == "params":
        other.set_params(rank=3)
    elif change == "class":
        other = make(DMFCompleter)
    else:
        monkeypatch.setattr("skmc.__version__", "99")
    with (
        pytest.raises(ValueError, match=r"fit is the checkpoint of other data, other"),
        checkpoint(tmp_path / "fit"),
    ):
        other.fit(X)
    assert before == {f: f.read_bytes() for f in (tmp_path / "fit").iterdir()}


def test_a_damaged_checkpoint_is_refused(X, kill, tmp_path):
    with pytest.raises(Killed), checkpoint(tmp_path / "fit", every=0):
        kill(3)
        make(SVDCompleter, rank=2).fit(X)
    file = tmp_path / "fit" / "running.skmc"
    file.write_bytes(file.read_bytes()[:-1])
    with (
        pytest.raises(archive.StorageError, match=r"running\.skmc was damaged"),
        checkpoint(tmp_path / "fit"),
    ):
        make(SVDCompleter, rank=2).fit(X)


def test_the_interval_between_writes_is_respected(X, monkeypatch, tmp_path):
    module = sys.modules["skmc.persistence.checkpoint"]  # not the function
    now, writes = [0.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    write = archive.write

    def noted(path, *args, **kwargs):
        writes.append((Path(path).name, now[0]))
        write(path, *args, **kwargs)

    class Clock:
        """A second for each check."""

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            now[0] += 1

    monkeypatch.setattr(archive, "write", noted)
    completer = make(DMFCompleter, max_iter=250, n_iter_no_change=1000)
    with checkpoint(tmp_path / "fit", every=3):
        completer.set_callbacks(Clock()).fit(X)
    assert writes == [("running.skmc", t) for t in (0, 3, 6, 9)]
    with pytest.raises(ValueError, match="every must be a number of seconds >= 0"):
        checkpoint(tmp_path / "fit", every=-1).__enter__()


def test_other_files_are_left_alone(X, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with checkpoint(tmp_path):
        make(SVDCompleter, rank=2).fit(X)
    assert [f.name for f in tmp_path.iterdir()] == ["notes"]
    with pytest.raises(FileExistsError), checkpoint(tmp_path / "notes"):
        pass
