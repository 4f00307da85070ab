"""The import law: completers -> solvers -> terms, models, linalg -> observed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skmc

ROOT = Path(skmc.__file__).parent
# What each part may import of skmc, besides itself.
BELOW = {
    "observed": set(),
    "sparse_observed": {"linalg"},
    "randomness": set(),
    "linalg": {"randomness"},
    "models": {"observed", "randomness", "linalg"},
    "terms": {"observed", "randomness", "linalg"},
    "solvers": {
        "observed",
        "sparse_observed",
        "randomness",
        "linalg",
        "models",
        "terms",
    },
    "solve": {"observed", "sparse_observed", "solvers"},
    "stop": {"observed", "solve"},
    "neighbors": {"observed"},
    "scaling": {"observed", "sparse_observed"},
    "folding": {"observed"},
    "forward_pass": set(),
    "embedding": {"observed"},
    "containers": set(),
    "sensing/operators": set(),
    "sensing/measured": {"observed", "sensing"},
}
CORE = set(BELOW)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "skmc":
                found.update(f"skmc.{alias.name}" for alias in node.names)
            else:
                found.add(node.module)
    return found


FILES = [path for path in ROOT.rglob("*.py") if path.name != "__main__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_import_law(path):
    relative = path.relative_to(ROOT)
    part = relative.with_suffix("").as_posix()
    if part not in CORE:
        part = relative.parts[0].removesuffix(".py")
    names = imports(path)
    ours = {name.split(".")[1] for name in names if name.startswith("skmc.")}
    if part in CORE:
        assert ours - {part} <= BELOW[part]
        assert not {name for name in names if name.split(".")[0] == "sklearn"}
    assert not {name for name in names if name.split(".")[0] in ("pandas", "polars")}


def test_importing_opens_no_device_and_nothing_optional():
    code = (
        "import skmc, sys, torch; assert not torch.cuda.is_initialized();"
        "bad = {'matplotlib', 'skimage', 'PIL', 'polars'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
