"""Only `skmc.loop` iterates; the exceptions are listed here."""

from __future__ import annotations

import ast
from pathlib import Path

import skmc

ROOT = Path(skmc.__file__).parent
ROOMS = (
    "cells",
    "linalg",
    "inverses",
    "terms",
    "models",
    "solvers",
    "new_rows",
    "sensing",
)
# Files with a loop over numbers, or until something holds, and what it is for. A method
# of completion does not belong here: it is a solver, whose steps `solve` takes.
LOOPS = {
    "cells/like_observed.py": "numbers of decimals",
    "inverses/dsvd.py": "layers of an unrolled network; `DSVD.fit` trains it",
    "inverses/inverse_training.py": "trains `LDMinv`, without data or a matrix",
    "inverses/stiefel.py": "`minimize_on_stiefel`, for any function of a matrix",
    "inverses/unrolled.py": "powers of a polynomial",
    "linalg/conjugate_gradients.py": "a fixed number of steps, inside of one step",
    "linalg/diffusion.py": "a fixed number of sweeps: the start of a fit",
    "linalg/factor_gaussian.py": "blocks of rows",
    "linalg/patterns.py": "blocks of rows",
    "linalg/principal.py": "a fixed number of sweeps: the start of a fit",
    "linalg/row_equations.py": "blocks of rows",
    "linalg/shrinkage.py": "asks for more singular values, inside of one step",
    "linalg/svd.py": "Krylov iterations of a partial SVD, inside of one step",
    "models/patch_cnn.py": "rounds in which hidden cells are filled: a forward pass",
    "new_rows/clusters.py": "k-means, and one cluster of rows after the other",
    "new_rows/embedding.py": "a map of rows, at `transform`: no solver, no history",
    "new_rows/forward_pass.py": "a map of rows, at `transform`: no solver, no history",
    "new_rows/neighbors.py": "further neighbors, of ever fewer rows, or columns",
    "new_rows/rows.py": "blocks of rows",
    "sensing/rank_one.py": "a second round of refinement",
    "solvers/half_steps.py": "rounds that solve the last systems to rounding errors",
    "solvers/ncarl_systems.py": "blocks of rows",
    "solvers/nonsmooth.py": "trials of a step's length, inside of one step",
}


def counts_or_waits(node: ast.AST) -> bool:
    """``while ...`` or ``for ... in range(...)``."""
    if isinstance(node, ast.While):
        return True
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return False
    called = node.iter.func
    name = (
        called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    )
    return name in ("range", "count", "cycle", "repeat")


def test_iterations_belong_to_the_loop():
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if any(map(counts_or_waits, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == set(LOOPS)


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


def test_only_the_loop_takes_steps():
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        # A solver may be made of others.
        if path.relative_to(ROOT).parts[0] not in ("loop", "solvers")
        and steps_taken(ast.parse(path.read_text()))
    }
    assert not found, "call `solve` instead"
