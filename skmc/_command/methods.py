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
from skmc.completers._stacked import NAMED

if TYPE_CHECKING:
    from skmc.base import BaseCompleter


# scikit-learn's imputer, which is often better than ours on narrow tables.
IMPUTER = "iterative-imputer"


# Names instead of classes: parsing arguments must not import a completer.
METHODS = dict(sorted((name_of(title), title) for title in methods()))


def class_of(name: str) -> type[BaseCompleter]:
    return getattr(skmc, METHODS[name]) if name in METHODS else type(_variant(name))


def _variant(name: str) -> BaseCompleter:
    """Make a candidate of "auto", such as copula or trees-rounds."""
    from skmc.completers.auto import all_candidates

    return all_candidates()[name]


def refuse_draws(names: str, option: str) -> NoReturn:
    """Say which methods have draws of the missing cells."""
    have = [name for name in METHODS if hasattr(class_of(name), "sample")]
    raise UsageError(
        f"{option} {names}: there are no draws; methods with draws: {', '.join(have)}"
    )


def method(text: str) -> str:
    """Find the method that ``text`` names: a class, or a candidate of "auto"."""
    try:
        return name_of(title_of(text))
    except ValueError as error:
        if text in NAMED:
            return text
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

    completer = class_of(name)() if name in METHODS else _variant(name)
    params = completer.get_params()
    if "max_time" in settings and "max_time" not in params:
        raise UsageError(
            f"{name} does not iterate and has no time limit; leave --time-limit out"
        )
    for parameter in settings:
        if parameter not in params:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(params)}"
            )
    for parameter, value in (("add_indicator", False), ("keep_empty_features", True)):
        if bool(settings.get(parameter, value)) is not value:
            raise UsageError(
                f"--set {parameter}={settings[parameter]} would change the columns of "
                "the file; leave it out"
            )
    if "missing_values" in settings:
        raise UsageError(
            "--set missing_values: mark missing cells by --missing, NaN or a mask"
        )
    common: dict[str, Any] = {"random_state": seed, "device": device}
    chosen = {k: v for k, v in common.items() if k in params} | settings
    completer.set_params(**chosen)
    try:
        completer._validate_params()
        if "device" in params:
            resolve_device(chosen["device"])
    except ValueError as error:
        raise UsageError(str(error)) from error
    return completer


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
    """Print the list of methods, or the documentation of one."""
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
