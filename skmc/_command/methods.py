"""Completers by their names on the command line."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

import skmc
from skmc._command.failure import UsageError
from skmc._command.messages import Messages
from skmc.completers import COMPLETERS, methods, name_of, title_of

if TYPE_CHECKING:
    from skmc.base import BaseCompleter

OBSERVED_SHARE = 0.8  # of the cells, in estimates of time

# scikit-learn's imputer, which is often better than ours on narrow tables.
IMPUTER = "iterative-imputer"


# Names of classes, so that parsing arguments imports none of them.
METHODS = dict(sorted((name_of(title), title) for title in methods()))


def class_of(name: str) -> type[BaseCompleter]:
    return getattr(skmc, METHODS[name])


def refuse_draws(names: str, option: str) -> NoReturn:
    """Say which methods have draws of the missing cells."""
    have = [name for name in METHODS if hasattr(class_of(name), "sample")]
    raise UsageError(
        f"{option} {names}: there are no draws; methods with draws: {', '.join(have)}"
    )


def method(text: str) -> str:
    """Find the method that ``text`` names; class names are accepted, too."""
    try:
        return name_of(title_of(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def method_list(text: str) -> list[str]:
    if text == "all":
        return [*METHODS, IMPUTER]
    names = (name if name == IMPUTER else method(name) for name in text.split(","))
    return list(dict.fromkeys(names))


def setting(text: str) -> tuple[str, Any]:
    """Parse ``name=value``; a value that is not a Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def make(name: str, settings: dict[str, Any], seed: int, device: str) -> BaseCompleter:
    """Make a completer and check its hyper-parameters."""
    from skmc.linalg import resolve_device

    completer = class_of(name)()
    known = completer.get_params()
    if "max_time" in settings and "max_time" not in known:
        raise UsageError(
            f"{name} does not iterate and has no time limit; leave --time-limit out"
        )
    for parameter in settings:
        if parameter not in known:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(known)}"
            )
    for parameter, value in (("add_indicator", False), ("keep_empty_features", True)):
        if bool(settings.get(parameter, value)) is not value:
            raise UsageError(
                f"--set {parameter}={settings[parameter]} would change the columns of "
                "the file; leave it out"
            )
    common: dict[str, Any] = {"random_state": seed, "device": device}
    chosen = {k: v for k, v in common.items() if k in known} | settings
    completer.set_params(**chosen)
    try:
        completer._validate_params()
        if "device" in known:
            resolve_device(chosen["device"])
    except ValueError as error:
        raise UsageError(str(error)) from error
    return completer


def shape(text: str) -> tuple[int, int]:
    """Parse ``ROWSxCOLUMNS``."""
    rows, _, cols = text.lower().replace(" ", "").partition("x")
    if not (rows.isdigit() and cols.isdigit() and int(rows) and int(cols)):
        raise argparse.ArgumentTypeError(f"{text!r} is not ROWSxCOLUMNS, as in 1000x20")
    return int(rows), int(cols)


def print_times(names: list[str], n_rows: int, n_cols: int) -> None:
    """Print the times of fits of a matrix of this shape, the shortest first."""
    from skmc.completers import Size

    size = Size(n_rows, n_cols, int(OBSERVED_SHARE * n_rows * n_cols))
    costs = {name: getattr(class_of(name), "cost", None) for name in names}
    times = {name: cost(size) for name, cost in costs.items() if cost}
    wide = max(map(len, names))
    for name in sorted(times, key=lambda name: times[name]):
        print(f"{name:{wide}}  {duration(times[name])}")
    for name in names:
        if name not in times:
            limited = "1 min at most (--time-limit)" if name == "auto" else "unknown"
            print(f"{name:{wide}}  {limited}")


def duration(seconds: float) -> str:
    """Describe a duration to one digit.

    >>> [duration(s) for s in (0.02, 3.4, 58, 8000, 1e6, 1e9)]
    ['less than 1 s', '3 s', '1 min', '2 h', '10 days', 'years']
    """
    if seconds < 1:
        return "less than 1 s"
    for unit, length, most in (
        ("s", 1, 60),
        ("min", 60, 60),
        ("h", 3600, 48),
        ("days", 86400, 365),
    ):
        rounded = float(f"{seconds / length:.1g}")
        if rounded < most:
            return f"{rounded:.0f} {unit}"
    return "years"


def as_text(docstring: str) -> str:
    """Leave out displayed formulas and the marks of reStructuredText.

    >>> as_text("Rows of `X` have the mean :math:`x_{i}`, see ``fit``.")
    'Rows of X have the mean x_i, see fit.'
    """
    block = r"^( *)\.\. math::.*?(?=^\1\S|\Z)"
    hint = r"\1    (formula, see the documentation)\n\n"
    shown = re.sub(block, hint, docstring, flags=re.M | re.S)
    shown = re.sub(":math:" + r"`([^`]*)`", lambda m: _plain(m[1]), shown)
    return re.sub(r"`+([^`]+)`+", r"\1", shown)


def _plain(latex: str) -> str:
    return re.sub(r"[\\{}]", "", latex)


def run(options: argparse.Namespace, messages: Messages) -> None:
    """Print the list of methods, their times, or the documentation of one."""
    if options.shape:
        print_times([options.name] if options.name else [*METHODS], *options.shape)
        messages.note("rough times of one thread; a fifth of the cells is missing")
        return
    if options.name:
        cls = class_of(options.name)
        print(f"{cls.__name__}\n\n{as_text(inspect.getdoc(cls) or '')}")
        return
    wide = max(map(len, METHODS))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for name, title in METHODS.items():
        _, advice = COMPLETERS[title]
        print(
            textwrap.fill(
                advice,
                max(width, wide + 30),
                initial_indent=f"{name:{wide}}  ",
                subsequent_indent=" " * (wide + 2),
            )
        )
    if sys.stdout.isatty() and not messages.quiet:
        print("\n'skmc methods NAME' describes a method and its parameters.")
