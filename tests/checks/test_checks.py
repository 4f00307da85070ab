"""The checks themselves: they find faults, and name the cause and the remedy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skmc import MeanCompleter
from skmc.base import Fitted, Outcome
from skmc.checks import check_completer, completer_checks


@dataclass(eq=False)
class Careless(Fitted):
    """Fills holes with the mean of all rows that are asked for."""

    def predict(self, cells, everywhere):
        means = np.nan_to_num(cells).mean(0)
        return np.broadcast_to(means, cells.shape)

    def whole(self):
        return np.zeros(self.statistics.shape)


class TogetherCompleter(MeanCompleter):
    def _fit_cells(self, given, y=None):
        return Outcome(Careless(given.statistics))


class RandomCompleter(MeanCompleter):
    def _fit_cells(self, given, y=None):
        np.random.rand()
        return super()._fit_cells(given, y)


class LooseCompleter(MeanCompleter):
    level: Any = 1.0


class UnmaskingCompleter(MeanCompleter):
    def transform(self, X):
        return super().transform(np.asarray(X))


FAULTS = [
    (TogetherCompleter, "transform_is_row_wise", "the order|depends on other", "alone"),
    (RandomCompleter, "is_deterministic", "np.random was used", "rng"),
    (LooseCompleter, "bad_parameters_are_named", "no constraints: level", "annotate"),
    (UnmaskingCompleter, "masks_are_never_dropped", "under the mask", "do not read X"),
]


@pytest.mark.parametrize(("cls", "name", "cause", "remedy"), FAULTS)
def test_a_fault_is_named_with_its_cause_and_remedy(cls, name, cause, remedy):
    (check,) = [c for c in completer_checks(cls()) if c.name == name]
    with pytest.raises(AssertionError) as caught:
        check()
    first, rest = str(caught.value).split("\nCause: ")
    said, to_do = rest.split("\nTo do: ")
    assert first == f"{cls.__name__} fails the check {name!r}: {check.promise}"
    assert any(part in said for part in cause.split("|"))
    assert remedy in to_do and to_do[-1] == "."


def test_check_completer_raises_what_the_checks_raise():
    with pytest.raises(AssertionError, match="LooseCompleter fails the check"):
        check_completer(LooseCompleter())


def test_scikit_learns_checks_are_included():
    names = [check.name for check in completer_checks(MeanCompleter())]
    assert "scikit-learn's check_estimator_cloneable" in names
    assert len(set(names)) == len(names)


@pytest.mark.long
def test_polars_and_pytest_are_not_needed():
    code = (
        "import sys; from skmc import checks;"
        "bad = {'polars', 'pytest', '_pytest'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
