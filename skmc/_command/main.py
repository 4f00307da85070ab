"""Arguments, and how a run ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import skmc
from skmc._command import compare, complete, methods, reproduce
from skmc._command.failure import UsageError, one_line
from skmc._command.telling import Teller, say
from skmc.model_selection import METRICS, PATTERNS

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code.

    Returns
    -------
    int
        0 if all is well, 1 if the data or a fit fail, 2 if the arguments make no sense,
        130 after an interrupt.

    Raises
    ------
    SystemExit
        With code 2, or 0 for ``--help``: by `argparse`.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # of a terminal without "±"
    parser = make_parser()
    options = parser.parse_args(arguments)
    teller = Teller(options.quiet)
    try:
        with teller.warnings_told():
            options.run(options, teller)
            sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except UsageError as error:
        say(f"error: {one_line(error)}")
        return USAGE
    except BrokenPipeError:  # of a reader that has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        say(f"error: {one_line(error)}")
        return FAILED
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skmc", description="Completes what is missing of tables and pictures."
    )
    parser.add_argument(
        "--version", action="version", version=f"skmc {skmc.__version__}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_complete(commands)
    _add_compare(commands)
    _add_methods(commands)
    _add_reproduce(commands)
    return parser


def _add_complete(commands: Any) -> None:
    parser = commands.add_parser(
        "complete",
        help="fill in what is missing of a file",
        description=(
            "Fill in what is missing of a table (CSV, TSV, Parquet), a matrix (NPZ) or "
            "a picture (PNG, JPEG). What is there stays as it is: the digits of a "
            "number, the order of columns, types. Columns of words are completed as "
            "categories; whole numbers are rounded; dates, columns in which nearly all "
            "words differ, and a first column without a name are left alone."
        ),
    )
    _add_source(parser)
    parser.add_argument("target", metavar="OUT", help="file of the same kind")
    parser.add_argument(
        "--method",
        type=methods.method,
        default="air",
        help="see 'skmc methods' (default: %(default)s)",
    )
    parser.add_argument(
        "--set",
        type=methods.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyper-parameter of the method, see 'skmc methods METHOD'",
    )
    _add_fit(parser)
    _add_force(parser, "overwrite OUT")
    _add_quiet(parser)
    parser.set_defaults(run=complete.run)


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="which method is best for a file, by cells hidden from it",
        description=(
            "Hide a fifth of the known cells, let each method complete them, and show "
            "how far off it is. Of tables the numbers are compared, in deviations of "
            "their columns; of pictures the mean of the channels."
        ),
    )
    _add_source(parser)
    parser.add_argument(
        "--methods",
        type=compare.method_list,
        default=None,
        metavar="NAME,NAME...",
        help="or 'all'; also iterative-imputer, scikit-learn's (default: those that "
        "are quick)",
    )
    parser.add_argument(
        "--pattern",
        choices=PATTERNS,
        default="mcar",
        help="which cells to hide: at random, a rectangle, whole rows, more where "
        "another column (mar) or the cell itself (mnar) is large (default: mcar)",
    )
    parser.add_argument(
        "--metric", choices=tuple(METRICS), default="nmae", help="(default: nmae)"
    )
    parser.add_argument(
        "--splits",
        type=_positive,
        default=5,
        metavar="N",
        help="times that cells are hidden (default: 5)",
    )
    parser.add_argument("--html", metavar="FILE", help="write a report, too")
    _add_fit(parser)
    _add_force(parser, "overwrite the report")
    _add_quiet(parser)
    parser.set_defaults(run=compare.run)


def _add_methods(commands: Any) -> None:
    parser = commands.add_parser(
        "methods", help="list the methods, or describe one and its parameters"
    )
    parser.add_argument("name", type=methods.method, nargs="?", metavar="METHOD")
    _add_quiet(parser)
    parser.set_defaults(run=methods.show)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="compute a paper's tables and figures again",
        description=(
            "Compute tables and figures of the papers again, beside the papers' own. "
            "Needs a copy of skmc's repository; without NAME it lists what there is."
        ),
    )
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="arguments of some NAMEs"
    )
    parser.add_argument(
        "--out",
        default="reproduction",
        metavar="FOLDER",
        help="where pages and pictures go (default: %(default)s)",
    )
    _add_force(parser, "go on in a folder that has files, and overwrite its pages")
    _add_quiet(parser)
    parser.set_defaults(run=reproduce.run)


def _add_source(parser: argparse.ArgumentParser) -> None:
    """What is read, and how to read it."""
    parser.add_argument(
        "source",
        metavar="IN",
        help="file whose name ends in .csv, .tsv, .txt, .parquet, .npz, .png, .jpg or "
        ".jpeg; '-' is CSV from a pipe",
    )
    tables = parser.add_argument_group("tables")
    tables.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="COLUMN",
        help="leave this column as it is and learn nothing from it; may be repeated",
    )
    tables.add_argument(
        "--categorical",
        action="append",
        default=[],
        metavar="COLUMN",
        help="the numbers in this column are names; may be repeated",
    )
    tables.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="means that a cell is missing, as nothing, NA, NaN, NULL and the like do; "
        "may be repeated (CSV)",
    )
    tables.add_argument(
        "--separator",
        type=_separator,
        metavar="CHARACTER",
        help="between cells (CSV; default: comma, semicolon, tab or |, by the first "
        "line)",
    )
    tables.add_argument(
        "--no-header",
        action="store_true",
        help="the first line is a row; columns are named 1, 2, ... (CSV)",
    )
    tables.add_argument(
        "--array", metavar="NAME", help="which array, if there are several (NPZ)"
    )
    pictures = parser.add_argument_group("pictures, unless missing is transparent")
    marks = pictures.add_mutually_exclusive_group()
    marks.add_argument(
        "--mask", metavar="FILE", help="picture that is white where pixels are missing"
    )
    marks.add_argument(
        "--missing-colour",
        "--missing-color",
        metavar="COLOUR",
        help="missing pixels have this colour: red, '#ff0000', ...",
    )
    pictures.add_argument(
        "--invert-mask", action="store_true", help="missing is black in the mask"
    )
    pictures.add_argument(
        "--tolerance",
        type=_positive,
        metavar="N",
        help="how far a channel may be from the colour's, of 255 (default: 0, of JPEG "
        "48)",
    )


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed",
        type=_natural,
        default=0,
        metavar="N",
        help="of random numbers (default: 0)",
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda, ... (default: cuda if there is one)",
    )


def _add_force(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--force", action="store_true", help=what)


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="say nothing but errors"
    )


def _natural(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 2**32 - 1")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _separator(text: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError("it must be one character")
    return text


_natural.__name__ = _positive.__name__ = "number"  # argparse's "invalid number value"
