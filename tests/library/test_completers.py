"""The checks of all completers, including new ones, without an edit of this file."""

from __future__ import annotations

import pytest
from conftest import COMPLETERS
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmc import MaskedToNaN
from skmc.checks import completer_checks

CHECKS = [check for cls in COMPLETERS for check in completer_checks(cls())]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: f"{c.completer}-{c.name}")
def test_completer(check):
    check()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([MaskedToNaN()])
def test_scikit_learn(estimator, check):
    check(estimator)
