"""Who iterates: the loop takes the steps, and other iterations are listed here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import skmc

ROOT = Path(skmc.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# A room, or one module of a room, that iterates, and why that is not a fit's loop.
ITERATES = {
    "loop": "takes the steps of every fit",
    "linalg": "decompositions, inverses, descent over orthonormal matrices",
    "new_rows": "fits a new row to a finished model",
    "solvers/gibbs.py": "conjugate gradients inside one step",
    "solvers/nonsmooth.py": "a line search inside one step",
    "completers/patch_cnn.py": "tries patch sizes, each with a fit of its own",
}


def iterations(tree: ast.AST) -> list[int]:
    """Lines of ``for`` loops whose bound is a number of steps."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.For)
        and re.match(r"range\(", bound := ast.unparse(node.iter))
        and re.search(r"iter|steps|trials|settle|until", bound, re.IGNORECASE)
    ]


def steps_taken(tree: ast.AST) -> list[int]:
    """Lines that call ``something.step(data, state)``."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and len(node.args) == 2
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_loop_iterates_over_steps(path):
    name = path.relative_to(ROOT).as_posix()
    room = name.split("/")[0]
    tree = ast.parse(path.read_text())
    if not {name, room} & set(ITERATES):
        assert not iterations(tree), f"{name}: put the iteration into a solver's step"
    if room not in ("loop", "solvers"):  # a solver may be made of others
        assert not steps_taken(tree), f"{name}: call `solve`"


def test_the_list_names_what_iterates():
    for name in ITERATES:
        place = ROOT / name
        files = place.rglob("*.py") if place.is_dir() else [place]
        assert any(iterations(ast.parse(file.read_text())) for file in files), name
