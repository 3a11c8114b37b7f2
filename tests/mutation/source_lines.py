"""Position of a line in its source file: statement, function, annotation."""

import ast
from collections.abc import Iterator
from typing import NamedTuple


class Statement(NamedTuple):
    """Lines that run together.

    Attributes:
        numbers: of the lines; of a compound statement only its head's.
        in_function: whether it runs when a function is called, and not on import.
    """

    numbers: range
    in_function: bool


class StatementLines:
    """The statements of a file, by line.

    Args:
        tree: the parsed file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._found: list[Statement] = []
        self._walk(tree.body, in_function=False)

    def _walk(self, body: list[ast.stmt], *, in_function: bool) -> None:
        for one in body:
            inner = list(_bodies(one))
            last = one.end_lineno or one.lineno
            if inner:
                last = max(one.lineno, min(part[0].lineno for part in inner) - 1)
            first = min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
            self._found.append(Statement(range(first, last + 1), in_function))
            inside = in_function or isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            for part in inner:
                self._walk(part, in_function=inside)

    def around(self, line: int) -> Statement:
        """The innermost statement of a line; the line alone where there is none."""
        fitting = [one for one in self._found if line in one.numbers]
        alone = Statement(range(line, line + 1), in_function=True)
        return min(fitting, key=lambda one: len(one.numbers), default=alone)


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if part := getattr(statement, name, None):
            yield part
    for name in ("handlers", "cases"):
        for one in getattr(statement, name, ()):
            yield one.body


class Span(NamedTuple):
    """Range of characters, end exclusive: lines from 1, columns from 0."""

    start: tuple[int, int]
    end: tuple[int, int]

    def holds(self, place: tuple[int, int]) -> bool:
        """Return whether a place is within."""
        return self.start <= place < self.end


def spans_without_effect(tree: ast.Module) -> list[Span]:
    """Return the ranges that serve only type checkers or guard against programming errors.

    Annotations, decorators, aliases of types, what only a type checker reads, the options of a
    class (`frozen`), and of `zip` (`strict`).
    """
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            found.append(node.annotation)
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                found.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.returns] if node.returns else []
            found += node.decorator_list
        elif isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"
        ):
            found += [keyword.value for keyword in node.keywords]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found += node.body
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_union(node.value):
            found.append(node)
    return [_span(node) for node in found]


def spans_of_functions(tree: ast.Module) -> list[Span]:
    """The bodies of functions: a number outside of them is a constant or a default."""
    return [
        _span(statement)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
    ]


def spans_of_heads(tree: ast.Module) -> list[Span]:
    """Return the ranges from functions' names to their bodies: arguments and defaults."""
    return [
        Span((node.lineno, node.col_offset), _span(node.body[0]).start)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _is_union(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)


def _span(node: ast.AST) -> Span:
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
