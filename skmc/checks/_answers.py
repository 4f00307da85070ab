"""Checks of the completion of the fitted rows and of new ones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from skmc import patterns
from skmc.base import IterativeCompleter
from skmc.cells import Entries
from skmc.checks.expect import close, equal, expect, raises
from skmc.checks.problems import Case, devices, low_rank, rank_two, small_problem
from skmc.checks.registry import check
from skmc.metrics import relative_error

ROW_WISE = (
    "complete each row in Fitted.predict from the fit and from this row's observed "
    "cells alone, and store no statistics of the rows to complete"
)
SEED = (
    "draw random numbers from rng in _make_solver, or from a generator made from "
    "random_state in _fit_cells; leave the global ones alone"
)


@check(
    "set completer_tags.recovers to the error that your method has on this matrix; "
    "above 1.3, it has completed nothing"
)
def recovers_a_rank_two_matrix(case: Case) -> None:
    """The error on a matrix of rank 2 is at most completer_tags.recovers."""
    truth, hidden = rank_two()
    X = np.ma.masked_array(truth, hidden)
    claimed = case.tags.recovers
    expect(claimed < 1.3, f"completer_tags.recovers={claimed} claims nothing")
    for device in devices(case.estimator):
        params = {"random_state": 0, "device": device}
        completer = clone(case.estimator)
        names = params.keys() & case.params
        completer.set_params(**{name: params[name] for name in names})
        error = relative_error(completer.fit_transform(X), truth, hidden)
        expect(
            error <= claimed,
            f"the error on {device} is {error:.3g}; completer_tags.recovers={claimed}",
        )


@check(ROW_WISE)
def transform_is_row_wise(case: Case) -> None:
    """Rows are completed in the same way in any order and beside any other rows."""
    _, masked = small_problem()
    completer = case.fitted
    all_rows = completer.transform(masked)
    order = np.random.RandomState(0).permutation(len(masked))
    shuffled = completer.transform(masked[order])
    close(shuffled, all_rows[order], "the order of the rows matters", 1e-12)
    new = np.ma.masked_array(low_rank(9, 6, seed=5) + 3)
    new[::2, 1] = np.ma.masked
    together = completer.transform(np.ma.concatenate([new, masked]))
    for row in range(len(new)):
        one = completer.transform(new[row : row + 1])[0]
        close(one, together[row], f"new row {row} depends on other rows", 1e-12)
    close(together[len(new) :], all_rows, "fitted rows depend on new ones", 1e-12)


@check(ROW_WISE + "; break ties by the position in the fitted matrix")
def ties_do_not_depend_on_other_rows(case: Case) -> None:
    """Ratings, in which distances of many rows are equal, are completed row by row."""
    rng = np.random.RandomState(0)
    R = np.where(rng.rand(60, 8) < 0.4, np.nan, rng.randint(1, 6, (60, 8)) / 10)
    R[:, 0] = rng.randint(1, 6, 60)
    completer = case.make().fit(R[:40])
    all_rows = completer.transform(R)
    for row in range(60):
        one = completer.transform(R[row : row + 1])[0]
        close(one, all_rows[row], f"row {row} depends on other rows", 1e-9)


@check(
    "complete new rows in Fitted.predict, or in _row_map, from the structure that the "
    "fit has found in the columns"
)
def new_rows(case: Case) -> None:
    """New rows of a matrix of rank 1 are completed much better than by column means.

    Completers whose ``completer_tags.recovers`` is 1 or more must match column means.
    """
    rng = np.random.RandomState(0)
    loadings = rng.uniform(1, 3, 12) * ([1, 1, 1, 1, 1, -1] * 2)
    truth = np.outer(rng.randn(90), loadings) + 2
    hidden = patterns.random(truth, 0.2, spare=True, random_state=3)
    X = np.ma.masked_array(truth, hidden)
    completer = case.make(max_iter=400).fit(X[:60])
    error = relative_error(completer.transform(X[60:]), truth[60:], hidden[60:])
    means = np.broadcast_to(X[:60].mean(0).data, (30, 12))
    bound = relative_error(means, truth[60:], hidden[60:])
    bound *= 0.6 if case.tags.recovers < 1 else 1.001
    expect(error <= bound, f"the error is {error:.3g}; at most {bound:.3g} is good")


@check("leave score to BaseCompleter, and Fitted.without to Fitted")
def score(case: Case) -> None:
    """The score is the negative normalized error of cells that were hidden."""
    truth, masked = small_problem()
    completer = case.fitted
    completed = completer.transform(masked)
    error = np.abs(completed - truth)[masked.mask].mean() / np.ptp(truth)
    close(completer.score(masked, truth), -error, "score with the truth", 1e-6)
    equal(completer.score(masked, completed), 0, "score with the completion as truth")
    of_holes = completer.score(masked)
    expect(of_holes < 0, f"score without the truth is {of_holes}")
    equal(completer.score(masked), of_holes, "score hides other cells each time")
    equal(completer.score(masked, np.arange(12)), of_holes, "score uses a target")
    cells = Entries(masked)
    guess = completer.predict_entries(cells.rows, cells.cols)
    low, high = completer.data_range_
    error = np.abs(guess - cells.values).mean() / (high - low)
    close(completer.score(cells), -error, "score of Entries", 1e-6)


@check("hide the cells in Fitted.without before the fitted rows are looked up")
def noise_cannot_be_scored_well(case: Case) -> None:
    """Cells that score hides are also hidden from the completer."""
    noise = np.random.RandomState(0).randn(50, 10)
    params = {"n_neighbors": 1, "rank": 1, "lambda_row": 10.0, "lambda_col": 10.0}
    score_of_noise = case.make(**params).fit(noise).score(noise)
    expect(
        score_of_noise < -0.08,
        f"the score of noise is {score_of_noise:.3g}, which is too good",
    )


@check("return Fitted.whole()[rows, cols] from Fitted.at")
def predict_entries(case: Case) -> None:
    """Predictions of single cells equal transform; errors name wrong positions."""
    _, masked = small_problem()
    completer = case.fitted
    rows, cols = np.nonzero(masked.mask)
    expected = completer.transform(masked)[rows, cols]
    close(completer.predict_entries(rows, cols), expected, "predict_entries")
    row = np.full(len(cols), rows[0])
    equal(
        completer.predict_entries(rows[0], cols),
        completer.predict_entries(row, cols),
        "predict_entries of one row",
    )
    what = "predict_entries of column 6 of 6"
    with raises(ValueError, r"cols contains 6 at position 1, outside 0\.\.5", what):
        completer.predict_entries([0, 1], [5, 6])
    with raises(TypeError, "rows must be integers", "predict_entries of row 0.5"):
        completer.predict_entries([0.5], [1])


@check("make all tensors on the device of the data, and draw random numbers on the CPU")
def devices_agree(case: Case) -> None:
    """Every device gives the same completion up to rounding."""
    _, masked = small_problem()
    expected = case.fitted.transform(masked)
    for device in devices(case.estimator):
        completed = case.make(device=device).fit_transform(masked)
        close(completed, expected, f"the completion on {device} differs", 0, 1e-6)


def _numpy_state() -> np.ndarray:
    state: dict[str, Any] = np.random.get_state(legacy=False)
    return np.append(state["state"]["key"], state["state"]["pos"])


@check("define your classes at the top of a module, and keep no open files or lambdas")
def pickles(case: Case) -> None:
    """A pickled completer gives the same completions."""
    _, masked = small_problem()
    again = pickle.loads(pickle.dumps(case.fitted))
    expected = case.fitted.transform(masked)
    equal(again.transform(masked), expected, "an unpickled completer differs")


@check(SEED)
def is_deterministic(case: Case) -> None:
    """Repeated fits are equal, use no global random state, and end on the CPU."""
    _, masked = small_problem()
    for device in devices(case.estimator):
        completer = case.make(device=device)
        state, of_torch = _numpy_state(), torch.get_rng_state()
        completed = completer.fit_transform(masked)
        equal(_numpy_state(), state, "np.random was used")
        equal(torch.get_rng_state(), of_torch, "the global generator of torch was used")
        repeated = clone(completer).fit_transform(masked)
        equal(repeated, completed, "a second fit with the same random_state differs")
        for name, value in vars(completer).items():
            values = vars(value).values() if hasattr(value, "__dict__") else [value]
            for part in values:
                on_cpu = not isinstance(part, torch.Tensor) or part.device.type == "cpu"
                expect(on_cpu, f"{name} has a tensor on {device}; call .cpu()")


@check(
    "set completer_tags.equivariant=False if the order of the rows matters",
    lambda case: case.tags.equivariant,
)
def equivariance(case: Case) -> None:
    """A permutation of the rows permutes the completion, if the tags say so."""
    _, masked = small_problem()
    order = np.random.RandomState(1).permutation(len(masked))
    completed = case.make().fit_transform(masked[order])
    expected = case.fitted.transform(masked)[order]
    close(completed, expected, "the order of the rows matters")


@check("ignore columns in which given.statistics.varies is False in new rows")
def constant_columns_say_nothing_of_new_rows(case: Case) -> None:
    """A value that a constant column has never had does not change a new row."""
    masked = small_problem()[1].copy()
    masked[:, 0] = 5.0
    completer = case.make(max_iter=400).fit(masked)
    rows = np.ma.masked_array(np.repeat(masked[:1], 3, 0))
    rows[:, 3] = np.ma.masked
    rows[:, 0] = [5.0, 6.0, 1000.0]
    folded = completer.transform(rows)[:, 3]
    if isinstance(completer, IterativeCompleter):
        close(folded[1:], folded[1], "the value in the constant column matters")
    away = np.abs(folded - masked[:, 3].mean()).max() / masked[:, 3].std()
    expect(away < 4, f"a completed cell is {away:.1f} standard deviations off the mean")
