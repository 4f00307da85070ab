"""Pictures of the missing and of the imputed cells of a file."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from skmc._command import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command beside a file; return the exit code and the messages."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.RandomState(0)
    table = pd.DataFrame(rng.randn(40, 1) + rng.randn(40, 2), columns=["a", "b"])
    table["kind"] = np.where(table["a"] > 0, "x", "y")
    table.mask(rng.uniform(size=table.shape) < 0.2).to_csv("in.csv", index=False)

    def run(*arguments):
        code = main([str(a) for a in arguments])
        return code, capsys.readouterr().err

    return run


def test_imputed_beside_observed_values(run, tmp_path):
    assert run("complete", "in.csv", "out.csv", "--method", "gaussian")[0] == 0
    code, err = run("plot", "in.csv", "--completed", "out.csv")
    assert code == 0 and "in-imputed.png: imputed and observed values of 3" in err
    with Image.open(tmp_path / "in-imputed.png") as picture:
        assert picture.width > 600
    draws = ("--draws", 2, "--method", "gaussian")
    assert run("complete", "in.csv", "out.csv", *draws)[0] == 0
    several = ("--completed", "out-1.csv", "--completed", "out-2.csv")
    assert run("plot", "in.csv", "draws.svg", *several)[0] == 0


def test_files_that_are_no_completion(run, tmp_path):
    (tmp_path / "other.csv").write_text("c,d\n1,2\n")
    (tmp_path / "few.csv").write_text("a,b,kind\n1,2,x\n")
    for name, message in (
        ("other.csv", "there is no column 'a', unlike in in.csv"),
        ("few.csv", "the number of rows is not that of in.csv"),
        ("in.csv", "no missing cell of in.csv is filled in it"),
    ):
        code, err = run("plot", "in.csv", "--completed", name)
        assert code == 2 and message in err


def test_the_report_shows_imputed_values(run, tmp_path):
    options = ("--methods", "mean", "--splits", 2, "--html", "report.html")
    assert run("compare", "in.csv", *options)[0] == 0
    page = (tmp_path / "report.html").read_text()
    titles = re.findall("<h2>(.*?)</h2>", page)
    assert titles[-1] == "Imputed and observed values: mean"
    assert page.count("data:image/png;base64") == 3


def test_options_may_stand_between_file_names(run, tmp_path):
    assert run("plot", "in.csv", "--index", "kind", "a.png")[0] == 0
    assert (
        run("plot", "--quiet", "in.csv", "--index", "kind", "b.png", "--force")[0] == 0
    )
    assert (tmp_path / "a.png").exists() and (tmp_path / "b.png").exists()
    parts = ("complete", "--seed", 1, "in.csv", "--method", "mean", "out.csv", "-q")
    assert run(*parts)[0] == 0
    assert run("plot", "in.csv", "--completed", "out.csv", "c.svg", "--force")[0] == 0
    with pytest.raises(SystemExit, match="2"):
        run("plot", "in.csv", "a.png", "--index", "kind", "b.png")
    with pytest.raises(SystemExit, match="2"):
        run("plot", "--unknown", "in.csv")
