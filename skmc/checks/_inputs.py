"""Checks of input formats, and of the format of completions."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from skmc.cells import Entries
from skmc.checks.expect import close, equal, expect, raises, warns
from skmc.checks.problems import CONTAINERS, Case, small_problem
from skmc.checks.registry import check

READ = (
    "do not read X yourself: _fit_cells gets the cells as given.matrix, NaN where one "
    "is missing, and transform calls the Fitted"
)
SHAPE = (
    "leave fit_transform, transform and get_feature_names_out to BaseCompleter, and "
    "return values of shape (n_rows, n_cols) from Fitted.predict and Fitted.whole"
)


@check(READ)
def containers(case: Case) -> None:
    """The completion of a matrix does not depend on its container.

    Only "auto" scales a sparse matrix, whose cells have one unit, in another way.
    """
    truth, masked = small_problem()
    scaling = {"scaling": "columns"} if "scaling" in case.params else {}
    reference = case.make(**scaling).fit(masked)
    expected = reference.transform(masked)
    score, with_truth = reference.score(masked), reference.score(masked, truth)
    for name, contained in CONTAINERS.items():
        X, completer = contained(masked), case.make(**scaling)
        fault = f"of the container {name!r} differs from that of a masked array"
        close(completer.fit_transform(X), expected, f"fit_transform {fault}", 0, 1e-10)
        close(completer.transform(X), expected, f"transform {fault}", 0, 1e-10)
        if name != "entries":
            close(completer.score(X), score, f"score {fault}", 1e-6, 1e-10)
            close(completer.score(X, truth), with_truth, f"score {fault}", 1e-6, 1e-10)


@check(READ)
def masks_are_never_dropped(case: Case) -> None:
    """Values under the mask, 1e9 here, have no influence."""
    truth, masked = small_problem()
    other = np.ma.masked_array(np.where(masked.mask, -7.0, truth), masked.mask)
    a, b = case.fitted, case.make().fit(other)
    for rows in (slice(None), slice(3, 5)):
        equal(
            a.transform(masked[rows]),
            b.transform(other[rows]),
            "the completion depends on the numbers under the mask",
        )
    equal(a.score(masked), b.score(other), "the score depends on masked numbers")
    largest = np.abs(a.transform(masked)).max()
    expect(largest < 1e3, f"a completed cell is {largest:.1e}, observed ones are small")


@check(READ)
def stored_zeros_are_observed(case: Case) -> None:
    """Zeros that a sparse matrix stores are observed cells."""
    positions = [0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0]
    X = sp.coo_array(([0.0, 1.0, 2.0, 3.0, 0.0, 5.0], positions), shape=(3, 3))
    completed = case.make().fit_transform(X)
    equal(completed[[0, 2], [0, 2]], [0, 0], "stored zeros are changed")
    expect(np.isfinite(completed).all(), "the completion is not finite")


@check("return float values of the dtype of the data from Fitted.whole")
def observed_cells_and_dtype(case: Case) -> None:
    """Observed cells and the float dtype are kept; keep_observed=False shows the model.

    A completer whose model reproduces the observed cells declares this by
    ``completer_tags.interpolates``.
    """
    truth, masked = small_problem()
    for dtype in (np.float32, np.float64, np.int64):
        X = np.ma.masked_array(np.round(truth * 10).astype(dtype), masked.mask)
        completer = case.make()
        completed = completer.fit_transform(X)
        wanted = np.float32 if dtype is np.float32 else np.float64
        for name in ("fit_transform", "reconstruction_"):
            answer = completed if name[0] == "f" else completer.reconstruction_
            expect(
                answer.dtype == wanted and type(answer) is np.ndarray,
                f"{name} of {dtype.__name__} is a {type(answer).__name__} of "
                f"{answer.dtype}, not an ndarray of {wanted.__name__}",
            )
            expect(answer.shape == X.shape, f"{name} has shape {answer.shape}")
        equal(completed[~X.mask], X.data[~X.mask], "observed cells are changed")
        from_model = case.make(keep_observed=False).fit_transform(X)
        close(
            from_model[X.mask], completed[X.mask], "keep_observed changes holes", 1e-5
        )
        changed = bool(np.abs(from_model - completed).max() > 0)
        expect(
            changed != case.tags.interpolates,
            f"the model {'does not pass' if changed else 'passes'} through observed "
            f"cells, but completer_tags.interpolates is {case.tags.interpolates}",
        )


@check(SHAPE)
def data_frames_and_names(case: Case) -> None:
    """Names of rows and columns are kept, and wrong names of columns are an error."""
    _, masked = small_problem()
    if find_spec("pandas"):
        frame = CONTAINERS["pandas"](masked).set_axis(list("ABCDEFGHIJKL"), axis=0)
        completer = case.make(add_indicator=True).set_output(transform="pandas")
        out = completer.fit_transform(frame)
        holes = frame.isna()
        indicators = [f"missingindicator_{c}" for c in frame if holes[c].any()]
        names = [*frame.columns, *indicators]
        equal(list(out.columns), names, "columns of the completion")
        equal(list(out.index), list(frame.index), "index of the completion")
        equal(completer.feature_names_in_, list(frame.columns), "feature_names_in_")
        equal(
            out[indicators],
            holes.to_numpy()[:, holes.any()],
            "columns of add_indicator",
        )
        with raises(
            ValueError, "feature names should match", "transform of renamed columns"
        ):
            completer.transform(frame.rename(columns={"a": "z"}))
    if find_spec("polars"):
        completer = case.make().set_output(transform="polars")
        out = completer.fit_transform(CONTAINERS["polars"](masked))
        expect(
            isinstance(out, import_module("polars").DataFrame),
            f"set_output(transform='polars') gives a {type(out).__name__}",
        )


@check(
    "leave empty rows and columns to BaseCompleter, which fills them with means; set "
    "completer_tags.pictures if your method completes them"
)
def empty_columns_and_rows(case: Case) -> None:
    """Empty rows get the column means and empty columns 0, with a warning.

    An empty column gets the row means if all cells have the same unit. Completers of
    pictures complete them like other holes.
    """
    masked = small_problem()[1].copy()
    masked[:, 2] = np.ma.masked
    masked[4] = np.ma.masked
    rows, columns = np.arange(12) != 4, np.arange(6) != 2
    means = masked.mean(0).data[columns]
    completer, dropping = case.make(), case.make(keep_empty_features=False)
    if case.tags.pictures:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            completed = completer.fit_transform(masked)
        equal(completer.transform(masked), completed, "transform and fit_transform")
        expect(
            completed[4].std() > 0 and completed[:, 2].std() > 0,
            "an empty row or column is filled with one number",
        )
        with warns("Column 2 .* is dropped", "fit"):
            dropped = dropping.fit_transform(masked)
        equal(dropped, np.delete(completed, 2, axis=1), "the column was not dropped")
        one = completer.transform(masked[4:5])
        close(one[0, columns], means, "an empty new row is not filled with means")
        return
    says_global = getattr(completer, "scaling", None) == "global"
    for one_unit in {says_global, True}:
        filled = "the row means." if one_unit else "0, because .*"
        X = Entries.of_matrix(masked.filled(np.nan), one_unit=one_unit)
        with warns("no observed cell", "fit with an empty row and column") as messages:
            completed = completer.fit_transform(X)
        wanted = [
            f"Column 2 of X has no observed cell and is filled with {filled}",
            "1 row of X has no observed cell; the column means fill such rows.",
        ]
        same = len(messages) == 2 and all(map(re.fullmatch, wanted, messages))
        expect(same, f"the warnings are {messages}, not {wanted}")
        means_of_rows = masked.mean(1).data[rows] if one_unit else 0
        close(completed[rows, 2], means_of_rows, "an empty column")
        close(completed[4, columns], means, "an empty row")
        both = masked.mean() if one_unit else 0
        close(completed[4, 2], both, "the cell of an empty row and column")
    with warns("no observed cell", "fit with an empty column") as messages:
        dropping.fit(masked)
    expect(
        "is dropped" in messages[0], "keep_empty_features=False: no word of dropping"
    )
    shape = dropping.transform(masked).shape
    expect(shape == (12, 5), f"the shape without the empty column is {shape}")
    names = list(dropping.get_feature_names_out())
    expect(names == ["x0", "x1", "x3", "x4", "x5"], f"get_feature_names_out: {names}")


@check(
    "declare missing_values as BaseCompleter does, or store it in a constructor of "
    "your own, and do not compare cells with it yourself"
)
def missing_values(case: Case) -> None:
    """Cells equal to missing_values are missing, like those marked by the container."""
    truth, masked = small_problem()
    expected, marked = case.fitted.transform(masked), masked.filled(-999)
    completer = case.make(missing_values=-999)
    fault = "with missing_values=-999, the completion differs from that of NaN"
    close(completer.fit_transform(marked), expected, fault)
    both = np.where(np.arange(12)[:, None] % 2, marked, masked.filled(np.nan))
    close(completer.fit_transform(both), expected, f"with NaN besides: {fault}")
    truth[masked.mask & (np.arange(6) == 1)] = -999
    score = case.fitted.score(masked, np.ma.masked_equal(truth, -999))
    close(completer.score(both, truth), score, "score counts a cell that y lacks", 1e-6)


@check("copy arrays of given that the Fitted keeps: np.array(given.matrix)")
def input_may_change_later(case: Case) -> None:
    """Later changes of the input or of a completion have no effect."""
    X = small_problem()[1].filled(np.nan)
    changed, new = X.copy(), X[:3] + 1
    other = case.make().fit(changed)
    changed[:] = 0
    expected = case.fitted.transform(new)
    equal(other.transform(new), expected, "the fit depends on X after the fit")
    case.fitted.transform(new)[0, 0] = 5.0  # the completion is writable
    equal(case.fitted.transform(new), expected, "an answer is part of the fit")
