"""Names that a Python module defines, read from its source without importing it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Given(NamedTuple):
    """One top-level name of a module.

    Attributes:
        imported_from: dotted name of its origin; None if it is defined here.
        members: methods, fields and attributes of a class.
    """

    imported_from: str | None = None
    members: frozenset[str] = frozenset()


@cache
def names_in(file: Path) -> dict[str, Given]:
    """Return every top-level name of a module. Raises `SyntaxError`."""
    return {
        name: given
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        for name, given in _given(node)
    }


def _given(node: ast.stmt) -> Iterator[tuple[str, Given]]:
    """Yield the names that a statement defines in its scope."""
    if isinstance(node, ast.ClassDef):
        yield node.name, Given(members=_members(node))
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name, Given()
    elif isinstance(node, ast.Import):
        yield from (((a.asname or a.name).partition(".")[0], Given(a.name)) for a in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Given(f"{node.module}.{alias.name}")
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from ((n.id, Given()) for n in ast.walk(target) if isinstance(n, ast.Name))
    elif isinstance(node, (ast.If, ast.Try, ast.With)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _given(inner)


def _members(node: ast.ClassDef) -> frozenset[str]:
    own = {name for inner in node.body for name, _ in _given(inner)}
    return frozenset(own | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)})
