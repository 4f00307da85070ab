"""The command: its output, the input that it keeps, and its errors."""

from __future__ import annotations

import argparse
import base64
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from conftest import low_rank
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from skmc import MeanCompleter, SVDCompleter, patterns
from skmc._command import main, methods
from skmc._command.csv_file import _cells, _separator
from skmc._command.raster import Raster, read_raster, write_raster
from skmc.base import BaseCompleter
from skmc.checks import all_completers
from skmc.completers.auto import all_candidates
from skmc.model_selection import METRICS, PATTERNS, compare

TABLE = '''\
name,length,count,kind,,day\r
"a ""1""",1.50,3,"cat, big",x,2020-01-01\r
b,,4,dog,x,2020-01-02\r
c,2.50e0,,"cat, big",y,2020-01-03\r
d, 4.0 ,6,NA,y,2020-01-04\r
\r
é,5.00,7,dog,,2020-01-05\r
'''


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in its own folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:  # argparse
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


def numbers(tmp_path, n_rows=12, n_cols=6):
    """Write a CSV file of a matrix with missing cells and return the matrix."""
    truth = low_rank(n_rows, n_cols) + 3
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    X = np.where(hidden, np.nan, truth)
    pd.DataFrame(X, columns=list("abcdef")[:n_cols]).to_csv(
        tmp_path / "in.csv", index=False
    )
    return X


# Tables


@pytest.mark.parametrize("method", ["svd", "mean"])
def test_only_missing_cells_of_a_csv_change(run, tmp_path, method):
    raw = b"\xef\xbb\xbf" + TABLE.encode("latin-1")  # a byte order mark, and not UTF-8
    (tmp_path / "in.csv").write_bytes(raw)
    code, out, err = run("complete", "in.csv", "out.csv", "--method", method)
    assert code == 0 and not out and "4 of 30 cells completed" in err
    assert "'name' (5 different values in 5 cells)" in err
    assert "columns completed as dates: 'day'" in err
    # Whole numbers come back whole, categories as the file writes them.
    kept = re.escape(raw)
    for hole, answer in (
        (b"b,,4", rb"b,\d\.\d+,4"),
        (b"e0,,", rb"e0,\d,"),
        (b",NA,", rb',("cat, big"|dog),'),
        (b"dog,,2020-01-05", rb"dog,[xy],2020-01-05"),
    ):
        assert re.escape(hole) in kept
        kept = kept.replace(re.escape(hole), answer)
    assert re.fullmatch(kept, (tmp_path / "out.csv").read_bytes())


def test_numbers_equal_those_of_the_completer(run, tmp_path):
    X = numbers(tmp_path)
    code, *_ = run(
        "complete", "in.csv", "out.csv", "--method", "SVDCompleter", "--set", "rank=2"
    )
    assert code == 0
    expected = SVDCompleter(rank=2, random_state=0).fit_transform(X)
    expected = expected.clip(np.nanmin(X, 0), np.nanmax(X, 0))
    # The last bit depends on where an array lies in memory.
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv"), expected, rtol=1e-9)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_intervals(run, tmp_path, suffix):
    """Two columns beside a filled one contain the ends of its interval."""
    rng = np.random.RandomState(0)
    truth = np.round(10 + 3 * low_rank(40, 4) + 0.3 * rng.randn(40, 4), 2)
    table = pd.DataFrame(truth, columns=["a", "b, c", "d", "e"])
    table.iloc[:8, 1] = np.nan
    if suffix == ".npz":
        np.savez(tmp_path / "in.npz", X=table.to_numpy())
    elif suffix == ".csv":
        table.to_csv(tmp_path / "in.csv", index=False)
    else:
        table.to_parquet(tmp_path / "in.parquet")
    files = f"in{suffix}", f"out{suffix}"
    code, _, err = run("complete", *files, "--method", "svd", "--intervals", "0.8")
    assert code == 0 and "8 of 160 cells" in err
    if suffix == ".npz":
        with np.load(tmp_path / "out.npz") as out:
            low, value, high = (out[n][:, 1] for n in ("X_lower", "X", "X_upper"))
    else:
        read = pd.read_csv if suffix == ".csv" else pd.read_parquet
        out = read(tmp_path / f"out{suffix}")
        names = ["a", "b, c", "b, c lower", "b, c upper", "d", "e"]
        assert list(out.columns) == names
        assert out["b, c lower"][8:].isna().all()
        low, value, high = (out[n] for n in ("b, c lower", "b, c", "b, c upper"))
    assert ((low <= value) & (value <= high))[:8].all()
    assert (low < high)[:8].sum() >= 6  # but at the ends of the observed range
    if suffix == ".csv":  # a column of that name exists
        table["b, c lower"] = 1.0
        table.to_csv(tmp_path / "in.csv", index=False)
        code, _, err = run(
            "complete", "in.csv", "b.csv", "--method", "svd", "--intervals"
        )
        assert code == 2 and "has a column 'b, c lower' already; rename it" in err


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_draws(run, tmp_path, suffix):
    """Each draw is a file, with draws of numbers and of categories."""
    rng = np.random.RandomState(0)
    truth = low_rank(40, 3) + 0.3 * rng.randn(40, 3)
    table = pd.DataFrame(truth, columns=["a", "b", "c"])
    table["a"] = table["a"].round(1)
    table["kind"] = np.where(table["b"] > 0, "up", "down")
    given = table.mask(rng.uniform(size=table.shape) < 0.2)
    numbers = ["a", "b", "c"]
    if suffix == ".csv":
        given.to_csv(tmp_path / "in.csv", index=False)
    elif suffix == ".parquet":
        given.to_parquet(tmp_path / "in.parquet")
    else:
        np.savez(tmp_path / "in.npz", X=given[numbers].to_numpy())
    command = ("complete", f"in{suffix}", f"out{suffix}", "--draws")
    gaussian = ("--method", "gaussian")
    code, _, err = run(*command, 3, *gaussian, "--seed", 1)
    assert code == 0 and f"out-1{suffix} ... out-3{suffix}: " in err
    found = []
    for k in (1, 2, 3):
        path = tmp_path / f"out-{k}{suffix}"
        if suffix == ".npz":
            with np.load(path) as file:
                found.append(pd.DataFrame(file["X"], columns=numbers))
        else:
            found.append((pd.read_csv if suffix == ".csv" else pd.read_parquet)(path))
            assert found[-1]["kind"].isin(["up", "down"]).all()
    values = np.array([draw[numbers].to_numpy() for draw in found])
    missing = given[numbers].isna().to_numpy()
    known = given[numbers].to_numpy()[~missing]
    np.testing.assert_allclose(values[:, ~missing], [known] * 3)
    assert (values.std(0)[missing] > 0).mean() > 0.9
    assert not np.isnan(values).any() and not list(tmp_path.glob(f"out{suffix}"))
    code, _, err = run(*command, 2, *gaussian)
    assert code == 1 and f"out-1{suffix} exists; --force" in err
    assert run(*command, 1, *gaussian, "--seed", 2, "--force")[0] == 0
    assert len(list(tmp_path.glob("out-*"))) == 3


def test_draws_of_a_file_without_missing_cells(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,b\n1,2\n3,5\n")
    code, _, err = run(
        "complete", "in.csv", "out.csv", "--draws", 2, "--method", "gaussian"
    )
    assert code == 0 and "out-1.csv ... out-2.csv are copies of in.csv" in err
    assert (tmp_path / "out-2.csv").read_text() == "a,b\n1,2\n3,5\n"


def test_separators_decimals_and_index(run, tmp_path):
    text = ";länge;b\nr1;1,5;\nr2;;20\nr3;4,5;45\n"
    (tmp_path / "in.txt").write_text(text)
    assert run("complete", "in.txt", "out.txt", "--method", "mean")[0] == 0
    expected = text.replace("1,5;\n", "1,5;32\n").replace("r2;;", "r2;3,0;")
    assert (tmp_path / "out.txt").read_text() == expected


def test_a_point_that_marks_missing_cells_is_no_decimal_point(run, tmp_path):
    (tmp_path / "in.csv").write_text("a;b\n1,5;.\n2,5;1,0\n3,5;3,0\n")
    arguments = ("--method", "mean", "--missing", ".")
    assert run("complete", "in.csv", "out.csv", *arguments)[0] == 0
    assert (tmp_path / "out.csv").read_text() == "a;b\n1,5;2,0\n2,5;1,0\n3,5;3,0\n"


def test_no_header_missing_words_and_names(run, tmp_path):
    (tmp_path / "in.csv").write_text("1,?\n2,7\n?,7\n1,5\n")
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert code == 1 and "row 2 (line 3), column '1': '?' is not a number" in err
    arguments = ("--no-header", "--missing", "?", "--categorical", "1", "-q")
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "mean", *arguments)
    assert code == 0 and not err
    assert (tmp_path / "out.csv").read_text() == "1,6\n2,7\n1,7\n1,5\n"
    code, *_ = run(
        "complete", "in.csv", "o2.csv", "--no-header", "--missing", "?", "--index", "1",
        "--method", "mean", "-q",
    )  # fmt: skip
    assert code == 0 and (tmp_path / "o2.csv").read_text() == "1,6\n2,7\n?,7\n1,5\n"


def test_standard_input_and_output(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3,\n")))
    assert main(["complete", "-", "-", "--method", "mean"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == b"a,b\n1,2\n3,2\n"
    assert b"1 of 4 cells" in err and b"\r" not in err  # no bar


@given(
    st.lists(
        st.lists(st.text("ab,;\"'\n é1", max_size=4), min_size=3, max_size=3),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_cells_are_those_of_the_csv_module(rows, end, quoting):
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end, quoting=quoting).writerows(rows)
    read = _cells(file.getvalue(), 0, ",", "f")
    assert [[cell.text for cell in cells] for _, cells in read] == rows
    assert read[0][0] == 1 and read[-1][0] <= len(file.getvalue())


def test_the_separator_is_detected():
    for separator in ",;\t|":
        line = separator.join(["a", '"b,,,,"', "c"])
        assert _separator("f.csv", f"{line}\n") == separator


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,b\n1,2\nabc,3\n", r"row 2 \(line 3\), column 'age': 'abc' is not a num"),
        ('a,b\n"1\n",2\n3,x\n,4\n', r"row 2 \(line 4\), column 'b': 'x' is not a num"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell, but the first line has 2"),
        ("a,b\n1,2\n3,4,\n", "line 3: 3 cells, but the first line has 2"),
        ('a,b\n1,"2\n3,4\n', "line 2: the quote of cell 2 does not close"),
        ('a,b\n1,"2"3\n', "line 2: the quote of cell 2 does not close"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has column names but no rows"),
        ("a,b\n,NA\n,\n", "no observed cell"),
        ("a,b\n1,2\n,inf\n", r"row 2 \(line 3\), column 'b': inf is infinite"),
        ("a,b\n1,2\n,1e200\n", "column 'b': 1e.200 is too large"),
        ("n,m\nu,\nv,x\nw,y\n,z\n", "has no column that can be completed: 'n'"),
        ("a,b\0\n", "is not UTF-8 text"),
    ],
)
def test_bad_tables_are_reported_in_one_line(run, tmp_path, text, message):
    (tmp_path / "in.csv").write_text(text)
    code, out, err = run("complete", "in.csv", "out.csv", "--method", "svd", "-q")
    assert code == 1 and not out
    assert re.match(rf"skmc: error: in\.csv.*{message}", err)
    assert err.count("\n") == 1
    assert os.listdir(tmp_path) == ["in.csv"]


def test_columns_without_cells_and_rows_without(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,b,c\n1,,2\n,,\n3,,4\n")
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "svd")
    assert code == 0
    assert "column 'b' has no observed cell and stays empty" in err
    assert "in.csv: row 2 has no cell to infer others from;" in err
    assert (tmp_path / "out.csv").read_text() == "a,b,c\n1,,2\n2,,3\n3,,4\n"
    code, _, err = run("complete", "out.csv", "copy.csv", "--method", "svd")
    assert code == 0 and "copy of out.csv" in err
    assert (tmp_path / "copy.csv").read_text() == (tmp_path / "out.csv").read_text()


def parquet_table():
    rng = np.random.RandomState(0)
    n = 24
    group = rng.randint(2, size=n)
    frame = pd.DataFrame(
        {
            "x": (group + 0.1 * rng.randn(n)).astype("float32"),
            "count": pd.array(10 * group + rng.randint(3, size=n), dtype="UInt8"),
            "kind": pd.Categorical.from_codes(group, ["old", "new"]),
            "grade": pd.Categorical.from_codes(
                group * 2, ["z low", "mid", "a high"], ordered=True
            ),
            "flag": pd.array(group == 1, dtype="boolean"),
            "when": pd.date_range("2020-01-01", periods=n),
            "word": np.array(["one", "two"])[group],
        },
        index=pd.Index([f"r{i}" for i in range(n)], name="id"),
    )
    hidden = frame.copy()
    for k, name in enumerate(["x", "count", "kind", "grade", "flag", "word"]):
        hidden.loc[hidden.index[k::7], name] = None
    return frame, hidden


def test_parquet_keeps_types_and_index(run, tmp_path):
    truth, hidden = parquet_table()
    hidden.to_parquet(tmp_path / "in.parquet")
    code, _, err = run("complete", "in.parquet", "out.parquet", "--method", "tnnr")
    assert code == 0, err
    schemas = [
        pyarrow.parquet.read_schema(tmp_path / f) for f in ("in.parquet", "out.parquet")
    ]
    assert schemas[0].equals(schemas[1], check_metadata=True)
    completed = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_index_equal(completed.index, hidden.index)
    assert (completed.dtypes == hidden.dtypes).all()
    assert not completed.isna().any(axis=None)
    for name in hidden:
        seen = hidden[name].notna()
        pd.testing.assert_series_equal(completed[name][seen], hidden[name][seen])
        if name not in ("x", "count"):  # the groups are well separated
            assert (completed[name] == truth[name]).all(), name


def test_parquet_completes_dates_and_decimals(run, tmp_path):
    rng = np.random.RandomState(0)
    days = pd.Series(rng.randint(365, size=30))
    days[[3, 4]] = 0, 365  # the range is observed
    truth = pd.DataFrame(
        {
            "x": days + 0.5,
            "when": pd.Timestamp("2020-01-01", tz="Europe/Paris")
            + pd.to_timedelta(days, "D"),
            "date": (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")).dt.date,
            "price": [Decimal(int(d)) / 4 for d in days],
        }
    )
    hidden = truth.copy()
    for k, name in enumerate(["when", "date", "price"]):
        hidden.loc[k::7, name] = None
    hidden.to_parquet(tmp_path / "in.parquet")
    code, _, err = run(
        "complete", "in.parquet", "out.parquet", "--method", "svd", "--set", "rank=1"
    )
    assert code == 0, err
    completed = pd.read_parquet(tmp_path / "out.parquet")
    assert (completed.dtypes == pd.read_parquet(tmp_path / "in.parquet").dtypes).all()
    assert not completed.isna().any(axis=None)
    late = (completed["when"] - truth["when"]).abs()
    assert late.max() < pd.Timedelta("4D")
    assert all(type(price) is Decimal for price in completed["price"])


# Matrices


def test_npz(run, tmp_path):
    X = numbers(tmp_path)
    np.savez_compressed(tmp_path / "in.npz", X=X.astype(np.float32), y=np.arange(12))
    assert run("complete", "in.npz", "out.npz", "--method", "svd")[0] == 0
    with np.load(tmp_path / "out.npz") as file:
        assert set(file.files) == {"X", "y"} and file["X"].dtype == np.float32
        seen = ~np.isnan(X)
        np.testing.assert_array_equal(file["X"][seen], X.astype(np.float32)[seen])
        assert np.isfinite(file["X"]).all()


def test_npz_with_a_mask(run, tmp_path):
    truth = np.outer(np.arange(1, 13), np.arange(1, 7)).astype(np.int16)
    hidden = patterns.random(truth.astype(float), 0.2, spare=True, random_state=0)
    data = np.where(hidden, 999, truth).astype(np.int16)
    np.savez(tmp_path / "in.npz", data=data, mask=hidden)
    assert run("complete", "in.npz", "out.npz", "--method", "tnnr")[0] == 0
    with np.load(tmp_path / "out.npz") as file:
        assert file["data"].dtype == np.int16
        np.testing.assert_array_equal(file["data"], truth)


def test_npz_files_with_several_arrays(run, tmp_path):
    np.savez(tmp_path / "in.npz", a=np.eye(3), b=np.eye(2), mask=np.eye(3) > 0)
    code, _, err = run("complete", "in.npz", "out.npz", "--method", "mean")
    assert code == 1 and "a (float64 3 x 3), b (float64 2 x 2)" in err
    assert run("complete", "in.npz", "out.npz", "--array", "c")[0] == 2
    code, _, err = run("complete", "in.npz", "out.npz", "--array", "b")
    assert code == 1 and "mask is bool 3 x 3; it must be" in err
    arguments = ("--array", "a", "--method", "mean")
    assert run("complete", "in.npz", "out.npz", *arguments)[0] == 0
    np.savez(tmp_path / "o.npz", a=np.array([[None]]))
    code, _, err = run("complete", "o.npz", "out2.npz")
    assert code == 1 and "pickles are not read" in err


# Pictures


@pytest.fixture
def picture(tmp_path):
    """A smooth picture 20 x 24 x 3 and its mask, which is also in ``mask.png``."""
    rows, cols = np.mgrid[:20, :24]
    pixels = np.stack([rows * cols / 2, 10 * rows, 200 - 5 * cols], -1)
    pixels = pixels.astype(np.uint8)
    hidden = patterns.random(pixels[:, :, 0] / 255, 0.2, spare=True, random_state=0)
    Image.fromarray(np.uint8(255) * hidden).save(tmp_path / "mask.png")
    return pixels, hidden


def read(path):
    with Image.open(path) as file:
        return np.asarray(file)


@pytest.mark.parametrize("mark", ["mask", "inverted", "colour", "alpha", "palette"])
def test_pictures(run, tmp_path, picture, mark):
    pixels, hidden = picture
    damaged = np.where(hidden[:, :, None], np.uint8([255, 0, 255]), pixels)
    arguments = []
    if mark == "mask":
        arguments = ["--mask", "mask.png"]
    elif mark == "inverted":
        Image.fromarray(np.uint8(255) * ~hidden).save(tmp_path / "seen.png")
        arguments = ["--mask", "seen.png", "--invert-mask"]
    elif mark == "alpha":
        alpha = np.where(hidden, 0, 255).astype(np.uint8)
        alpha[~hidden & (np.arange(24) < 3)] = (
            100  # half transparent pixels are observed
        )
        damaged = np.dstack([damaged, alpha])
    else:
        arguments = ["--missing-color", "#ff00ff"]
    image = Image.fromarray(damaged)
    if mark == "palette":
        image = image.quantize(256)
        damaged = np.asarray(image.convert("RGB"))
    image.save(tmp_path / "in.png")
    arguments += ["--method", "biharmonic"]
    code, _, err = run("complete", "in.png", "out.png", *arguments)
    assert code == 0, err
    assert f"{hidden.sum()} of 480 pixels completed" in err
    completed = read(tmp_path / "out.png")
    assert completed.shape == damaged.shape
    np.testing.assert_array_equal(completed[~hidden], damaged[~hidden])
    error = np.abs(completed[hidden][:, :3].astype(float) - pixels[hidden])
    assert error.mean() < 4
    if mark == "alpha":
        assert (completed[hidden][:, 3] == 255).all()


def test_deep_grey(run, tmp_path, picture):
    _, hidden = picture
    rows, cols = np.mgrid[:20, :24]
    pixels = (rows * cols * 140 + 17).astype(np.uint16)
    Image.fromarray(np.where(hidden, 0, pixels).astype(np.uint16)).save(
        tmp_path / "in.png"
    )
    arguments = ("--mask", "mask.png", "--method", "biharmonic")
    assert run("complete", "in.png", "out.png", *arguments)[0] == 0
    completed = read(tmp_path / "out.png")
    assert completed.dtype == np.uint16
    np.testing.assert_array_equal(completed[~hidden], pixels[~hidden])
    assert np.abs(completed[hidden] - pixels[hidden].astype(float)).mean() < 300
    code, _, err = run("complete", "in.png", "out.jpg", *arguments)
    assert code == 2 and "JPEG has 8 bits" in err


@pytest.mark.parametrize(
    ("suffix", "dtype"),
    [
        *(("tif", kind) for kind in ("uint8", "uint16", "float32", "float64")),
        *(("png", kind) for kind in ("uint8", "uint16")),  # which has no floats
    ],
)
@pytest.mark.parametrize("alpha", [False, True])
def test_deep_colors(run, tmp_path, picture, dtype, suffix, alpha):
    pixels, hidden = picture
    largest = {"uint8": 255, "uint16": 65535}.get(dtype, 1)
    values = (pixels / 255 * largest).astype(dtype)
    if alpha:
        values = np.dstack([values, np.where(hidden, 0, largest).astype(dtype)])
    write_raster(Raster(values, alpha, {}), tmp_path / f"in.{suffix}", f".{suffix}")
    arguments = () if alpha else ("--mask", "mask.png")
    names = f"in.{suffix}", f"out.{suffix}"
    code, _, err = run("complete", *names, "--method", "biharmonic", *arguments)
    assert code == 0, err
    found = read_raster(str(tmp_path / f"out.{suffix}"))
    assert found.alpha == alpha and found.pixels.dtype == dtype
    np.testing.assert_array_equal(found.pixels[~hidden], values[~hidden])
    error = np.abs(found.colors[hidden] / largest - pixels[hidden] / 255)
    assert error.mean() < 0.02
    code, _, err = run("complete", names[0], "out.jpg", *arguments)
    assert code == 2 or dtype == "uint8"


def test_unsupported_tiff_files_are_refused(run, tmp_path, picture):
    pixels, hidden = picture
    floats = np.where(hidden, np.nan, pixels[:, :, 0] / 255).astype(np.float32)
    Image.fromarray(floats).save(tmp_path / "in.tif")
    assert run("complete", "in.tif", "out.tif", "--method", "tnnr")[0] == 0  # NaN
    assert np.isfinite(read(tmp_path / "out.tif")).all()
    code, _, err = run("complete", "in.tif", "out.png", "--method", "tnnr")
    assert code == 2 and "PNG has no floats" in err
    page = Image.fromarray(pixels)
    page.save(tmp_path / "pages.tif", save_all=True, append_images=[page, page])
    code, _, err = run("complete", "pages.tif", "x.tif", "--mask", "mask.png")
    assert code == 1 and "pages.tif has 3 pages" in err


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_pictures_are_upright_and_keep_their_metadata(
    run, tmp_path, picture, orientation, suffix
):
    pixels, _ = picture
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = orientation, "a caption"
    kept = {"exif": exif, "icc_profile": b"a profile", "dpi": (300, 300)}
    Image.fromarray(pixels).save(tmp_path / f"in.{suffix}", **kept)
    with Image.open(tmp_path / f"in.{suffix}") as file:
        upright = np.asarray(ImageOps.exif_transpose(file))
    names = f"in.{suffix}", f"out.{suffix}"
    hidden = upright == upright[3, 3]
    color = "#" + bytes(upright[3, 3]).hex()
    assert run("complete", *names, "--missing-color", color, "--method", "mean")[0] == 0
    with Image.open(tmp_path / f"out.{suffix}") as file:
        seen = ~hidden.all(2)
        np.testing.assert_array_equal(np.asarray(file)[seen], upright[seen])
        assert file.getexif()[0x010E] == "a caption"
        assert file.getexif().get(0x0112, 1) == 1
        assert file.info["icc_profile"] == b"a profile"
        assert round(file.info["dpi"][0]) == 300


def test_jpeg(run, tmp_path, picture):
    pixels, _ = picture
    pixels = np.kron(pixels, np.ones((4, 4, 1), np.uint8))
    pixels[24:48, 32:56] = (255, 0, 0)
    exif = Image.Exif()
    exif[0x010E] = "a caption"
    Image.fromarray(pixels).save(tmp_path / "in.jpg", quality=95, exif=exif)
    code, _, err = run(
        "complete", "in.jpg", "out.jpg", "--missing-colour", "red", "--method", "svd"
    )
    assert code == 0
    assert "JPEG blurs colors" in err and "JPEG is lossy" in err
    n_found = int(re.search(r"(\d+) of 7680 pixels", err)[1])
    assert 24 * 24 <= n_found <= 28 * 28
    with Image.open(tmp_path / "out.jpg") as file:
        assert file.format == "JPEG" and file.getexif()[0x010E] == "a caption"
    assert (read(tmp_path / "out.jpg")[24:48, 32:56, 1:].max(2) > 20).all()


def test_pictures_that_cannot_be_completed(run, tmp_path, picture):
    pixels, hidden = picture
    Image.fromarray(pixels).save(tmp_path / "in.png")
    Image.fromarray(pixels[:5]).save(tmp_path / "small.png")
    Image.fromarray(pixels).convert("CMYK").save(tmp_path / "cmyk.jpg")
    (tmp_path / "text.png").write_text("no picture")
    clear = np.dstack([pixels, np.full(hidden.shape, 9, np.uint8)])
    Image.fromarray(clear).save(tmp_path / "clear.png")
    mask = ("--mask", "mask.png", "--method", "mean")
    for code, message, *arguments in (
        (2, "nothing marks a pixel", "in.png", "out.png"),
        (1, "small.png is 24 x 5 pixels", "in.png", "out.png", "--mask", "small.png"),
        (
            1,
            "no pixel within 0 of 255 of the color",
            "in.png",
            "o.png",
            "--missing-colour",
            "#010203",
        ),
        (2, "unknown color", "in.png", "out.png", "--missing-colour", "bluish"),
        (2, "--invert-mask needs", "in.png", "out.png", "--invert-mask"),
        (2, "--tolerance needs", "in.png", "out.png", "--tolerance", "3"),
        (2, "does not apply to in.png", "in.png", "out.png", "--index", "a", *mask),
        (1, "text.png is not a picture", "text.png", "out.png", *mask),
        (1, "mode CMYK", "cmyk.jpg", "out.png", *mask),
        (2, "no transparency", "clear.png", "out.jpg", *mask),
    ):
        found, _, err = run("complete", *arguments)
        assert (found, err.count("\n")) == (code, 1), err
        assert message in err
    assert not list(tmp_path.glob("o*"))


# Exit codes and messages


def test_nothing_is_overwritten(run, tmp_path):
    numbers(tmp_path)
    (tmp_path / "out.csv").write_text("precious")
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert code == 1 and err == "skmc: error: out.csv exists; --force overwrites it\n"
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert run("complete", "in.csv", "out.csv", "--method", "mean", "--force")[0] == 0
    assert (tmp_path / "out.csv").read_text().startswith("a,b,c,d,e,f\n")
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv"]


def test_a_file_that_appears_during_the_fit_is_kept(run, tmp_path, monkeypatch):
    numbers(tmp_path)
    fit = SVDCompleter.fit

    def slow(self, X, y=None):
        (tmp_path / "out.csv").write_text("precious")
        return fit(self, X, y)

    monkeypatch.setattr(SVDCompleter, "fit", slow)
    assert run("complete", "in.csv", "out.csv", "--method", "svd")[0] == 1
    assert (tmp_path / "out.csv").read_text() == "precious"


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "skmc: interrupted\n"),
        (MemoryError(), 1, "skmc: error: there is not enough memory\n"),
        (RuntimeError("it\nbroke"), 1, "skmc: error: it broke\n"),
        (KeyError("k"), 1, "skmc: error: KeyError: 'k'\n"),
    ],
)
def test_failures_leave_no_files(run, tmp_path, monkeypatch, failure, code, message):
    numbers(tmp_path)

    def fail(*_):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(SVDCompleter, "fit", fail)
        found, _, err = run("complete", "in.csv", "out.csv", "--method", "svd")
    assert (found, err) == (code, message)
    monkeypatch.setattr(os, "replace", fail)  # as late as can be
    found, _, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert (found, err) == (code, message)
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["in.csv", "out.csv", "--method", "svdd"], 2, "did you mean 'svd'?"),
        (["in.csv", "out.csv", "--set", "rnk=1"], 2, "no parameter 'rnk'"),
        (
            ["in.csv", "out.csv", "--method", "air", "--set", "depth=0"],
            2,
            "'depth' parameter",
        ),
        (["in.csv", "out.csv", "--time-limit", "0"], 2, "not a positive number"),
        (
            ["in.csv", "out.csv", "--method", "knn", "--time-limit", "9"],
            2,
            "knn does not iterate and has no time limit",
        ),
        (["in.csv", "out.csv", "--set", "depth"], 2, "not name=value"),
        (["in.csv", "out.csv", "--device", "moon"], 2, "device='moon'"),
        (["in.csv", "out.csv", "--seed", "-1"], 2, "--seed"),
        (["in.csv", "out.csv", "--index", "z"], 2, "--index z: no such column"),
        (["in.csv", "out.csv", "--mask", "m.png"], 2, "does not apply to in.csv"),
        (["in.csv", "out.png"], 2, "must have the format of in.csv"),
        (["in.csv", "out.xlsx"], 2, "is a spreadsheet; use CSV"),
        (["in.csv", "out.doc"], 2, "must end in one of"),
        (["in.csv", "none/out.csv"], 1, "folder none does not exist"),
        (["in.csv", "."], 2, "must end in one of"),
        (["none.csv", "out.csv"], 1, "none.csv: No such file"),
        (["in.csv"], 2, "required: OUT"),
        (["in.csv", "out.csv", "--draws", "0"], 2, "0 is not positive"),
        (
            ["in.csv", "out.csv", "--draws", "2", "--method", "svd"],
            2,
            "--method svd: there are no draws; methods with draws: auto, bayesian-",
        ),
        (
            ["in.csv", "-", "--draws", "2", "--method", "gaussian"],
            2,
            "--draws needs a file name, not '-'",
        ),
        (
            ["in.csv", "out.csv", "--draws", "2", "--intervals"],
            2,
            "not allowed with argument --draws",
        ),
    ],
)
def test_bad_arguments(run, tmp_path, arguments, code, message):
    numbers(tmp_path)
    found, _, err = run("complete", *arguments)
    assert found == code and message in err and "Traceback" not in err
    assert os.listdir(tmp_path) == ["in.csv"]


INTERRUPTED_BY_AN_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name in sys.argv[1].split():
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from skmc._command.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("imported", "arguments", "code", "message"),
    [
        ("torch sklearn numpy", "--help", 0, ""),
        ("torch sklearn numpy", "complete --help", 0, ""),
        ("torch sklearn numpy", "methods", 0, ""),
        ("torch sklearn numpy", "complete --nonsense", 2, "required: IN, OUT"),
        ("torch sklearn numpy", "compare in.csv --metric no", 2, "choose from"),
        ("torch sklearn numpy", "complete in.csv o --method svdd", 2, "did you mean"),
        ("torch sklearn", "complete none.csv out.csv", 1, "none.csv: No such file"),
        ("torch sklearn", "complete bad.csv out.csv", 1, "the first line has 2"),
        ("torch sklearn", "compare none.csv", 1, "none.csv: No such file"),
        ("argparse", "--help", 130, None),
        ("numpy", "complete in.csv out.csv", 130, None),
        ("torch", "complete in.csv out.csv", 130, None),
        ("pandas", "compare in.csv", 130, None),
    ],
)
def test_mistakes_and_interrupts_do_not_wait_for_imports(
    tmp_path, imported, arguments, code, message
):
    """Mistakes are reported before slow imports; Ctrl-C ends these with one line."""
    numbers(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_BY_AN_IMPORT, imported, *arguments.split()],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ran.returncode == code and "Traceback" not in ran.stderr
    if code == 130:
        assert (ran.stdout, ran.stderr) == ("", "skmc: interrupted\n")
    else:
        assert message in ran.stderr and bool(ran.stdout) is (code == 0)


def test_accepted_values_of_arguments_exist():
    """The parser has its own lists, so that it imports none of what they name."""
    from skmc._command import arguments

    assert tuple(arguments.PATTERNS) == PATTERNS
    assert tuple(arguments.METRICS) == tuple(METRICS)
    completers = [methods.class_of(name) for name in methods.METHODS]
    assert sorted(completers, key=lambda cls: cls.__name__) == all_completers()


def test_two_levels_are_enough():
    from skmc._command.values import levels

    assert levels("size=small, large") == ("size", ["small", "large"])
    for text in ("size=small", "size=small,small", "=small,large"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not COLUMN=LOW"):
            levels(text)


def test_seed(run, tmp_path):
    numbers(tmp_path)
    quick = ("--method", "dmf", "--set", "max_iter=5", "-q", "--device", "cpu")
    for seed, name in ((1, "a"), (1, "b"), (2, "c")):
        run("complete", "in.csv", f"{name}.csv", "--seed", seed, *quick)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_on_a_terminal(run, tmp_path, monkeypatch, quiet):
    numbers(tmp_path)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    arguments = ("complete", "in.csv", "out.csv", "--method", "svd", "--force")
    assert run(*arguments, *(["--quiet"] if quiet else []))[0] == 0
    assert ("MixedCompleter" in terminal.getvalue()) is not quiet
    assert bool(terminal.getvalue()) is not quiet


def test_a_terminal_without_callbacks(run, tmp_path, monkeypatch):
    """scikit-learn calls callbacks from version 1.9 on."""

    def refuse(self, *callbacks):
        raise NotImplementedError

    numbers(tmp_path)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("skmc.compatibility.CALLBACKS", False)
    monkeypatch.setattr(SVDCompleter, "set_callbacks", refuse)
    assert run("complete", "in.csv", "out.csv", "--method", "svd")[0] == 0


@pytest.mark.long
def test_as_a_module(tmp_path):
    """Outside a test, warnings are not errors, and bytes go through a pipe."""
    ran = subprocess.run(
        [sys.executable, "-m", "skmc", "complete", "-", "-", "--method", "mean"],
        input=TABLE.encode(),
        capture_output=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ran.returncode == 0
    assert ran.stdout.startswith(TABLE[: TABLE.index("b,,")].encode())
    assert b"4 of 30 cells completed by mean" in ran.stderr


def test_levels_and_several_marks_of_missing_cells(run, tmp_path):
    """Levels keep their order: the completion is between those of similar rows."""
    levels = ["low", "mid", "high", "top"]
    rows = [f"{levels[k % 4]},{k % 4 + 0.1 * (k % 3):.1f}" for k in range(40)]
    rows[5], rows[9], rows[14] = '"?,-",1.0', "-999,1.1", "high,-999.00"
    (tmp_path / "in.csv").write_text("\n".join(["grade,x", *rows, ""]))
    arguments = ("complete", "in.csv", "out.csv", "--method", "svd", "--force")
    ordinal = ("--ordinal", f"grade={','.join(levels)}")
    code, _, err = run(*arguments, *ordinal, "--missing", '-999,"?,-"')
    assert code == 0, err
    frame = pd.read_csv(tmp_path / "out.csv")
    assert frame["grade"][[5, 9]].tolist() == ["mid", "mid"]
    assert 1.5 < frame["x"][14] < 2.5
    code, _, err = run(*arguments, *ordinal, "--missing", "-999")
    assert code == 1 and "row 6 (line 7), column 'grade': '?,-' is not among" in err
    code, _, err = run(*arguments, *ordinal, "--categorical", "grade")
    assert code == 2 and "--ordinal grade" in err

    frame["stars"] = pd.array([levels.index(g) for g in frame["grade"]], "Int64")
    frame.loc[[5, 9], "stars"] = None
    frame.to_parquet(tmp_path / "in.parquet")
    stars = ("complete", "in.parquet", "out.parquet", "--method", "svd", "--ordinal")
    assert run(*stars, "stars=0,1,2,3,4")[0] == 0
    after = pd.read_parquet(tmp_path / "out.parquet")["stars"]
    assert after.dtype == "Int64" and after[[5, 9]].tolist() == [1, 1]
    code, _, err = run(*stars, "stars=0,1,many", "--force")
    assert code == 2 and "the column holds int64" in err


# The other commands


def test_compare(run, tmp_path):
    numbers(tmp_path, 30)
    arguments = ("compare", "in.csv", "--methods", "mean,svd,iterative-imputer")
    code, out, err = run(*arguments, "--splits", 2, "--html", "report.html")
    assert code == 0, err
    order = re.findall(r"^ +(svd|mean|iterative-imputer) ", out, re.MULTILINE)
    assert len(order) == 3 and order[-1] == "mean"  # the matrix has rank two
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"https?:|src=\"(?!data:)|<link|<script|url\(", page)
    figures = re.findall(r'src="data:image/png;base64,([^"]*)"', page)
    assert len(figures) == 3
    for figure in figures:
        with Image.open(io.BytesIO(base64.b64decode(figure))) as file:
            assert min(file.size) > 100
    assert re.findall(r'<tr class="\w+"><td>([\w-]+)</td>', page) == order
    code, _, err = run(*arguments, "--html", "report.html")
    assert code == 1 and "report.html exists; --force" in err


def test_compare_draws(run, tmp_path):
    numbers(tmp_path, 60)
    quick = ("compare", "in.csv", "--splits", 2, "--draws", 5)
    code, out, err = run(*quick, "--methods", "mean,gaussian", "--html", "o.html")
    assert code == 0, err
    assert "not compared, because they have no draws: mean\n" in err
    assert "skmc complete in.csv OUT --method gaussian --draws=5\n" in err
    for text in (" ".join(out.split()), (tmp_path / "o.html").read_text()):
        assert "crps" in text and "of 5 draws in standard deviations" in text
    code, _, err = run(*quick, "--methods", "mean,svd")
    assert code == 2
    assert (
        "--methods mean,svd: there are no draws; methods with draws: auto, bayesian-"
        in err
    )
    code, _, err = run(*quick, "--metric", "rmse")
    assert code == 2 and "--draws compares by the CRPS; leave --metric out" in err


@pytest.mark.long
def test_compare_draws_of_the_default_methods(run, tmp_path):
    numbers(tmp_path, 60)
    code, out, err = run("compare", "in.csv", "--splits", 2, "--draws", 5)
    assert code == 0 and "not compared, because they have no draws: " in err
    names = re.findall(r"^  ([\w-]+) +\d", out, re.MULTILINE)
    assert {"chained-short", "copula", "gaussian"} <= set(names)


def test_compare_says_which_warnings_and_how_small_p_is(run, tmp_path):
    numbers(tmp_path, 60)
    arguments = ("--methods", "mean,svd", "--splits", 8, "--html", "o.html")
    code, out, _ = run("compare", "in.csv", *arguments)
    assert code == 0 and "< .001" in out and " 0.000 " not in out
    for text in (out, (tmp_path / "o.html").read_text()):
        assert "svd, mean warned: 1 row of X has no observed cell" in text


def test_compare_tells_of_columns_once(run, tmp_path):
    """By names, and with the options of the command as remedies."""
    rng = np.random.RandomState(0)
    table = pd.DataFrame(rng.randn(40, 3).round(2), columns=list("abc"))
    table["id"] = [f"id {k}" for k in range(40)]
    table.iloc[:6, 0], table.iloc[10:14, 1] = -999, np.nan
    table.to_csv(tmp_path / "in.csv", index=False)
    code, out, err = run("compare", "in.csv", "--methods", "mean", "--html", "o.html")
    assert code == 0 and err.count("cannot be inferred") == err.count("-999") == 1
    for text in (out, (tmp_path / "o.html").read_text()):
        assert "warned" not in text and "MixedCompleter" not in text


def test_compare_gives_columns_equal_weight(run, tmp_path):
    """The best method does not depend on the units of a column."""
    X = numbers(tmp_path, 30)
    for words in ({}, {"kind": ["u", "v"] * 15}):
        errors = []
        for units in ([1] * 6, [1, 1e6, 1, 1e-3, 1, 1]):
            frame = pd.DataFrame(X * units, columns=list("abcdef")).assign(**words)
            frame.to_csv(tmp_path / "in.csv", index=False)
            _, out, _ = run("compare", "in.csv", "--methods", "svd,mean", "--splits", 2)
            errors.append(re.findall(r"(svd|mean) +(\d\.\d+)", out))
        assert errors[0] == errors[1]


def test_compare_shows_its_progress(run, tmp_path, monkeypatch):
    numbers(tmp_path, 30)
    seen = []
    compare([MeanCompleter()], np.eye(9), cv=3, on_fit=lambda *fits: seen.append(fits))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert run("compare", "in.csv", "--methods", "mean", "--splits", 2)[0] == 0
    assert "fits" in terminal.getvalue()


def test_compare_pictures_and_failures(run, tmp_path, picture):
    pixels, _ = picture
    Image.fromarray(pixels).save(tmp_path / "in.png")
    code, out, err = run(
        "compare", "in.png", "--methods", "mean,tnnr", "--splits", 1, "--metric", "rmse"
    )
    assert code == 0 and out.index("tnnr") < out.index("mean") and "rmse" in out
    assert "skmc complete in.png OUT --method tnnr\n" in err
    (tmp_path / "words.csv").write_text("a\nx\ny\nz\nu\n")
    code, _, err = run("compare", "words.csv")
    assert code == 1 and "words.csv has no column that can be completed" in err


def test_compare_takes_whole_tables_and_suggests_a_command_that_works(run, tmp_path):
    rng = np.random.RandomState(0)
    z = rng.randn(60)
    table = pd.DataFrame(
        {
            "kind": np.where(z > 0, "up", "down"),
            "x": (z + 0.1 * rng.randn(60)).round(2).astype(str),
            "size": np.array(["s", "m", "l"])[np.digitize(z, [-0.5, 0.5])],
            "code": np.where(z > 0, 7, 3),
        }
    )
    hidden = rng.rand(*table.shape) < 0.15
    table.mask(hidden, "?").to_csv(tmp_path / "in.csv", index=False)
    options = "--missing=?", "--categorical", "code", "--ordinal", "size=s,m,l"
    names = "mean,knn-weighted,copula"
    code, out, err = run(
        "compare", "in.csv", *options, "--methods", names, "--splits", 2
    )
    assert code == 0, err
    order = re.findall(r"^  ([\w-]+) +0\.\d", out, re.MULTILINE)
    assert sorted(order) == sorted(names.split(",")) and order[-1] == "mean"
    seen = (~hidden).sum()
    assert f"60 x 4 cells, {seen} of them observed" in " ".join(out.split())
    (line,) = [line for line in err.splitlines() if "completes the file" in line]
    command = shlex.split(line.partition("skmc complete ")[2].replace("OUT", "o.csv"))
    assert {"--missing=?", "--categorical=code", "--ordinal=size=s,m,l"} <= {*command}
    code, _, err = run("complete", *command)
    assert code == 0, err
    assert "?" not in (tmp_path / "o.csv").read_text()
    code, _, err = run("compare", "in.csv", *options, "--metric", "rmse")
    assert code == 2 and "leave --metric out" in err


def test_methods_have_a_line_each(run):
    code, out, _ = run("methods")
    lines = out.splitlines()
    assert code == 0 and len(lines) == len(all_completers())
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_candidates_are_methods_by_the_same_names(run):
    """Those of the leaderboard, too, so that what is best can be asked for."""
    for name, candidate in all_candidates().items():
        assert methods.method(name) == name and "," not in name
        made = methods.make(name, {}, 0, "cpu")
        if isinstance(candidate, BaseCompleter):
            assert repr(made) == repr(candidate)
        else:
            assert made.candidates == [name]
    code, out, _ = run("methods", "copula")
    assert code == 0 and out.startswith("GaussianCompleter")


def test_methods_are_described(run):
    code, out, _ = run("methods", "soft_impute")
    assert code == 0 and out.startswith("SoftImputeCompleter") and "Parameters" in out
    assert run("methods", "none")[0] == 2


# Input that is easily misread


def test_npz_of_the_largest_numbers(run, tmp_path):
    mask = np.eye(6, 4) > 0
    for dtype in (np.int64, np.uint64, np.int8):
        X = np.full((6, 4), np.iinfo(dtype).max, dtype)
        np.savez(tmp_path / "in.npz", X=X, mask=mask)
        arguments = ("in.npz", "out.npz", "--method", "mean", "--force")
        assert run("complete", *arguments)[0] == 0
        with np.load(tmp_path / "out.npz") as file:
            np.testing.assert_array_equal(file["X"], X)


def test_npz_that_cannot_be_completed(run, tmp_path):
    X = np.ones((4, 3))
    with open(tmp_path / "npy.npz", "wb") as file:
        np.save(file, X)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as file:
        file.writestr("readme.txt", "text")
    np.savez(tmp_path / "nan.npz", X=X * np.nan)
    np.savez(tmp_path / "inf.npz", X=np.where(np.eye(4, 3) > 0, np.inf, X))
    for name, message in (
        ("npy", "is not an NPZ file"),
        ("text", "is not an NPZ file"),
        ("nan", "X has no observed cell"),
        ("inf", "X[0, 0] is infinite"),
    ):
        for command in (("complete", f"{name}.npz", "o.npz"), ("compare",)):
            arguments = command if len(command) > 1 else ("compare", f"{name}.npz")
            code, _, err = run(*arguments)
            assert code == 1 and f"error: {name}.npz" in err and message in err


def test_npz_of_half_precision(run, tmp_path):
    X = np.arange(12, dtype=np.float16).reshape(4, 3)
    X[1, 1] = np.nan
    np.savez(tmp_path / "in.npz", X=X)
    code, _, err = run("complete", "in.npz", "out.npz", "--method", "mean")
    assert code == 0 and "warning" not in err
    with np.load(tmp_path / "out.npz") as file:
        assert file["X"].dtype == np.float16 and np.isfinite(file["X"]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5.1,,1.4\n1,2,3\n4,,6\n", "the first line holds numbers"),
        ("5.1,NA,1.4\n1,2,3\n4,,6\n", "the first line holds numbers"),
        (",2.5,1.4\n1,2,3\n4,,6\n", "the first line holds numbers"),
        (",0,1\n0,2,3\n1,,6\n", None),  # pandas' own
        ("a b\n1 2\n3 4\n1 2\n3 4\n", "only one column was found"),
        ("city\nSt Ives\nYork\nYork\nSt Ives\n", "only one column was found"),
        ("5.1,3.5,setosa\n1,2,x\n4,,x\n", "the first line holds numbers"),
        ("land,1990,1991\nx,2,1\nx,4,\n", None),
        ("a,b\n1,2\n1e30,\n3,4\n2,1\n", r"row 2 (line 3), column 'a': 1e+30 is more"),
        ('a,b\n"1,234",1\n"1,234",2\n,\n', "commas between thousands"),
        ("a,b\n70 kg,1\n70 kg,2\n,\n", "unit such as % or kg"),
    ],
)
def test_warnings_about_a_table(run, tmp_path, text, message):
    (tmp_path / "in.csv").write_text(text)
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert code == 0
    assert message in err if message else "warning" not in err


def titanic(rng, n=200):
    """Numbers, names, categories, dates and a text that is mostly missing."""
    sex, fare = rng.randint(2, size=n), np.round(rng.gamma(2, 20, n), 2)
    age = np.round(20 + 10 * sex + fare / 4 + rng.randn(n), 2)
    frame = pd.DataFrame(
        {
            "Name": [f"Person {i}, Mr. {rng.randint(1e6)}" for i in range(n)],
            "Sex": np.array(["male", "female"], object)[sex],
            "Age": age,
            "SibSp": sex + rng.randint(2, size=n),
            "Ticket": [f"PC {rng.randint(1e6)}" for _ in range(n)],
            "Fare": fare,
            "Cabin": [f"C{rng.randint(99)}" for _ in range(n)],
            "Embarked": rng.choice(list("SCQ"), n),
            "Boarded": [f"{1 + int(f) % 28:02d}.04.1912" for f in fare],
        }
    )
    holes = frame.copy()
    for name, share in {"Sex": 0.1, "Age": 0.2, "SibSp": 0.1, "Cabin": 0.77}.items():
        holes[name] = holes[name].astype(object).mask(rng.uniform(size=n) < share)
    holes.loc[::9, "Boarded"] = None
    return holes


def test_an_untidy_table(run, tmp_path):
    holes = titanic(np.random.RandomState(0))
    holes.to_csv(tmp_path / "in.csv", index=False)
    code, _, err = run("complete", "in.csv", "out.csv", "--method", "svd")
    assert code == 0, err
    (warning,) = re.findall("warning: .*", err)
    assert re.findall(r"'(\w+)' \(", warning) == ["Name", "Ticket", "Cabin"]
    assert "% missing" in warning and "--categorical Name" in warning
    texts = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    before = pd.read_csv(tmp_path / "in.csv", dtype=str, keep_default_na=False)
    seen = before != ""
    assert (texts[seen] == before[seen]).all(axis=None) or texts[seen].equals(
        before[seen]
    )
    assert (texts["Cabin"] == before["Cabin"]).all()  # mostly missing: left empty
    for name in ("Age", "SibSp", "Sex", "Boarded"):
        assert (texts[name] != "").all()
    assert texts["Age"].str.fullmatch(r"\d+(\.\d\d?)?").all()
    assert texts["Age"].astype(float).between(*holes["Age"].agg(["min", "max"])).all()
    assert set(texts["SibSp"]) <= {"0", "1", "2"}
    assert texts["Boarded"].str.fullmatch(r"\d\d\.04\.1912").all()
    code, _, err = run(
        *("complete", "in.csv", "o2.csv", "--method", "svd", "--categorical", "Cabin"),
        *("--index", "Name", "--index", "Ticket"),
    )
    assert code == 0 and "warning" not in err
    assert not pd.read_csv(tmp_path / "o2.csv")["Cabin"].isna().any()


def test_all_problems_are_reported_at_once(run, tmp_path):
    (tmp_path / "in.csv").write_text("a,Ticket no,c\n1,17,x\n?,PC 9,y\n3,5,x\n,inf,\n")
    code, _, err = run("complete", "in.csv", "out.csv")
    assert code == 1 and "in.csv: 2 problems\n" in err
    assert "'?' is not a number" in err and "--missing '?'" in err
    assert "column 'Ticket no': 'PC 9'" in err and "--index 'Ticket no'" in err
    (tmp_path / "in.csv").write_text("a,b\ninf,1\n2,1e200\n3,x\n")
    _, _, err = run("complete", "in.csv", "out.csv")
    assert "inf is infinite" in err and "'x' is not a number" in err


def test_auto_is_the_default_of_tables(run, tmp_path):
    numbers(tmp_path, 20)
    code, _, err = run("complete", "in.csv", "out.csv", "--time-limit", "2")
    assert code == 0 and "completed by auto" in err
    assert "column means. `leaderboard_`" in err and "status" not in err
    code, _, err = run(
        *("complete", "in.csv", "o2.csv", "--method", "auto", "--time-limit", "2"),
        *("--set", "candidates=['mean', 'knn']"),
    )
    assert code == 0 and re.search(r"candidate +status +error", err)


def test_headers_that_are_not_utf_8_are_readable(run, tmp_path):
    raw = "größe;zoë\n1;\n2;5\n".encode("latin-1")
    (tmp_path / "in.csv").write_bytes(raw)
    arguments = (
        "complete",
        "in.csv",
        "out.csv",
        "--method",
        "mean",
        "--index",
        "größe",
    )
    code, _, err = run(*arguments)
    assert code == 0 and "columns left unchanged: 'größe'" in err
    assert (tmp_path / "out.csv").read_bytes() == raw.replace(b"1;\n", b"1;5\n")


def test_a_plot_of_missing_cells(run, tmp_path):
    X = numbers(tmp_path, 700)
    code, _, err = run("plot", "in.csv")
    assert code == 0 and f"{np.isnan(X).sum()} of {X.size} cells are missing" in err
    assert min(read(tmp_path / "in-missing.png").shape[:2]) > 300
    assert run("plot", "in.csv")[0] == 1  # the file exists
    assert run("plot", "in.csv", "o.svg")[0] == 0
    assert run("plot", "in.csv", "o.doc")[0] == 2
    np.savez(tmp_path / "in.npz", X=X)
    code, _, err = run("plot", "in.npz", "o.png")
    assert code == 2 and "is not a table" in err


def test_blank_lines_are_holes_of_a_single_column(run, tmp_path):
    (tmp_path / "in.csv").write_text("\na\n1\n\n3\n\n")
    assert run("complete", "in.csv", "out.csv", "--method", "mean")[0] == 0
    assert (tmp_path / "out.csv").read_text() == "\na\n1\n2\n3\n\n"


def test_categories_are_reported(run, tmp_path):
    (tmp_path / "in.csv").write_text(TABLE)
    _, _, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert "columns completed as categories: 'kind', '5'" in err


def test_ambiguous_masks(run, tmp_path, picture):
    pixels, hidden = picture
    Image.fromarray(pixels).save(tmp_path / "in.png")
    arguments = ("complete", "in.png", "out.png", "--method", "mean", "--force")
    deep = np.where(hidden, 65535, 300).astype(np.uint16)
    layer = np.full((20, 24, 4), 255, np.uint8)
    layer[:, :, 3] = 255 * hidden
    for mask in (deep, layer):  # dark or transparent pixels are not white
        Image.fromarray(mask).save(tmp_path / "m.png")
        code, _, err = run(*arguments, "--mask", "m.png")
        assert code == 0 and f"{hidden.sum()} of 480 pixels" in err
    Image.fromarray(hidden.astype(np.uint8)).save(tmp_path / "m.png")
    code, _, err = run(*arguments, "--mask", "m.png")
    assert (
        code == 1
        and "m.png has no opaque white pixel" in err
        and "0 to 1 of 255" in err
    )
    Image.fromarray(np.full((20, 24), 255, np.uint8)).save(tmp_path / "m.png")
    code, _, err = run(*arguments, "--mask", "m.png")
    assert code == 1 and "in.png has no observed pixel" in err


def test_a_photograph_is_refused_as_a_mask(run, tmp_path, picture):
    pixels, hidden = picture
    Image.fromarray(pixels).save(tmp_path / "in.png")
    soft = np.where(hidden, 230, 20) + np.arange(24) % 3
    Image.fromarray(soft.astype(np.uint8)).save(tmp_path / "soft.png")
    arguments = ("complete", "in.png", "out.png", "--method", "mean", "--mask")
    for mask, n_values in (("in.png", ""), ("soft.png", "6 gray levels")):
        code, _, err = run(*arguments, mask)
        assert code == 1 and f"{mask} is not black and white" in err
        assert n_values in err
        assert "pass --mask-threshold 127" in err
    code, _, err = run(*arguments, "soft.png", "--mask-threshold", 127)
    assert code == 0 and f"{hidden.sum()} of 480 pixels" in err
    code, _, err = run("complete", "in.png", "o.png", "--mask-threshold", 9)
    assert code == 2 and "--mask-threshold needs --mask" in err


def test_time_and_memory_of_large_pictures_are_announced(
    run, tmp_path, picture, monkeypatch
):
    monkeypatch.setattr("skmc._command.picture_file.LARGE", 100)
    Image.fromarray(picture[0]).save(tmp_path / "in.png")
    arguments = ("in.png", "out.png", "--mask", "mask.png", "--method", "biharmonic")
    code, _, err = run("complete", *arguments)
    assert code == 0, err
    before, after = err.strip().split("\n")
    assert re.search(r"in.png has 24 x 20 pixels: about 1 min and 0.\d GiB", before)
    assert "completed by biharmonic" in after


def test_pictures_are_completed_by_groups_of_patches(run, tmp_path, picture):
    pixels, hidden = picture
    Image.fromarray(pixels).save(tmp_path / "in.png")
    code, _, err = run("complete", "in.png", "out.png", "--mask", "mask.png")
    assert code == 0 and "completed by nonlocal" in err
    error = np.abs(read(tmp_path / "out.png").astype(float) - pixels)
    assert error.max() < 30 and error[hidden].mean() < 4


def test_broken_pictures_are_named(run, tmp_path, picture):
    Image.fromarray(picture[0]).save(tmp_path / "in.png")
    raw = (tmp_path / "in.png").read_bytes()
    (tmp_path / "in.png").write_bytes(raw[: len(raw) // 2])
    code, _, err = run("complete", "in.png", "out.png", "--mask", "mask.png")
    assert code == 1 and err.startswith("skmc: error: in.png cannot be read: ")


def test_links_and_permissions_are_kept(run, tmp_path):
    numbers(tmp_path)
    real, link = tmp_path / "real.csv", tmp_path / "out.csv"
    link.symlink_to("real.csv")  # which is not there
    arguments = ("complete", "in.csv", "out.csv", "--method", "mean")
    assert run(*arguments)[0] == 1
    real.write_text("old")
    real.chmod(0o600)
    assert run(*arguments, "--force")[0] == 0
    assert link.is_symlink() and real.read_text().startswith("a,b,")
    assert real.stat().st_mode & 0o777 == 0o600


def test_invalid_combinations_of_arguments_are_refused(run, tmp_path):
    numbers(tmp_path)
    code, _, err = run("compare", "in.csv", "--html", "-")
    assert code == 2 and "--html needs a file name" in err
    for setting in ("add_indicator=True", "keep_empty_features=False"):
        code, _, err = run("complete", "in.csv", "o.csv", "--set", setting)
        assert code == 2 and f"--set {setting} would change" in err


def test_a_terminal_with_a_limited_encoding(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers(tmp_path)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    assert main(["compare", "in.csv", "--methods", "mean", "--splits", "1"]) == 0
    assert b"? std. error" in raw.getvalue()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_series_are_completed_over_time(run, tmp_path, suffix):
    rng = np.random.RandomState(0)
    hours = pd.date_range("2024-03-01", periods=24 * 10, freq="h")
    daily = 10 + 3 * np.sin(2 * np.pi * np.arange(240) / 24)
    truth = (daily + 0.1 * rng.randn(240)).round(2)
    table = pd.DataFrame({"when": hours, "north": truth, "south": (20 * daily).round()})
    table.loc[50:73, "north"] = np.nan
    table["note"] = "ok"
    write = getattr(table, f"to_{suffix}")
    write(tmp_path / f"in.{suffix}", index=False)
    names, series = (f"in.{suffix}", f"out.{suffix}"), ("--time", "when")
    mean = ("--method", "mean")
    code, _, err = run("complete", *names, *series, *mean, "--intervals")
    assert code == 0, err
    assert "24 of 960 cells completed by mean" in err
    assert "columns left unchanged: 'when', 'note'" in err
    found = getattr(pd, f"read_{suffix}")(tmp_path / f"out.{suffix}")
    gap = slice(50, 73)
    assert abs(found.loc[gap, "north"] - truth[50:74]).max() < 1
    inside = found["north lower"] <= found["north"]
    assert inside[50:74].all() and found["north upper"].notna().sum() == 24
    if suffix == "csv":
        lines = (tmp_path / "in.csv").read_text().splitlines()
        after = (tmp_path / "out.csv").read_text().splitlines()
        assert after[10].split(",")[::3][0] == lines[10].split(",")[0]
        code, _, err = run("complete", "in.csv", "o.csv", "--time", "note")
        assert code == 1 and "column 'note' are not dates" in err
        for more in (["--draws", "2"], ["--set", "max_iter=3"]):
            code, _, err = run("complete", "in.csv", "o.csv", "--time", "when", *more)
            assert code == 2 and "--time" in err


def test_units_have_series_of_their_own(run, tmp_path):
    day = np.tile(pd.date_range("2024-03-01", periods=60), 2)
    shop = np.repeat(["north", "south"], 60)
    sales = np.concatenate([np.arange(60.0), 1000 - 5 * np.arange(60.0)])
    table = pd.DataFrame({"day": day, "shop": shop, "sales": sales})
    table.loc[[20, 80, 81], "sales"] = np.nan
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "in.csv", index=False)
    command = "complete", "in.csv", "out.csv", "--unit", "shop"
    code, _, err = run(*command)
    assert code == 2 and "--unit needs --time" in err
    code, _, err = run(*command, "--time", "day")
    assert code == 0 and "left unchanged: 'day', 'shop'" in err, err
    found = pd.read_csv(tmp_path / "out.csv").sort_values(["shop", "day"])
    assert abs(found["sales"].to_numpy() - sales).max() < 1


def test_years_are_times(run, tmp_path):
    years = pd.DataFrame({"year": range(1970, 2000), "a": np.arange(30.0) ** 2})
    years.loc[[5, 6], "a"] = np.nan
    years.to_csv(tmp_path / "in.csv", index=False)
    code, _, err = run(
        *("complete", "in.csv", "out.csv", "--time", "year", "--method", "knn")
    )
    assert code == 0, err
    found = pd.read_csv(tmp_path / "out.csv")
    assert abs(found["a"][5] - 25) < 5
    assert (found["year"] == years["year"]).all()


def test_digits_with_leading_zeros_are_texts(tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    codes = ["01000", "20000"] * 10
    lines = [f"{code},{code[0]}.5" for code in codes]
    source.write_text("\n".join(["zip,x", *lines, ",2.5"]))
    assert main(["complete", str(source), str(target)]) in (0, None)
    assert target.read_text().splitlines()[-1] == "20000,2.5"
