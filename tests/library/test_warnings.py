"""Each warning points at the user's line through all layers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import make, small_problem
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skmc import (
    AIRCompleter,
    BayesianFactorizationCompleter,
    BiharmonicCompleter,
    DMFCompleter,
    Entries,
    FactorizationCompleter,
    IALMCompleter,
    MaskedToNaN,
    MeanCompleter,
    MixedCompleter,
    PatchCNNCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    TreesCompleter,
)
from skmc.inverses import LDMinv
from skmc.model_selection import BatchedGridSearchCV, compare, fit_batch
from skmc.panel import effect
from skmc.sensing import FactorizedSensingRegressor, NuclearSensingRegressor
from skmc.uncertainty import MultipleCompletion

TRUTH, X = small_problem()
HOLES = X.filled(np.nan)
NO_ROW = np.where(np.arange(12)[:, None] == 3, np.nan, HOLES)
NO_COL = np.where(np.arange(6) == 2, np.nan, HOLES)
UNITS = NO_COL * 10.0 ** np.arange(6)
TABLE = pd.DataFrame(HOLES, columns=list("abcdef")).assign(
    ticket=[f"t{k}" for k in range(12)]
)
LONG = pd.DataFrame(
    [(k, day, float(k + day)) for k in range(5) for day in range(6)],
    columns=["user", "day", "steps"],
)
y = np.arange(12.0)
RNG = np.random.RandomState(0)
A = RNG.randn(30, 5, 4)
RESULTS = np.einsum("kij,ij->k", A, RNG.randn(5, 4))
FOLDS = KFold(2, shuffle=True, random_state=0)
UNFINISHED = IALMCompleter(max_iter=5, tol=1e-12)
DIVERGING = make(DMFCompleter, lr=1e6)
GRID = {"lambda_row": [0.1, 1.0]}

# What the user writes, and a word of the warning.
CASES = {
    "unfinished": (lambda: UNFINISHED.fit(X), "max_iter"),
    "unfinished, at once": (lambda: UNFINISHED.fit_transform(X), "max_iter"),
    "diverged": (lambda: DIVERGING.fit(X), "diverged"),
    "poor": (lambda: make(AIRCompleter, max_iter=1).fit(X), "relative error"),
    "patches": (lambda: make(PatchCNNCompleter, max_iter=1).fit(X), "PatchCNN"),
    "late": (lambda: SVDCompleter(max_time=1e-9).fit(X), "max_time"),
    "late choice": (lambda: SoftImputeCompleter(max_time=1e-9).fit(X), "short"),
    "late trees": (lambda: TreesCompleter(max_time=1e-9).fit(X), "max_time"),
    "late draws": (
        lambda: BayesianFactorizationCompleter(max_time=1e-9).fit(X),
        "max_time",
    ),
    "empty row": (lambda: MeanCompleter().fit(NO_ROW), "1 row of X"),
    "empty column": (lambda: MeanCompleter().fit(NO_COL), "Column 2"),
    "empty column in other units": (lambda: MeanCompleter().fit(UNITS), "units"),
    "empty column of a picture": (
        lambda: BiharmonicCompleter(keep_empty_features=False).fit(NO_COL),
        "Column 2",
    ),
    "identifiers": (lambda: MixedCompleter(MeanCompleter()).fit(TABLE), "ticket"),
    "numbers as text": (
        lambda: MixedCompleter(MeanCompleter()).fit(
            TABLE.assign(ticket=[f"{k}.5" for k in range(12)])
        ),
        "'ticket' (numbers stored as text, such as '0.5'; convert",
    ),
    "numbers as text, some of them frequent": (
        lambda: MixedCompleter(MeanCompleter()).fit(
            TABLE.assign(ticket=[f"{k % 3}.5" for k in range(12)])
        ),
        "'ticket' (numbers stored as text, such as '0.5'; convert",
    ),
    "long form": (
        lambda: MixedCompleter(MeanCompleter()).fit(LONG),
        "'user' and 'day'",
    ),
    "few placebos": (
        lambda: effect(RNG.randn(8, 6), np.eye(8, 6, 5) > 0, n_placebos=3),
        "3 placebos give no interval of 90 %, which needs 9",
    ),
    "sparse": (
        lambda: FactorizationCompleter(2, lambda_ridge=0.1, max_iter=1, tol=0).fit(
            Entries(X)
        ),
        "max_iter",
    ),
    "pipeline": (lambda: make_pipeline(UNFINISHED, Ridge()).fit(HOLES, y), "max_iter"),
    "pipeline of a pipeline": (
        lambda: make_pipeline(make_pipeline(MaskedToNaN(), UNFINISHED)).fit_transform(
            X
        ),
        "max_iter",
    ),
    "pipe": (lambda: pd.DataFrame(HOLES).pipe(UNFINISHED.fit_transform), "max_iter"),
    "columns": (
        lambda: ColumnTransformer([("a", UNFINISHED, [0, 1, 2])]).fit_transform(HOLES),
        "max_iter",
    ),
    "set_output": (
        lambda: (
            IALMCompleter(max_iter=5, tol=1e-12)
            .set_output(transform="pandas")
            .fit_transform(pd.DataFrame(HOLES))
        ),
        "max_iter",
    ),
    "search": (
        lambda: GridSearchCV(
            make_pipeline(UNFINISHED, Ridge()), {"ridge__alpha": [1.0]}, cv=2, n_jobs=1
        ).fit(HOLES, y),
        "max_iter",
    ),
    "search over cells": (
        lambda: GridSearchCV(UNFINISHED, {"max_iter": [5]}, cv=FOLDS).fit(Entries(X)),
        "max_iter",
    ),
    "cross-validation": (
        lambda: cross_val_score(UNFINISHED, Entries(X), cv=FOLDS),
        "max_iter",
    ),
    "batch": (lambda: fit_batch([DIVERGING], [X]), "diverged"),
    "batched search": (
        lambda: BatchedGridSearchCV(make(AIRCompleter, max_iter=1), GRID, cv=2).fit(X),
        "relative error",
    ),
    "search without a batch": (
        lambda: BatchedGridSearchCV(SVDCompleter(), {"rank": [1, 2]}, cv=2).fit(X),
        "batch",
    ),
    "search with a limit": (
        lambda: BatchedGridSearchCV(make(AIRCompleter, max_time=9), GRID, cv=2).fit(X),
        "max_time=9",
    ),
    "comparison": (lambda: compare([UNFINISHED], X, cv=2), None),
    "draws": (
        lambda: MultipleCompletion(UNFINISHED, n_draws=8, random_state=0).fit(X),
        "max_iter",
    ),
    "sensing": (
        lambda: NuclearSensingRegressor(max_iter=1).fit(A, RESULTS),
        "max_iter",
    ),
    "sensing, late": (
        lambda: FactorizedSensingRegressor(max_time=1e-9).fit(A, RESULTS),
        "max_time",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings_point_at_the_users_line(case):
    call, word = CASES[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [w for w in caught if "sklearn" not in w.filename]  # it has warnings, too
    assert not [(w.filename, w.lineno) for w in ours if w.filename != __file__]
    said = [str(w.message) for w in ours]
    assert word is None or any(word in text for text in said), said


def test_training_warns_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LDMinv(5, 2).fit(torch.from_numpy(A), solver="sgd", lr=1e300, max_iter=5)
    assert [w.filename for w in caught] == [__file__]
