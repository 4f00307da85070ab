"""What ``import skmc`` loads, and the names that it offers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import skmc

ROOT = Path(skmc.__file__).parent


def run(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_names_are_imported_lazily():
    run(
        "import sys, skmc; slow = {'torch', 'sklearn', 'numpy'};"
        "assert skmc.__version__ and set(skmc.__all__) <= set(dir(skmc));"
        "assert 'patterns' in dir(skmc) and not slow & set(sys.modules);"
        "assert skmc.metrics.nmae and not hasattr(skmc, 'nothing');"
        "from skmc import *; assert AIRCompleter is skmc.AIRCompleter;"
        "assert slow <= set(sys.modules)"
    )


def test_importing_opens_no_device_and_nothing_optional():
    run(
        "from skmc import *; import sys, torch; assert not torch.cuda.is_initialized();"
        "bad = {'matplotlib', 'skimage', 'PIL', 'polars'} & set(sys.modules);"
        "assert not bad, bad"
    )


def test_type_checkers_find_all_exported_names():
    """They do not discover files, so each completer has a line."""
    seen = []
    for path in (ROOT / "__init__.py", ROOT / "completers" / "__init__.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("skmc."):
                names = [alias.name for alias in node.names]
                seen += [(node.module, name) for name in names]
    seen = [(module, name) for module, name in seen if name in skmc.__all__]
    assert sorted(name for _, name in seen) == skmc.__all__
    for module, name in seen:
        assert getattr(skmc, name) is getattr(sys.modules[module], name)
