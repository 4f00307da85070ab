"""Every public name has a docstring, in numpydoc's form."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
from functools import cached_property

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

import skmc
from skmc import sensing
from skmc.checks import all_completers

IGNORED = {
    # Sections that are there where there is something to say.
    "ES01",  # extended summary
    "EX01",  # examples
    "SA01",  # see also
    # The type says what the summary leaves open, as "Tensor of shape (k,)" does.
    "RT03",  # description of what is returned
    # Looks for verbs in the third person, and finds plurals: "Rows that ..."
    "SS05",  # infinitive at the beginning
}


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(skmc.__path__, "skmc.")]
    return [name for name in found if not any(p[0] == "_" for p in name.split("."))]


def is_own(member, module: str) -> bool:
    kind = inspect.isclass(member) or inspect.isfunction(member)
    return kind and member.__module__ == module


def public(module: str):
    """Dotted names and objects that a module defines, members of classes included."""
    for name, member in vars(importlib.import_module(module)).items():
        if name.startswith("_") or not is_own(member, module):
            continue
        yield f"{module}.{name}", member
        if inspect.isclass(member):
            yield from methods(f"{module}.{name}", member)


def methods(path: str, cls: type):
    kinds = (classmethod, staticmethod, property, cached_property)
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if not (inspect.isfunction(member) or isinstance(member, kinds)):
            continue
        # What overrides a method that is documented needs no words of its own.
        others = [vars(base).get(name) for base in cls.__mro__[1:]]
        if member.__doc__ or not any(other.__doc__ for other in others if other):
            yield f"{path}.{name}", member


def has_own_signature(member) -> bool:
    """Whether the signature of a class is written in it, and means something."""
    if not inspect.isclass(member):
        return True
    made = getattr(member, "_is_protocol", False) or issubclass(member, enum.Enum)
    return (not made and "__init__" in vars(member)) or hasattr(member, "_fields")


def faults(path: str, member) -> list[str]:
    ignored = IGNORED if has_own_signature(member) else {*IGNORED, "PR01"}
    found = validate(path)["errors"]
    return [f"{path}: {code} {text}" for code, text in found if code not in ignored]


def test_faults_are_found():
    def bad(x):
        """does something"""

    module = importlib.import_module(__name__)
    module.bad = bad
    codes = {line.split()[1] for line in faults(f"{__name__}.bad", bad)}
    assert {"SS02", "SS03", "PR01"} <= codes
    assert {path for path, _ in public("skmc.loop.stop")} == {
        "skmc.loop.stop.HeldOut",
        "skmc.loop.stop.HeldOut.select",
    }


@pytest.mark.parametrize("module", modules())
def test_docstrings(module):
    doc = importlib.import_module(module).__doc__
    assert doc and doc.split("\n\n")[0].rstrip()[-1] in ".?", f"{module} has no summary"
    found = [fault for path, member in public(module) for fault in faults(path, member)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("cls", all_completers(), ids=lambda cls: cls.__name__)
def test_completers_say_how_their_memory_grows(cls):
    notes = cls.__doc__.split("Notes\n")[-1]
    tries_others = cls.__name__ == "AutoCompleter"
    assert tries_others or "emory" in notes


def weights():
    """Classes, and the weights in their objectives."""
    regressors = [getattr(sensing, name) for name in sensing.__all__]
    for cls in [*all_completers(), *filter(inspect.isclass, regressors)]:
        for name, parameter in inspect.signature(cls).parameters.items():
            if name.startswith("lambda_") or name in ("alpha", "beta", "tau"):
                yield pytest.param(
                    cls, name, parameter.default, id=f"{cls.__name__}.{name}"
                )


@pytest.mark.parametrize(("cls", "name", "default"), [*weights()])
def test_weights_say_which_values_to_try(cls, name, default):
    """Log-spaced ones around the default, and what they are relative to."""
    entries = {
        n: p.desc for p in ClassDoc(cls)["Parameters"] for n in p.name.split(", ")
    }
    text = " ".join(entries[name])
    found = re.search(r"Values to try: ([\d., e-]+) \(relative to ([^)]+)\)", text)
    assert found, text
    values = np.array([float(value) for value in found[1].split(", ")])
    steps = np.diff(np.log10(values))
    assert len(values) >= 3 and values[-1] >= 10 * values[0] > 0
    assert (steps > 0).all() and steps.max() < 1.4 * steps.min(), "log-spaced"
    if isinstance(default, float):
        assert values[0] <= default <= values[-1]
