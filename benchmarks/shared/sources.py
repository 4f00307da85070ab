"""The files of skmc that a benchmark depends on, and the digest of their code.

Imports are followed in the sources, also in the code of child processes; nothing is
imported. The door of a room (`__init__.py`) imports everything, so a name is looked for
behind it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINDS_ALL = "completer_classes"  # it imports all files of skmc/completers


def git(*arguments: str) -> str:
    """What a command of git prints; empty without it, and outside of a repository."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def path_of(module: str) -> Path | None:
    whole = ROOT.joinpath(*module.split("."))
    found = (whole.with_suffix(".py"), whole / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree, and of the programs in its strings."""
    for node in ast.walk(tree):
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            with contextlib.suppress(SyntaxError):
                if "import" in node.value and "skmc" in node.value:
                    yield from nodes(ast.parse(node.value))


@cache
def imports(path: Path) -> list[tuple[str, str]]:
    """(module, name) of ours for each import; "" stands for the whole module."""
    found: list[tuple[str, str]] = []
    for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            # `import skmc` serves for the version.
            found += [(a.name, "") for a in node.names if a.name != "skmc"]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    return [pair for pair in found if pair[0].split(".")[0] in ("benchmarks", "skmc")]


def defined_in(module: str, name: str) -> Path | None:
    """The file that an import reaches, behind the doors of rooms."""
    path = path_of(module)
    inner = path_of(f"{module}.{name}")
    if name and inner:
        return inner
    if path is None or path.name != "__init__.py":
        return path
    for source, known in imports(path):
        if known == name:
            return defined_in(source, name)
    for source, known in imports(path):
        found = defined_in(source, name) if known == "*" else None
        if found and found != path_of(source):
            return found
    return path


@cache
def dependencies(module: str) -> tuple[Path, ...]:
    """The files of skmc behind a benchmark, sorted."""
    left, seen = [path_of(module)], set()
    while left:
        path = left.pop()
        if path is None or path in seen:
            continue
        seen.add(path)
        for source, name in imports(path):
            left.append(defined_in(source, name))
            if name == FINDS_ALL:
                left += (ROOT / "skmc" / "completers").rglob("[!_]*.py")
    return tuple(sorted(path for path in seen if path.is_relative_to(ROOT / "skmc")))


def is_comment(node: object) -> bool:
    """Whether a statement is a string alone, as docstrings are."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def plain(node: object) -> object:
    """Nested lists that all versions of Python make of the same code."""
    if isinstance(node, list):
        return [plain(part) for part in node if not is_comment(part)]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, plain(value)) for name, value in ast.iter_fields(node))
    return [type(node).__name__, *(f for f in fields if f[1] not in (None, []))]


@cache
def code(text: str) -> str:
    """The digest of a file, without its docstrings, comments and layout."""
    return hashlib.sha256(repr(plain(ast.parse(text))).encode()).hexdigest()


def digest(module: str) -> str:
    """The digest of the files of skmc that a benchmark depends on."""
    parts = [
        f"{path.relative_to(ROOT).as_posix()} {code(path.read_text(encoding='utf-8'))}"
        for path in dependencies(module)
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def changed(module: str, commit: str) -> bool:
    """Whether the code behind a benchmark differs from that of a commit."""
    for path in dependencies(module):
        text = git("show", f"{commit}:{path.relative_to(ROOT).as_posix()}")
        if code(text) != code(path.read_text(encoding="utf-8")):
            return True
    return False
