"""The mutants of a room, and those that prove nothing left out.

Left out are

- annotations, aliases of types, decorators, and what only a type checker reads: a fault there stops
  the import, or changes nothing;
- options of classes (`frozen=True`) and of `zip` (`strict=True`): they stop faults of programmers,
  which are not there;
- numbers outside of functions: they are bounds in seconds, bytes and counts, and defaults, which
  tests must not pin down;
- what is between the name of a function and its body: its `*` and `/` are no arithmetic, they keep
  programmers from faults, too;
- `is` for `==` and the reverse: whether equal values are one object is an accident of the
  interpreter;
- bits and shifts for arithmetic and the reverse: floats and texts refuse them, so that any test
  that runs the line notices, whatever it asserts.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutation.source_lines import spans_of_functions, spans_of_heads, spans_without_effect

_LEFT_OUT: Final = re.compile(
    r"RemoveDecorator|_(Eq|NotEq)_(Is|IsNot)$|_(Is|IsNot)_(Eq|NotEq|Lt|LtE|Gt|GtE)$"
    r"|_(Lt|LtE|Gt|GtE)_(Is|IsNot)$"
)
_BITS: Final = frozenset(("RShift", "LShift", "BitOr", "BitAnd", "BitXor"))


class Mutant(NamedTuple):
    """A fault: which operator, where.

    Attributes:
        file: from the root.
        operator: Cosmic Ray's name.
        occurrence: which of the operator's places in the file.
        line: number of the line, from 1.
        column: from 0.
        text: the line as it was.
    """

    file: str
    operator: str
    occurrence: int
    line: int
    column: int
    text: str


def means_something(operator: str) -> bool:
    """Return whether an operator makes faults that a test should notice for what it asserts."""
    _, of_two, kinds = operator.partition("BinaryOperator_")
    if of_two:
        before, after = kinds.split("_")
        return (before in _BITS) == (after in _BITS)
    return not _LEFT_OUT.search(operator)


def mutants_of(tree: Path, code: str) -> Iterator[Mutant]:
    """Every mutant of a folder.

    Args:
        tree: the root.
        code: the folder, from the root.
    """
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    kinds = {
        name: plugins.get_operator(name)
        for name in sorted(plugins.operator_names())
        if means_something(name)
    }
    operators = {name: kind() for name, kind in kinds.items() if not kind.arguments()}
    for path in sorted((tree / code).rglob("*.py")):
        text = path.read_text()
        parsed, lines = ast.parse(text), text.splitlines()
        without_effect, functions = spans_without_effect(parsed), spans_of_functions(parsed)
        heads = spans_of_heads(parsed)
        nodes = list(ast_nodes(get_ast_from_path(path)))
        for name, operator in operators.items():
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            for occurrence, (start, _) in enumerate(places):
                line, column = start
                if any(span.holds(start) for span in without_effect):
                    continue
                if "BinaryOperator" in name and any(head.holds(start) for head in heads):
                    continue
                if "NumberReplacer" in name and not any(s.holds(start) for s in functions):
                    continue
                file, said = str(path.relative_to(tree)), lines[line - 1].strip()
                yield Mutant(file, name, occurrence, line, column, said)


def mutated(mutant: Mutant, source: str) -> str | None:
    """Return the mutated file; None if it is invalid, equivalent, or cannot be made.

    Cosmic Ray makes `if not found := look():` of `if found := look():`, and stumbles over a dotted
    name among several exceptions, `except (sqlite3.Error, OSError):`.
    """
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    try:
        changed = mutate_code(source, plugins.get_operator(mutant.operator)(), mutant.occurrence)
    except AttributeError:
        return None
    try:
        return None if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)) else str(changed)
    except (SyntaxError, TypeError):  # TypeError: there was nothing to change
        return None
