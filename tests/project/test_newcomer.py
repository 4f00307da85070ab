"""The first use of the command, on typical files.

`.ci/run` runs this file once more against the built wheel, in a folder without sources.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from skmc import SVDCompleter
from skmc._command import main

Image = pytest.importorskip("PIL.Image", reason="pillow comes with the extra cli")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Complete a file of the given bytes; return exit code, messages and the result."""
    monkeypatch.chdir(tmp_path)

    def run(name, content, *options):
        (tmp_path / name).write_bytes(content)
        code = main(["complete", name, f"out-{name}", "--force", *options])
        out, err = capsys.readouterr()
        assert not out and "Traceback" not in err
        result = tmp_path / f"out-{name}"
        return code, err, result.read_bytes() if result.exists() else None

    return run


def lines(header, row, n=12):
    """A CSV file with ``row(k)`` as its lines."""
    return "\n".join([header, *map(row, range(n)), ""]).encode()


def holes(content, result):
    """The texts that the command wrote into the empty cells of a CSV file."""
    pairs = zip(content.splitlines(), result.splitlines(), strict=True)
    found = []
    for before, after in pairs:
        cells = zip(before.split(b","), after.split(b","), strict=True)
        for old, new in cells:
            assert old in (b"", new)  # all that was there is kept
            found += [new.decode()] * (not old)
    return found


QUICK = ("--method", "gaussian")


def test_decimal_commas_semicolons_and_latin_1(run):
    text = "Größe;Alter\r\n1,75;30\r\n1,80;\r\n;41\r\n1,65;25\r\n1,70;33\r\n"
    code, err, result = run("in.csv", text.encode("latin-1"), *QUICK)
    assert code == 0 and "2 of 10 cells completed" in err and "warning" not in err
    before, after = text.splitlines(), result.decode("latin-1").splitlines()
    assert [k for k in range(6) if before[k] != after[k]] == [2, 3]
    assert after[2].removeprefix("1,80;").isdigit()
    assert after[3].startswith("1,") and after[3].endswith(";41")


def test_one_column_that_may_have_another_separator(run):
    content = lines("a b", lambda k: f"{k % 4} {k % 3}")
    code, err, _ = run("in.csv", content, "--method", "mean")
    assert code == 0 and "only one column was found" in err and "--separator" in err


def test_numbers_in_the_first_line(run):
    code, err, _ = run("in.csv", b"1.5,2.5\n2,\n3,4\n4,5\n5,7\n", *QUICK)
    assert code == 0 and "the first line holds numbers" in err and "--no-header" in err


def test_identifiers_and_free_text_are_left_alone(run):
    content = lines(
        "Ticket,Note,Age,Fare",
        lambda k: (
            f"A{k},{'' if k == 7 else f'text {k}'},{20 + k if k != 3 else ''},{k}"
        ),
    )
    code, err, result = run("in.csv", content, *QUICK)
    assert code == 0 and "columns left unchanged because they cannot be inferred" in err
    assert "'Ticket'" in err and "'Note'" in err and "--index Ticket" in err
    note, age = sorted(holes(content, result))
    assert note == "" and age.isdigit()  # at the resolution of its column
    code, err, _ = run(
        "in.csv", content, *QUICK, "--index", "Ticket", "--index", "Note"
    )
    assert code == 0 and "warning" not in err


def test_dates_are_completed(run):
    content = lines(
        "day,value",
        lambda k: f"{'' if k == 4 else f'2024-01-{k + 1:02d}'},{k or ''}",
    )
    code, err, result = run("in.csv", content, *QUICK)
    assert code == 0 and "columns completed as dates: 'day'" in err
    assert "2024-01-05" in holes(content, result)


def test_a_column_without_a_cell_stays_empty(run):
    content = lines("a,b,c", lambda k: f"{k},,{3 * k if k != 2 else ''}")
    code, err, result = run("in.csv", content, *QUICK)
    assert code == 0 and "column 'b' has no observed cell and stays empty" in err
    assert sum(bool(text) for text in holes(content, result)) == 1


def test_a_number_that_marks_what_is_missing(run):
    content = lines("a,b", lambda k: f"{'1e30' if k == 2 else k},{k if k != 5 else ''}")
    code, err, _ = run("in.csv", content, *QUICK)
    assert code == 0 and "row 3 (line 4), column 'a'" in err and "--missing" in err
    code, err, result = run("in.csv", content, *QUICK, "--missing", "1e30")
    assert code == 0 and "warning" not in err and b"1e30" not in result


def test_a_repeated_number_far_from_all_others(run):
    content = lines("a,b", lambda k: f"{k},{-999 if k % 5 == 0 else k * k}")
    code, err, _ = run("in.csv", content, *QUICK)
    assert code == 0 and "-999 occurs 3 times and is far from" in err
    code, err, result = run("in.csv", content, *QUICK, "--missing", "-999")
    assert code == 0 and "warning" not in err and b"-999" not in result


def test_numbers_with_signs_and_mixed_commas(run):
    content = lines("rate,x", lambda k: f"{k} %,{k if k % 4 else ''}")
    code, err, _ = run("in.csv", content, *QUICK)
    assert code == 0 and "with a sign or unit such as %" in err
    assert "3 rows, the first is row 1, have no cell to infer others" in err
    content = lines("x,y", lambda k: f'"{k},5",{k}' if k % 2 else f"{k}.5,")
    code, err, _ = run("in.csv", content, *QUICK)
    assert code == 1 and "'1,5' (and 5 more) has a comma" in err


def test_the_separator_line_of_excel(run):
    content = b"sep=;\n" + lines("a;b", lambda k: f"{k};{k if k % 4 else ''}")
    code, err, result = run("in.csv", content, *QUICK)
    assert code == 0 and "3 of 24 cells" in err
    assert result.startswith(b"sep=;\na;b\n0;")


def test_words_that_differ_in_capitals_alone(run):
    content = lines("a,b", lambda k: f"{('yes', 'no', 'Yes', '')[k % 4]},{k}")
    code, err, _ = run("in.csv", content, *QUICK)
    assert code == 0 and "'Yes' and 'yes' count as different categories" in err


def test_a_spreadsheet(run):
    code, err, _ = run("in.xlsx", b"")
    assert code == 2 and "in.xlsx is a spreadsheet; use CSV" in err


def test_two_columns_with_one_name(run):
    content = lines("x,x,y", lambda k: f"{k},{2 * k if k != 4 else ''},{k * k}")
    code, err, result = run("in.csv", content, *QUICK)
    assert code == 0 and "1 of 36 cells" in err and result.startswith(b"x,x,y\n")
    assert holes(content, result)[0].isdigit()


def test_all_problems_of_a_file_with_their_remedies(run):
    content = lines("a,b", lambda k: ("?,1", "2,none", "3,3")[k % 3] if k < 3 else "1,")
    code, err, result = run("in.csv", content)
    assert code == 1 and result is None and "in.csv: 2 problems" in err
    for cure in ("--missing '?'", "--missing none", "--categorical a", "--index b"):
        assert cure in err


def test_an_empty_file_and_a_full_one(run):
    code, err, _ = run("in.csv", b"")
    assert code == 1 and "in.csv is empty" in err
    code, err, result = run("in.csv", b"a,b\n1,2\n3,4\n")
    assert code == 0 and "no cell is missing" in err and result == b"a,b\n1,2\n3,4\n"


def test_the_default_reports_its_choice(run):
    content = lines("x,y", lambda k: f"{k},{k * 2 if k % 7 else ''}", 40)
    code, err, _ = run("in.csv", content, "--time-limit", "2")
    assert code == 0 and "completed by auto" in err and "column means" in err


def test_a_mask_with_more_than_two_values(run, tmp_path):
    shades = np.add.outer(np.arange(24), np.arange(24)).astype(np.uint8) * 5
    Image.fromarray(np.dstack([shades] * 3)).save(tmp_path / "photo.png")
    mask = np.zeros((24, 24), np.uint8)
    mask[5], mask[9] = 255, 128
    Image.fromarray(mask).save(tmp_path / "mask.png")
    photo = (tmp_path / "photo.png").read_bytes()
    code, err, result = run("in.png", photo, "--mask", "mask.png")
    assert code == 1 and result is None
    assert (
        "mask.png is not black and white: it has 3 gray levels" in err
        and "--mask-threshold" in err
    )
    code, err, _ = run(
        "in.png", photo, "--mask", "mask.png", "--mask-threshold", "200", "-q"
    )
    assert code == 0 and not err
    restored = np.asarray(Image.open(tmp_path / "out-in.png"))
    Image.fromarray((mask < 200).astype(np.uint8) * 255).save(tmp_path / "mask.png")
    options = ("--mask", "mask.png", "--method", "mean")
    code, err, _ = run("in.png", photo, *options)
    assert code == 0 and "mask.png marks 96% of in.png as missing" in err
    code, err, _ = run("in.png", photo, *options, "--invert-mask")
    assert code == 0 and "warning" not in err
    assert (restored[mask < 200] == np.dstack([shades] * 3)[mask < 200]).all()


def test_a_matrix_that_is_too_large_names_other_methods():
    few = (np.ones(2), (np.arange(2), np.arange(2)))
    large = scipy.sparse.coo_array(few, shape=(10**6, 10**6))
    with pytest.raises(
        MemoryError, match=r"GiB; FactorizationCompleter.* keep it sparse"
    ):
        SVDCompleter().fit(large)
