"""Compressed tables, single arrays, bitmaps, and times that are hints."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from skmc._command import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in a folder; return the exit code and the messages."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(a) for a in arguments])
        return code, capsys.readouterr().err

    return run


TABLE = pd.DataFrame({"a": [1.5, 2.5, None, 4.5], "b": [1.0, None, 3.0, 4.0]})


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv.gz", ".CSV.GZ"])
def test_compressed_tables(run, tmp_path, suffix):
    separator = "\t" if suffix.startswith(".t") else ","
    TABLE.to_csv("in.csv", index=False, sep=separator)
    with gzip.open("in" + suffix, "wb") as file:
        file.write((tmp_path / "in.csv").read_bytes())
    assert run("complete", "in" + suffix, "out" + suffix, "--method", "mean")[0] == 0
    assert run("complete", "in.csv", "out.csv", "--method", "mean")[0] == 0
    plain = (tmp_path / "out.csv").read_bytes()
    assert gzip.decompress((tmp_path / ("out" + suffix)).read_bytes()) == plain
    draws = ("--draws", 2, "--method", "gaussian")
    assert run("complete", "in" + suffix, "d" + suffix, *draws)[0] == 0
    assert (tmp_path / f"d-2{suffix}").exists()
    (tmp_path / ("bad" + suffix)).write_bytes(plain)
    code, err = run("complete", "bad" + suffix, "x" + suffix)
    assert code == 1 and "is not compressed by gzip" in err
    assert run("plot", "in" + suffix)[0] == 0 and (tmp_path / "in-missing.png").exists()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_single_arrays(run, dtype):
    array = np.outer(np.arange(1.0, 9), np.arange(1.0, 7)).astype(dtype)
    holed = np.where(np.eye(8, 6) > 0, np.nan, array).astype(dtype)
    np.save("in.npy", holed)
    assert run("complete", "in.npy", "out.npy", "--method", "svd")[0] == 0
    completed = np.load("out.npy")
    assert completed.dtype == dtype and not np.isnan(completed).any()
    np.testing.assert_array_equal(completed[~np.isnan(holed)], array[~np.isnan(holed)])
    code, err = run("complete", "in.npy", "x.npy", "--intervals")
    assert code == 2 and "--intervals does not apply to in.npy" in err
    np.savez("z.npz", a=holed)
    (code, err), _ = run("complete", "z.npz", "y.npy"), None
    assert code == 2 and "must have the format" in err


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_bitmaps(run, mode):
    shape = (24, 20) if mode == "L" else (24, 20, 3)
    pixels = np.random.RandomState(0).randint(0, 255, shape).astype(np.uint8)
    Image.fromarray(pixels).save("in.bmp")
    mask = np.zeros((24, 20), np.uint8)
    mask[5:8] = 255
    Image.fromarray(mask).save("mask.bmp")
    parts = ("--mask", "mask.bmp", "--method", "biharmonic")
    assert run("complete", "in.bmp", "out.bmp", *parts)[0] == 0
    with Image.open("out.bmp") as picture:
        found = np.asarray(picture)
    assert found.shape == shape and (found[mask == 0] == pixels[mask == 0]).all()
    alpha = np.dstack(
        [pixels if mode == "RGB" else np.dstack([pixels] * 3), 255 - mask]
    )
    Image.fromarray(alpha).save("alpha.png")
    code, err = run("complete", "alpha.png", "x.bmp")
    assert code == 2 and "BMP has no transparency" in err


def hours(**more):
    values = np.sin(np.arange(40.0))
    values[7] = np.nan
    days = pd.date_range("2024-01-01", periods=40, freq="D").strftime("%Y-%m-%d")
    return pd.DataFrame(
        {"day": days, "load": values, "other": np.arange(40) % 7, **more}
    )


def test_a_hint_at_times(run):
    hours().to_csv("in.csv", index=False)
    code, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert code == 0 and "'day' has dates of equal steps" in err and "--time day" in err
    code, err = run("complete", "in.csv", "b.csv", "--time", "day", "--method", "mean")
    assert code == 0 and "equal steps" not in err
    hours().sample(frac=1, random_state=0).to_csv("shuffled.csv", index=False)
    code, err = run("complete", "shuffled.csv", "c.csv", "--method", "mean")
    assert code == 0 and "equal steps" not in err


@pytest.mark.parametrize("years", [False, True])
def test_a_row_without_a_time(run, years):
    table = hours()
    if years:
        table["day"] = pd.Series(range(1980, 2020), dtype=object)
    table.loc[3, "day"] = None
    table.to_csv("in.csv", index=False)
    code, err = run("complete", "in.csv", "out.csv", "--time", "day")
    assert code == 1
    assert "row 4 (line 5), column 'day': the time of this row is missing; fill" in err


def test_a_date_that_marks_missing_cells(run):
    table = hours()
    table.loc[11, "day"] = "9999-12-31"
    table.loc[12, "day"] = None
    table.to_csv("in.csv", index=False)
    code, err = run("complete", "in.csv", "out.csv", "--method", "mean")
    assert code == 0 and "row 12 (line 13), column 'day': 9999-12-31 is very far" in err
    given = ("--missing", "9999-12-31", "--force")
    code, err = run("complete", "in.csv", "out.csv", "--method", "mean", *given)
    assert code == 0 and "very far" not in err
