"""Fits to ratings in files equal fits to ratings in memory."""

from __future__ import annotations

import errno
import gc
import pickle
import re
import warnings
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from stored_ratings import NAMES, SHAPE, films, triplets, users, weighted_cells, write

from skmc import (
    BayesianFactorizationCompleter,
    Entries,
    FactorizationCompleter,
    KNNCompleter,
    MeanCompleter,
    SoftImputeCompleter,
)
from skmc.blocks import block_observed, sorting, writing
from skmc.persistence import checkpoint, load, save

SMALL = {"rank": 2, "lambda_ridge": 0.1, "random_state": 0, "device": "cpu"}
DRAWS = {"rank": 3, "n_draws": 4, "n_burn_in": 1, "random_state": 0, "device": "cpu"}


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "ratings", *triplets())


def assert_same(found, expected, atol=1e-11):
    for name in ("row_factors_", "col_factors_"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=0, atol=atol)
    assert found.status_ == expected.status_
    for name, values in expected.history_.items():
        # Residuals far from the solution are of single precision.
        rtol = 1e-4 if name == "residual" else 1e-6
        np.testing.assert_allclose(found.history_[name], values, rtol=rtol, atol=atol)


@pytest.mark.parametrize("block_cells", [100, 10**6])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"biases": "columns", "scaling": "columns"},
        {"biases": "rows", "per_cell": 0.0, "scaling": None},
        {"biases": None, "scaling": "global"},
        {"rank": 9, "lambda_ridge": 0.02},
    ],
)
def test_blocks_give_the_fit_in_memory(files, options, block_cells):
    rows, cols, values = triplets()
    # The residual of the first sweeps is far from 0, so that it can be compared.
    params = {**SMALL, **options, "max_iter": 12, "tol": 1e-3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = FactorizationCompleter(**params).fit(
            Entries.from_triplets(rows, cols, values, SHAPE)
        )
        ratings = Entries.from_parquet(files, *NAMES, block_cells=block_cells)
        found = FactorizationCompleter(**params).fit(ratings)
    assert_same(found, expected)
    guess = found.predict_entries(users(rows), films(cols))
    np.testing.assert_allclose(guess, expected.predict_entries(rows, cols), atol=1e-11)
    new = np.where(np.arange(SHAPE[1]) < 5, 1.0, np.nan)[None]
    np.testing.assert_allclose(found.transform(new), expected.transform(new), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "block_cells", "small"),
    [
        ({}, 200, False),
        ({"implicit": True, "scaling": "columns"}, 1e6, True),
        ({"heteroscedastic": True, "rank": 9}, 100, True),
        ({"implicit": True, "heteroscedastic": True, "scaling": None}, 300, False),
    ],
)
def test_draws_in_blocks_are_those_in_memory(
    tmp_path, options, block_cells, small, monkeypatch
):
    """Whatever the blocks and the order of the cells; and so is all that follows."""
    monkeypatch.setattr(block_observed, "SMALL", 10**6 if small else 10)
    rows, cols, values = triplets()
    completer = BayesianFactorizationCompleter(**{**DRAWS, **options})
    expected = clone(completer).fit(Entries.from_triplets(rows, cols, values, SHAPE))
    order = np.random.RandomState(int(block_cells)).permutation(len(rows))
    files = write(tmp_path / "r", rows[order], cols[order], values[order])
    ratings = Entries.from_parquet(
        files, *NAMES, block_cells=int(block_cells), folder=tmp_path
    )
    found = completer.fit(ratings)
    assert_same(found, expected, 1e-9)
    save(found, tmp_path / "draws.skmc")
    new = np.where(np.arange(SHAPE[1]) < 5, 1.0, np.nan)[None]
    for copy in (found, load(tmp_path / "draws.skmc")):
        for name in ("predict_entries", "predict_entries_std"):
            guess = getattr(copy, name)(users(rows), films(cols))
            wanted = getattr(expected, name)(rows, cols)
            np.testing.assert_allclose(guess, wanted, rtol=0, atol=1e-9)
        asked = np.array([41, 3, 17])
        items, scores = copy.recommend(users(asked), 5)
        wanted = expected.recommend(asked, 5)
        np.testing.assert_array_equal(items, films(wanted[0]))
        np.testing.assert_allclose(scores, wanted[1], atol=1e-9)
        for name in ("transform", "predict_std"):
            values_of_new = getattr(copy, name)(new)
            np.testing.assert_allclose(
                values_of_new, getattr(expected, name)(new), atol=1e-9
            )
        draws = [c.sample(new, 3, random_state=0) for c in (copy, expected)]
        np.testing.assert_allclose(*draws, atol=1e-9)
    assert found.score(ratings) == pytest.approx(
        expected.score(Entries.from_triplets(rows, cols, values, SHAPE))
    )
    assert found.predict_entries([], []).shape == (0,)


def test_draws_with_weights_and_without_blocks(tmp_path):
    rows, cols, values, weights = weighted_cells()
    folder = write_weighted(tmp_path / "r", rows, cols, values, weights)
    ratings = Entries.from_parquet(folder, *NAMES, "times", block_cells=100)
    completer = BayesianFactorizationCompleter(**DRAWS, heteroscedastic=True)
    expected = clone(completer).fit(
        Entries.from_triplets(rows, cols, values, SHAPE), cell_weight=weights
    )
    assert_same(completer.fit(ratings), expected, 1e-9)
    std = completer.predict_entries_std(rows, cols)
    np.testing.assert_allclose(std, expected.predict_entries_std(rows, cols))
    copy = pickle.loads(pickle.dumps(completer))
    del completer
    gc.collect()
    with pytest.raises(FileNotFoundError, match="with a folder of their own"):
        copy.predict_entries(rows, cols)
    with pytest.raises(ValueError, match="row_graph needs cells in memory, but X is"):
        copy.fit(ratings, row_graph=np.ones((60, 60)))


def test_means(files):
    rows, cols, values = triplets()
    expected = MeanCompleter().fit(Entries.from_triplets(rows, cols, values, SHAPE))
    found = MeanCompleter().fit(Entries.from_parquet(files, *NAMES))
    guess = found.predict_entries(users(rows), films(cols))
    np.testing.assert_allclose(guess, expected.predict_entries(rows, cols))
    assert found.data_range_ == expected.data_range_


def test_containers(tmp_path):
    """Arrow files, one file, a list of files, and a sparse matrix mapped from files."""
    rows, cols, values = triplets(np.float32)
    table = pa.table({"user": rows, "film": cols, "stars": values})
    (tmp_path / "arrow").mkdir()
    feather.write_feather(table, tmp_path / "arrow/0.arrow", compression="uncompressed")
    pq.write_table(table, tmp_path / "whole.parquet")
    matrix = sp.csr_array((values, (rows, cols)), SHAPE)
    for name in ("data", "indices", "indptr"):
        path = tmp_path / f"{name}.npy"
        np.save(path, getattr(matrix, name))
        setattr(matrix, name, np.load(path, mmap_mode="r"))
    expected = FactorizationCompleter(**SMALL).fit(matrix)
    assert expected.row_factors_.dtype == np.float32
    for ratings in (
        Entries.from_parquet(tmp_path / "arrow", *NAMES),
        Entries.from_parquet(tmp_path / "whole.parquet", *NAMES),
        Entries.from_parquet([str(tmp_path / "whole.parquet")], *NAMES, block_cells=99),
        Entries.from_memmap(matrix, block_cells=200),
    ):
        assert_same(FactorizationCompleter(**SMALL).fit(ratings), expected, atol=1e-4)


def test_empty_rows_of_a_sparse_matrix_are_kept():
    X = sp.csr_array(np.diag([1.0, 0, 2, 0, 3])[:, [0, 1, 2, 3, 4, 4, 4]])
    with pytest.warns(UserWarning, match="no observed cell"):
        expected = FactorizationCompleter(**{**SMALL, "rank": 1}).fit(X)
    with pytest.warns(UserWarning, match="no observed cell"):
        found = FactorizationCompleter(**{**SMALL, "rank": 1}).fit(
            Entries.from_memmap(X, block_cells=1)
        )
    np.testing.assert_allclose(found.reconstruction_, expected.reconstruction_)


@pytest.mark.long
def test_choices_do_not_depend_on_blocks(files):
    """Held-out cells depend on neither the blocks nor the order."""
    chosen = []
    for size in (150, 10**6):
        ratings = Entries.from_parquet(files, *NAMES, block_cells=size)
        completer = FactorizationCompleter(random_state=0, device="cpu").fit(ratings)
        chosen.append((completer.rank_, completer.lambda_ridge_))
    assert chosen[0] == chosen[1]
    cells = block_observed.BlockObserved(writing.sorted_blocks(ratings))
    held_out = {}
    for side in ("row", "col"):
        _, held = cells.split(0.1, 5)
        block = next((held if side == "row" else held.T).map(_block))
        places = zip(block.rows.tolist(), block.cols.tolist(), strict=True)
        held_out[side] = {place if side == "row" else place[::-1] for place in places}
    assert held_out["row"] == held_out["col"]
    # Four standard deviations of a binomial share.
    n = float(cells.n_observed)
    assert abs(len(held_out["row"]) / n - 0.1) < 4 * np.sqrt(0.1 * 0.9 / n)


@pytest.mark.long
@pytest.mark.parametrize("small", [True, False])
def test_large_blocks_are_read_again(small, files, monkeypatch):
    alive, most, load, seen = weakref.WeakSet(), [0], block_observed.loaded, []

    def counting(*args):
        block = load(*args)
        alive.add(block.values)
        most[0] = max(most[0], len(alive))
        seen.append(args[0])
        return block

    monkeypatch.setattr(block_observed, "loaded", counting)
    monkeypatch.setattr(block_observed, "SMALL", 10**6 if small else 10)
    ratings = Entries.from_parquet(files, *NAMES, block_cells=100)
    FactorizationCompleter(**SMALL).fit(ratings)
    # The next one is read during the calls for the last.
    assert (len(seen) <= 2 * len(set(seen))) == small == (most[0] > 2)


def test_progress_is_logged_by_block(files, caplog):
    caplog.set_level("INFO", logger="skmc.blocks")
    ratings = Entries.from_parquet(files, *NAMES, block_cells=100)
    FactorizationCompleter(**SMALL).fit(ratings)
    said = caplog.messages
    n = int(re.search(r"of (\d+)$", said[-1])[1])
    assert n > 1 and f"block of rows: {n} of {n}" in said
    assert f"block of rows sorted: 1 of {n}" in said


def test_blocks_are_distributed_evenly_over_workers():
    assert sorting.block_size(100, 40, 1) == 34
    assert sorting.block_size(100, 40, 2) == 25  # four blocks for two workers
    assert sorting.block_size(3, 40, 2) == 2


def test_a_folder_is_reused(files, tmp_path, monkeypatch):
    folder = tmp_path / "blocks"
    ratings = Entries.from_parquet(files, *NAMES, folder=folder)
    expected = FactorizationCompleter(**SMALL).fit(ratings)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "counted", None)
        assert_same(FactorizationCompleter(**SMALL).fit(ratings), expected, 0)
    rows, cols, values = triplets()
    write(files, rows, cols, 2 * values)
    again = MeanCompleter().fit(ratings)
    np.testing.assert_allclose(again.data_range_, np.multiply(2, expected.data_range_))


def test_duplicates_in_different_files(tmp_path):
    rows, cols, values = triplets()
    more = [np.append(x, x[:3]) for x in (rows, cols)]
    folder = write(tmp_path / "s", *more, np.append(values, values[:3] + 1))
    with pytest.raises(ValueError, match="occurs more than once; pass duplicates="):
        MeanCompleter().fit(Entries.from_parquet(folder, *NAMES))
    for how, added in (("last", 1), ("mean", 0.5)):
        ratings = Entries.from_parquet(
            folder, *NAMES, duplicates=how, folder=tmp_path / how, block_cells=100
        )
        cells = block_observed.BlockObserved(writing.sorted_blocks(ratings))
        expected = Entries.from_triplets(
            rows, cols, np.append(values[:3] + added, values[3:]), SHAPE
        )
        found = np.concatenate([b.values for b in cells.map(_block)])
        order = np.lexsort((cols, rows))
        np.testing.assert_allclose(found, expected.values[order])
    with pytest.raises(ValueError, match="duplicates must be one of"):
        Entries.from_parquet(folder, *NAMES, duplicates="first")


def _block(block, own):
    return block


def test_the_error_names_the_duplicate(tmp_path):
    folder = write(
        tmp_path / "s", np.array([3, 1, 3]), np.array([4, 0, 4]), np.ones(3), 1
    )
    match = "row 'u003é' and column 4000000000000000 occurs more than once"
    with pytest.raises(ValueError, match=match):
        MeanCompleter().fit(Entries.from_parquet(folder, *NAMES))


def write_weighted(folder, *cells, names=(*NAMES, "times")):
    """Two files, in which identifiers are positions."""
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(len(cells[0])), 2)):
        table = dict(zip(names, (column[part] for column in cells), strict=True))
        pq.write_table(pa.table(table), folder / f"{k}.parquet", row_group_size=90)
    return folder


@pytest.mark.parametrize("block_cells", [100, 300, 10**6])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"biases": "columns", "scaling": "columns", "per_cell": 0.0},
        {"rank": 9, "lambda_ridge": 0.02},
    ],
)
def test_weights_give_the_fit_in_memory(tmp_path, options, block_cells):
    rows, cols, values, weights = weighted_cells()
    params = {**SMALL, **options, "max_iter": 12, "tol": 1e-3}
    folder = write_weighted(tmp_path / "r", rows, cols, values, weights)
    ratings = Entries.from_parquet(folder, *NAMES, "times", block_cells=block_cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = FactorizationCompleter(**params).fit(
            Entries.from_triplets(rows, cols, values, SHAPE), cell_weight=weights
        )
        found = FactorizationCompleter(**params).fit(ratings)
    assert_same(found, expected)
    assert found.data_range_ == expected.data_range_
    guess = found.predict_entries(rows, cols)
    np.testing.assert_allclose(guess, expected.predict_entries(rows, cols), atol=1e-9)
    new = np.where(np.arange(SHAPE[1]) < 5, 1.0, np.nan)[None]
    np.testing.assert_allclose(found.transform(new), expected.transform(new), atol=1e-9)
    error = np.abs(guess - values).mean()  # of cells of weight 0, too
    low, high = values.min(), values.max()
    assert found.score(ratings) == pytest.approx(-error / (high - low))


@pytest.mark.long
def test_equal_weights_do_not_change_choices(tmp_path):
    """Errors of held-out cells are multiplied by the weights, too."""
    rows, cols, values, _ = weighted_cells()
    chosen, errors = [], []
    for weight in (1.0, 0.01):
        folder = write_weighted(
            tmp_path / str(weight), rows, cols, values, np.full(len(rows), weight)
        )
        ratings = Entries.from_parquet(folder, *NAMES, "times", block_cells=200)
        completer = FactorizationCompleter(random_state=0, device="cpu").fit(ratings)
        chosen.append((completer.rank_, completer.lambda_ridge_))
        cells = block_observed.BlockObserved(writing.sorted_blocks(ratings))
        _, held_out = cells.split(0.1, 5)
        errors.append(float(held_out.misfit(cells.zero()) / weight))
    assert chosen[0] == chosen[1]
    assert errors[0] == pytest.approx(errors[1])


def sorted_cells(ratings):
    """Values and weights after sorting into blocks, by rows and then columns."""
    cells = block_observed.BlockObserved(writing.sorted_blocks(ratings))
    blocks = list(cells.map(_block))
    return [np.concatenate([getattr(b, k) for b in blocks]) for k in BLOCK_COLUMNS]


BLOCK_COLUMNS = ("values", "weights")


@pytest.mark.parametrize(
    ("duplicates", "value", "weight"), [("last", 5.0, 1.0), ("mean", 3.5, 4.0)]
)
def test_weights_of_duplicates(tmp_path, duplicates, value, weight):
    """A cell of weight 0 is not a duplicate."""
    rows, cols = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 0, 1, 0])
    values = np.array([3.0, 1.0, 5.0, 9.0, 7.0])
    weights = np.array([3, 2, 1, 0, 0])
    folder = write_weighted(tmp_path / "r", rows, cols, values, weights)
    ratings = Entries.from_parquet(
        folder, *NAMES, "times", duplicates=duplicates, block_cells=1
    )
    assert [list(x) for x in sorted_cells(ratings)] == [[value, 1], [weight, 2]]


def test_weight_two_is_the_rating_twice(tmp_path):
    rows, cols, values, _ = weighted_cells()
    twice = np.arange(len(rows)) % 3 == 0
    once = write_weighted(tmp_path / "1", rows, cols, values, 0.1 * (1 + twice))
    again = [np.append(x, x[twice]) for x in (rows, cols, values)]
    more = write_weighted(tmp_path / "2", *again, np.full(len(again[0]), 0.1))
    found = [
        sorted_cells(Entries.from_parquet(x, *NAMES, "times", duplicates="mean"))
        for x in (once, more)
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_weight_zero_is_absent_and_one_changes_nothing(tmp_path):
    rows, cols, values, weights = weighted_cells()
    seen = weights > 0
    cells = [rows, cols, values, np.where(seen, 1, 0)]
    folder = write_weighted(tmp_path / "0", *cells)
    found = FactorizationCompleter(**SMALL).fit(
        Entries.from_parquet(folder, *NAMES, "times", block_cells=200)
    )
    left = [x[seen] for x in cells]
    rest = write_weighted(tmp_path / "rest", *left)
    expected = FactorizationCompleter(**SMALL).fit(Entries.from_parquet(rest, *NAMES))
    assert_same(found, expected)
    none = write_weighted(tmp_path / "none", *cells[:3], np.zeros(len(rows)))
    with pytest.raises(ValueError, match="no observed cell"):
        FactorizationCompleter(**SMALL).fit(Entries.from_parquet(none, *NAMES, "times"))


@pytest.mark.parametrize(
    ("times", "error", "match"),
    [
        ([-1.0], ValueError, "'times' of .*z.parquet holds -1.0; weights must be fin"),
        ([np.nan], ValueError, "'times' of .*z.parquet holds nan; weights must be"),
        ([np.inf], ValueError, "'times' of .*z.parquet holds inf; weights must be"),
        (["often"], TypeError, "'times' of .*z.parquet has type string; weights must"),
        (pa.array([None], "double"), ValueError, "'times' of .* has missing cells"),
        (None, ValueError, r"z.parquet has no column 'times'; it has \["),
    ],
)
def test_bad_weights(tmp_path, times, error, match):
    folder = write_weighted(tmp_path / "r", *weighted_cells())
    table = {"user": [0], "film": [99], "stars": [1.0], "times": times}
    if times is None:
        del table["times"]
    pq.write_table(pa.table(table), folder / "z.parquet")
    ratings = Entries.from_parquet(folder, *NAMES, "times")
    with pytest.raises(error, match=match):
        FactorizationCompleter(**SMALL).fit(ratings)


def test_completers_that_take_weights(files):
    ratings = Entries.from_parquet(files, *NAMES, "age")
    with pytest.raises(ValueError, match="takes weights of cells in memory only"):
        MeanCompleter().fit(ratings)
    with pytest.raises(ValueError, match="name a column of weights where you make X"):
        FactorizationCompleter(**SMALL).fit(ratings, cell_weight=[1.0])
    with pytest.raises(ValueError, match="must name different columns"):
        Entries.from_parquet(files, *NAMES, "stars")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (
            {"user": [1]},
            ValueError,
            "'user' is large_string in .*part-0.* and int64 in",
        ),
        ({"film": [1.5]}, TypeError, "'film' .*z.parquet has type double; identifiers"),
        ({"film": [None]}, TypeError, "'film' .*z.parquet has type null"),
        (
            {"film": pa.array([None], "int64")},
            ValueError,
            "'film' .* has missing cells",
        ),
        ({"stars": [np.nan]}, ValueError, "'stars' of .*z.parquet holds nan; leave"),
        ({"stars": [np.inf]}, ValueError, "holds inf"),
        ({"stars": ["good"]}, TypeError, "'stars' .* has type string; values must be"),
        ({"stars": [np.float32(1)]}, ValueError, "'stars' is float64 .* and float32"),
        ({"stars": None}, ValueError, r"z.parquet has no column 'stars'; it has \["),
    ],
)
def test_bad_files(files, change, error, match):
    table = {"user": ["u"], "film": [7], "stars": [1.0], **change}
    table = {name: column for name, column in table.items() if column is not None}
    pq.write_table(pa.table(table), files / "z.parquet")
    with pytest.raises(error, match=match):
        MeanCompleter().fit(Entries.from_parquet(files, *NAMES))


def test_empty_files(files, tmp_path):
    expected = MeanCompleter().fit(Entries.from_parquet(files, *NAMES))
    empty = pq.read_table(files / "part-0.parquet")[:0]
    pq.write_table(empty, files / "empty.parquet")
    found = MeanCompleter().fit(Entries.from_parquet(files, *NAMES))
    assert found.data_range_ == expected.data_range_
    pq.write_table(empty, tmp_path / "only.parquet")
    with pytest.raises(ValueError, match="no observed cell"):
        MeanCompleter().fit(Entries.from_parquet(tmp_path / "only.parquet", *NAMES))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match="holds no files of ratings"):
        MeanCompleter().fit(Entries.from_parquet(tmp_path / "nothing", *NAMES))


def test_csv_gives_the_fit_to_parquet(files, tmp_path):
    """With and without a header, whatever the separator; several files at once."""
    expected = FactorizationCompleter(**SMALL).fit(
        Entries.from_parquet(files, *NAMES, block_cells=200)
    )
    (tmp_path / "csv").mkdir()
    for file in files.iterdir():
        pyarrow.csv.write_csv(
            pq.read_table(file, columns=[*NAMES]),
            tmp_path / "csv" / f"{file.stem}.dat",
            pyarrow.csv.WriteOptions(include_header=False, delimiter=";"),
        )
    ratings = Entries.from_csv(
        tmp_path / "csv",
        *NAMES,
        block_cells=200,
        read_options=pyarrow.csv.ReadOptions(column_names=NAMES),
        parse_options=pyarrow.csv.ParseOptions(delimiter=";"),
    )
    found = FactorizationCompleter(**SMALL).fit(ratings)
    assert_same(found, expected)
    np.testing.assert_array_equal(found.row_ids_, expected.row_ids_)
    assert found.score(ratings) == pytest.approx(expected.score(ratings))


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("user;film;stars\na;7;4", ValueError, "r.csv has no column 'user'.*parse_opt"),
        ("user,film,stars\na,7,4\nb,8", ValueError, "r.csv.*Row #3: Expected 3 col"),
        ("user,film,stars\na,7,4\nb,7,-", ValueError, "r.csv.*Row #3: .* value '-'"),
        ("user,film,stars\na,7,4\n,7,3", ValueError, "'user' of .*r.csv has missing"),
        (
            "user,film,stars\na,7.5,4",
            TypeError,
            "'film' of .*r.csv has type double; identifiers must .*convert_options",
        ),
        (
            "user,film,stars\n" + 150_000 * "a,17,4\n" + "a,x7,4",
            ValueError,
            "r.csv.*Row #150002: .* value 'x7'; see .*convert_options",
        ),
    ],
)
def test_bad_csv(tmp_path, text, error, match):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(error, match=match):
        MeanCompleter().fit(Entries.from_csv(tmp_path / "r.csv", *NAMES))


def test_unknown_identifiers(files):
    completer = FactorizationCompleter(**SMALL)
    completer.fit(Entries.from_parquet(files, *NAMES))
    priors = completer._priors
    with pytest.warns(UserWarning, match="rows: 2 identifiers, such as 'who', "):
        found = completer.predict_entries(
            ["who", "who", users([0])[0]], films([3, 4, 3])
        )
    np.testing.assert_allclose(found[:2], priors.col_means[[3, 4]])
    with pytest.warns(UserWarning, match="cols: .* was not in the fit"):
        found = completer.predict_entries(users([2]), [17])
    np.testing.assert_allclose(found, priors.row_means[2])
    with pytest.raises(TypeError, match="rows must be strings"):
        completer.predict_entries([1], films([3]))


@pytest.mark.parametrize("n_written", [0, 1, 3, 6])
def test_a_full_disk(files, tmp_path, monkeypatch, n_written):
    """Nothing half-written is left, and the source is untouched."""
    before = {path: path.read_bytes() for path in files.iterdir()}
    folder, write_table = tmp_path / "blocks", pq.write_table
    count = iter(range(1000))

    def failing(*args, **kwargs):
        if next(count) >= n_written:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_table(*args, **kwargs)

    monkeypatch.setattr(pq, "write_table", failing)
    ratings = Entries.from_parquet(files, *NAMES, folder=folder, block_cells=200)
    with pytest.raises(OSError, match=r"The disk of .*blocks is full\. Sorting needs"):
        MeanCompleter().fit(ratings)
    assert not list(folder.iterdir())
    assert before == {path: path.read_bytes() for path in files.iterdir()}


@pytest.mark.parametrize(
    ("number", "reason"), [("EDQUOT", "for this user"), ("EFBIG", "of this size")]
)
def test_other_limits_of_a_disk(files, tmp_path, monkeypatch, number, reason):
    def failing(*_, **__):
        raise OSError(getattr(errno, number), "Error writing bytes to file")

    monkeypatch.setattr(pq, "write_table", failing)
    ratings = Entries.from_parquet(files, *NAMES, folder=tmp_path / "blocks")
    with pytest.raises(OSError, match=rf"The disk of .*blocks .*{reason}\. Sorting"):
        MeanCompleter().fit(ratings)


def test_a_disk_that_is_full_at_the_very_end(files, tmp_path, monkeypatch):
    """The file that marks sorted blocks is never half-written."""
    folder, write_text = tmp_path / "blocks", Path.write_text

    def failing(path, text):
        write_text(path, text[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    ratings = Entries.from_parquet(files, *NAMES, folder=folder)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", failing)
        with pytest.raises(OSError, match="blocks is full"):
            MeanCompleter().fit(ratings)
    MeanCompleter().fit(ratings)


def test_a_killed_sort_is_repeated(files, tmp_path, monkeypatch):
    ratings = Entries.from_parquet(files, *NAMES, folder=tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr(writing.shutil, "rmtree", lambda *args, **kwargs: None)
        patch.setattr(sorting, "statistics", None)
        with pytest.raises(TypeError):
            MeanCompleter().fit(ratings)
    assert list((tmp_path / "b" / writing.OWN / "unfinished").iterdir())
    MeanCompleter().fit(ratings)
    assert not (tmp_path / "b" / writing.OWN / "unfinished").exists()


def test_files_do_not_hold_blocks(files, tmp_path):
    """Neither the cells nor the block that was read last."""
    ratings = Entries.from_parquet(files, *NAMES, folder=tmp_path / "blocks")
    completer = FactorizationCompleter(**SMALL).fit(ratings)
    before = len(pickle.dumps(completer))
    wanted = completer.recommend(users([1]), 3)
    assert len(pickle.dumps(completer)) == before
    save(completer, tmp_path / "c")
    again = load(tmp_path / "c")
    assert again._fitted.seen._last == (None, {})
    np.testing.assert_equal(again.recommend(users([1]), 3), wanted)


def test_completers_that_take_blocks(files):
    ratings = Entries.from_parquet(files, *NAMES)
    assert repr(ratings) == "StoredEntries('stars' by 'user' and 'film')"
    for completer in (KNNCompleter(), SoftImputeCompleter()):
        with pytest.raises(TypeError, match="Only the method fit of Factorization"):
            completer.fit(ratings)
    with pytest.raises(ValueError, match="missing_values=0 has no effect"):
        MeanCompleter(missing_values=0).fit(ratings)


def test_a_crash_costs_one_sweep(files, tmp_path, monkeypatch):
    """A checkpoint resumes between two sweeps, with the blocks sorted before."""
    ratings = Entries.from_parquet(
        files, *NAMES, folder=tmp_path / "blocks", block_cells=200
    )
    completer = FactorizationCompleter(**SMALL, max_iter=8, tol=1e-12)
    load, count, crash = block_observed.loaded, [], 0

    def failing(*args):
        count.append(0)
        if len(count) == crash:
            raise RuntimeError("a crash")
        return load(*args)

    monkeypatch.setattr(block_observed, "loaded", failing)
    monkeypatch.setattr(block_observed, "SMALL", 10)
    with pytest.warns(UserWarning, match="stopped after 8"):
        expected = completer.fit(ratings).row_factors_
    whole = len(count)
    crash = whole + whole // 2
    for outcome in (
        pytest.raises(RuntimeError, match="a crash"),
        pytest.warns(UserWarning, match="stopped after 8"),
    ):
        with outcome, checkpoint(tmp_path / "fit", every=0):
            completer.fit(ratings)
    np.testing.assert_array_equal(completer.row_factors_, expected)
    assert len(count) < crash + whole
