"""The completers by the names that they have on a command line."""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import re
import shutil
import sys
import textwrap
from typing import Any

from skmc._command.failure import UsageError
from skmc._command.telling import Teller
from skmc.base import BaseCompleter, resolve_device
from skmc.checks import all_completers

# The README's column "use it for".
ADVICE = {
    "AIRCompleter": "pictures, drug-target matrices, grouped ratings, small tables",
    "AutoCompleter": "when you do not know: tries the others on held-out cells",
    "AutoencoderCompleter": "many rows that depend on a few things, not linearly",
    "BayesianFactorizationCompleter": (
        "ratings, when accuracy is worth the time; nothing to tune"
    ),
    "BiBNNCompleter": "a baseline of networks",
    "DMFCompleter": "matrices of low rank",
    "FactorizationCompleter": "ratings, new users",
    "IALMCompleter": "low rank without noise; nothing to tune",
    "KNNCompleter": "many similar rows",
    "LinkedFactorizationCompleter": (
        "floors, ceilings, saturating sensors: link shows what was found"
    ),
    "MeanCompleter": "what has to be beaten",
    "NCARLCompleter": "pictures with scattered holes, columns in groups",
    "NonlocalCompleter": "pictures with scattered holes, the most accurate",
    "NSRCompleter": "columns that bend each in its own way",
    "PatchCNNCompleter": "pictures, large holes too",
    "SNNCompleter": "low rank with or without noise, pictures; nothing to tune",
    "SoftImputeCompleter": "noise, dense or sparse",
    "SVDCompleter": "a quick low-rank baseline",
    "SVTCompleter": "low rank without noise, for large matrices of very low rank",
    "TNNRCompleter": "pictures, matrices of low rank",
}


def name_of(cls: type[BaseCompleter]) -> str:
    """``SoftImputeCompleter`` is ``soft-impute``.

    >>> from skmc import AIRCompleter, PatchCNNCompleter
    >>> name_of(AIRCompleter), name_of(PatchCNNCompleter)
    ('air', 'patch-cnn')
    """
    stem = cls.__name__.removesuffix("Completer")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", stem).lower()


def all_methods() -> dict[str, type[BaseCompleter]]:
    return dict(sorted((name_of(cls), cls) for cls in all_completers()))


def method(text: str) -> str:
    """The name that ``text`` means: "SoftImputeCompleter" and "softimpute", too."""
    plain = {name.replace("-", ""): name for name in all_methods()}
    wanted = re.sub(r"[-_\s]", "", text.lower()).removesuffix("completer")
    if wanted not in plain:
        near = difflib.get_close_matches(wanted, plain, 1)
        hint = f"did you mean {plain[near[0]]!r}? " if near else ""
        raise argparse.ArgumentTypeError(
            f"no method {text!r}; {hint}'skmc methods' lists them"
        )
    return plain[wanted]


def setting(text: str) -> tuple[str, Any]:
    """``name=value``; a value that is no Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def make(name: str, settings: dict[str, Any], seed: int, device: str) -> BaseCompleter:
    """A completer with these hyper-parameters, which are checked."""
    completer = all_methods()[name]()
    known = completer.get_params()
    for parameter in settings:
        if parameter not in known:
            raise UsageError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(known)}"
            )
    for parameter, value in (("add_indicator", False), ("keep_empty_features", True)):
        if bool(settings.get(parameter, value)) is not value:
            raise UsageError(
                f"--set {parameter}={settings[parameter]} would change which columns "
                "there are, and a file keeps its own; leave it out"
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


def show(options: argparse.Namespace, teller: Teller) -> None:
    """The list, or what one of them has to say."""
    if options.name:
        cls = all_methods()[options.name]
        print(f"{cls.__name__}\n\n{inspect.getdoc(cls)}")
        return
    methods = all_methods()
    wide = max(map(len, methods))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for name, cls in methods.items():
        said = ADVICE.get(cls.__name__) or (inspect.getdoc(cls) or "").split("\n")[0]
        print(
            textwrap.fill(
                said,
                max(width, wide + 30),
                initial_indent=f"{name:{wide}}  ",
                subsequent_indent=" " * (wide + 2),
            )
        )
    if sys.stdout.isatty() and not teller.quiet:
        print("\n'skmc methods NAME' describes one and its parameters.")
