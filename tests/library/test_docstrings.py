"""Parameters of constructors are documented; numpydoc's tool sees the other names."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import skmc
from skmc import sensing
from skmc.checks import all_completers


def public_names():
    """Classes and functions in the ``__all__`` of a room."""
    rooms = [info.name for info in pkgutil.iter_modules(skmc.__path__, "skmc.")]
    for room in ["skmc", *(room for room in rooms if "._" not in room)]:
        module = import_module(room)
        for name in getattr(module, "__all__", ()):
            yield getattr(module, name)


def public_classes():
    """Those that have a constructor of their own."""
    for cls in public_names():
        if inspect.isclass(cls) and "__init__" in vars(cls):
            yield cls


def public_functions():
    """Functions, and the methods that a class shows on its page."""
    for member in public_names():
        if inspect.isfunction(member):
            yield inspect.unwrap(member)
        elif inspect.isclass(member):
            for name, method in inspect.getmembers(member, inspect.isroutine):
                function = inspect.unwrap(getattr(method, "__func__", method))
                ours = str(getattr(function, "__module__", "")).startswith("skmc")
                if ours and not name.startswith("_") and function.__doc__:
                    yield function


def test_every_argument_is_documented():
    for function in public_functions():
        known = {
            name.lstrip("*")
            for entry in FunctionDoc(function)["Parameters"]
            for name in entry.name.split(", ")
        }
        missing = {*inspect.signature(function).parameters} - {"self", "cls"} - known
        assert not missing, f"{function.__qualname__}: {missing}"


def documented(cls):
    """Descriptions of the parameters; several may share one."""
    found = ClassDoc(cls)["Parameters"]
    return {name: " ".join(p.desc) for p in found for name in p.name.split(", ")}


@pytest.mark.parametrize(
    "cls", sorted(set(public_classes()), key=str), ids=lambda cls: cls.__name__
)
def test_every_parameter_is_documented_and_no_other(cls):
    known = inspect.signature(cls).parameters
    names = {name.lstrip("*"): text for name, text in documented(cls).items()}
    assert names.keys() == known.keys()
    assert all(names.values())
    assert not any("{{" in p.type for p in ClassDoc(cls)["Parameters"])


@pytest.mark.parametrize("cls", all_completers())
def test_every_method_is_documented(cls):
    names = [name for name, value in inspect.getmembers(cls) if callable(value)]
    public = [name for name in names if not name.startswith("_")]
    assert not [name for name in public if not inspect.getdoc(getattr(cls, name))]


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
    text = documented(cls)[name]
    found = re.search(r"Values to try: ([\d., e-]+) \(relative to ([^)]+)\)", text)
    assert found, text
    values = np.array([float(value) for value in found[1].split(", ")])
    steps = np.diff(np.log10(values))
    assert len(values) >= 3 and values[-1] >= 10 * values[0] > 0
    assert (steps > 0).all() and steps.max() < 1.4 * steps.min(), "log-spaced"
    if isinstance(default, float):
        assert values[0] <= default <= values[-1]
