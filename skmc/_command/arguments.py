"""Parsing of arguments, without slow imports."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import skmc
from skmc._command import methods, values

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
# The patterns and metrics of `skmc.model_selection`, as reports describe them.
PATTERNS = {
    "mcar": "at random",
    "patch": "in a rectangle",
    "rows": "as whole rows",
    "mar": "more often where another column is large",
    "mnar": "more often where they are large",
    "like_missing": "like the missing cells",
}
# Options that say how a file is read, None by default.
READING = "separator", "array", "mask", "missing_color", "mask_threshold", "tolerance"
METRICS = {
    "nmae": "the mean absolute error over the range of all values",
    "mae": "the mean absolute error",
    "rmse": "the root mean squared error",
    "relative_error": "the norm of the error over the norm of the hidden cells",
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse arguments; the value of ``--missing -999,?`` is not another option."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for k in reversed(range(len(given) - 1)):
        if given[k] == "--missing" and re.match(r"-\d", given[k + 1]):
            given[k : k + 2] = [f"--missing={given[k + 1]}"]
    return make_parser().parse_args(given)


class Parser(argparse.ArgumentParser):
    """The parser of a subcommand, whose options may stand between file names."""

    _mixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._mixed:  # the other method calls this one
            return super().parse_known_args(args, namespace)
        self._mixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixed = False


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skmc", description="Complete tables, matrices and pictures."
    )
    parser.add_argument(
        "--version", action="version", version=f"skmc {skmc.__version__}"
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    _add_complete(commands)
    _add_compare(commands)
    _add_plot(commands)
    _add_methods(commands)
    for command in commands.choices.values():
        command.add_argument(
            "--quiet", "-q", action="store_true", help="print only errors"
        )
    return parser


def _add_complete(commands: Commands) -> None:
    parser = commands.add_parser(
        "complete",
        help="fill the missing cells of a file",
        description=(
            "Fill the missing cells of a table (CSV, TSV, Parquet), a matrix (NPZ, "
            "NPY) or a picture (PNG, JPEG, TIFF, BMP). Everything else stays as it is: "
            "the digits of numbers, types, the order of columns. Answers have the "
            "decimals and the range of the observed numbers of their column. Dates are "
            "completed as dates, and columns of words as categories if half of their "
            "cells hold a word that is common in the column. Other text, such as "
            "names, and a first column without a name stay unchanged."
        ),
    )
    _add_source(parser)
    parser.add_argument("target", metavar="OUT", help="file of the same format")
    parser.add_argument(
        "--method",
        type=methods.method,
        help="a method that 'skmc methods' or a comparison lists (default: auto, which "
        "compares "
        "methods on hidden cells; nonlocal for pictures)",
    )
    parser.add_argument(
        "--time-limit",
        type=values.seconds,
        metavar="SECONDS",
        help="limit the time of the fit, which then ends with the best so far "
        "(default: none)",
    )
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        help="complete the columns of numbers over the times in this column, such as "
        "dates or years; --method then completes rows, days and slots of days "
        "(default: gaussian)",
    )
    parser.add_argument(
        "--unit",
        metavar="COLUMN",
        help="with --time: rows with different values in this column, such as shops, "
        "are different series",
    )
    several = parser.add_mutually_exclusive_group()
    several.add_argument(
        "--draws",
        type=values.positive,
        metavar="N",
        help="write N files, in which missing cells are random draws from the "
        "distribution that the method has found: for OUT out.csv, out-1.csv, out-2.csv "
        "and so on (default method: chained)",
    )
    several.add_argument(
        "--intervals",
        type=values.share,
        nargs="?",
        const=0.9,
        metavar="SHARE",
        help="also write the lower and upper end of an interval that contains the true "
        "number in this share of the cells (default: 0.9), in two columns beside each "
        "filled column of numbers; in an NPZ file, in two further arrays",
    )
    parser.add_argument(
        "--set",
        type=methods.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter that 'skmc methods METHOD' describes; may be repeated",
    )
    _add_fit(parser)
    _add_force(parser, "overwrite OUT")


def _add_compare(commands: Commands) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare methods on hidden cells of a file",
        description=(
            "Hide a fifth of the observed cells, complete them with each method, and "
            "show the errors. Pictures are compared on the mean of their channels."
        ),
    )
    _add_source(parser)
    parser.add_argument(
        "--methods",
        type=methods.method_list,
        metavar="NAME,NAME...",
        help="methods to compare, or 'all'; iterative-imputer is scikit-learn's "
        "(default: those that 'complete' compares within a minute)",
    )
    parser.add_argument(
        "--pattern",
        choices=PATTERNS,
        default="mcar",
        help="which cells to hide: at random (mcar), in a rectangle, in whole rows, or "
        "more often where another column (mar) or the cell itself (mnar) is large, or "
        "like the missing cells (like_missing) (default: mcar)",
    )
    parser.add_argument(
        "--metric",
        choices=METRICS,
        help="error to compare by (default: nmae)",
    )
    parser.add_argument(
        "--draws",
        type=values.positive,
        metavar="N",
        help="compare N random draws of each method that has draws, by their CRPS "
        "(continuous ranked probability score), which also judges the spread, instead "
        "of completions by --metric",
    )
    parser.add_argument(
        "--splits",
        type=values.positive,
        default=5,
        metavar="N",
        help="how many times cells are hidden (default: 5)",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also write a report to this file"
    )
    _add_fit(parser)
    _add_force(parser, "overwrite the report")


def _add_plot(commands: Commands) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw which cells of a table are missing, or imputed beside observed "
        "values",
        description=(
            "Draw which cells of a table are missing, by row and column. With "
            "--completed, draw the imputed values of each column beside the observed "
            "ones."
        ),
    )
    _add_source(parser)
    parser.add_argument(
        "target",
        metavar="OUT",
        nargs="?",
        help="PNG, SVG or PDF file (default: IN's name with -missing.png, or with "
        "-imputed.png)",
    )
    parser.add_argument(
        "--completed",
        metavar="FILE",
        action="append",
        default=[],
        help="the file that 'skmc complete' has made of IN; repeat it for draws",
    )
    _add_force(parser, "overwrite OUT")


def _add_methods(commands: Commands) -> None:
    parser = commands.add_parser(
        "methods", help="list the methods, or describe one with its parameters"
    )
    parser.add_argument("name", type=methods.method, nargs="?", metavar="METHOD")


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add the input file and the options for reading it."""
    parser.add_argument(
        "source",
        metavar="IN",
        help="file whose name ends in .csv, .tsv, .txt, .csv.gz, .parquet, .npz, .npy, "
        ".png, .jpg, .jpeg, .tif, .tiff or .bmp; '-' reads CSV from a pipe",
    )
    tables = parser.add_argument_group("tables")
    repeated = partial(tables.add_argument, action="append", default=[])
    repeated(
        "--index",
        metavar="COLUMN",
        help="keep this column unchanged and do not learn from it; may be repeated",
    )
    repeated(
        "--categorical",
        metavar="COLUMN",
        help="treat the numbers of this column as names; may be repeated",
    )
    repeated(
        "--ordinal",
        type=values.levels,
        metavar="COLUMN=LOW,...,HIGH",
        help="ordered levels of this column, the lowest first; may be repeated",
    )
    repeated(
        "--missing",
        type=values.words,
        metavar="WORD,WORD...",
        help="words or numbers that mark missing cells, besides NA, NaN, NULL and the "
        "like, as in --missing -999,?; quotes keep a comma: --missing '\"a,b\"'; may "
        "be repeated (CSV)",
    )
    tables.add_argument(
        "--separator",
        type=values.separator,
        metavar="CHARACTER",
        help="separator of cells (CSV; default: comma, semicolon, tab or |, inferred "
        "from the first line)",
    )
    tables.add_argument(
        "--no-header",
        action="store_true",
        help="the first line is a row, and columns are named 1, 2, ... (CSV)",
    )
    tables.add_argument(
        "--array", metavar="NAME", help="which of several arrays to complete (NPZ)"
    )
    pictures = parser.add_argument_group("pictures without transparency")
    marks = pictures.add_mutually_exclusive_group()
    marks.add_argument(
        "--mask", metavar="FILE", help="picture that is white where pixels are missing"
    )
    marks.add_argument(
        "--missing-color",
        "--missing-colour",
        metavar="COLOR",
        help="color of missing pixels: red, '#ff0000', ...",
    )
    pictures.add_argument(
        "--invert-mask",
        action="store_true",
        help="the mask is black where pixels are missing",
    )
    pictures.add_argument(
        "--mask-threshold",
        type=values.natural,
        metavar="N",
        help="values of the mask above N, of 255, are white; needed if it has more "
        "than two",
    )
    pictures.add_argument(
        "--tolerance",
        type=values.positive,
        metavar="N",
        help="how far a channel of a missing pixel may be from the color, of 255 "
        "(default: 0; for JPEG 48)",
    )


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed",
        type=values.natural,
        default=0,
        metavar="N",
        help="seed of the random numbers (default: 0)",
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda, ... (default: cuda if available)",
    )


def _add_force(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--force", action="store_true", help=what)


def repeated(options: argparse.Namespace) -> Iterator[str]:
    """List the options that say how a file is read and fitted, as they were given."""
    for name in ("index", "categorical"):
        yield from (f"--{name}={column}" for column in getattr(options, name))
    for column, levels in options.ordinal:
        yield f"--ordinal={column}={values.listed(levels)}"
    yield from (f"--missing={values.listed(words)}" for words in options.missing)
    usual = {"seed": 0, "device": "auto", "no_header": False, "invert_mask": False}
    for name in (*READING, *usual):
        value = getattr(options, name)
        if value != usual.get(name):
            option = f"--{name.replace('_', '-')}"
            yield option if value is True else f"{option}={value}"
