"""Position of a source line: what runs with it, and what in it has no effect."""

import ast

from tests.mutation.source_lines import (
    StatementLines,
    spans_of_functions,
    spans_of_heads,
    spans_without_effect,
)

SOURCE = """\
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from numbers import Real
Number = int | float; Named: TypeAlias = str | bytes
LIMIT: int | None = 3 + 4

class Box(Base, frozen=True):
    size: int = 5

    @staticmethod
    def fits(a: int | None, b: int = 6) -> bool | None:
        if (
            a
            and b
        ):
            return a - b > 7
        return sum(
            [*zip(a, b, strict=True),
             b])
"""
PARSED = ast.parse(SOURCE)


def columns(line: int, sign: str) -> tuple[int, int]:
    return line, SOURCE.splitlines()[line - 1].index(sign)


def test_lines_of_one_statement_run_together_and_a_body_apart_from_its_head() -> None:
    lines = StatementLines(PARSED)
    assert list(lines.around(14).numbers) == [12, 13, 14, 15]
    assert list(lines.around(16).numbers) == [16]
    assert list(lines.around(18).numbers) == [17, 18, 19]
    assert list(lines.around(10).numbers) == [10, 11]


def test_only_what_stands_in_a_function_runs_when_it_is_called() -> None:
    lines = StatementLines(PARSED)
    assert [lines.around(n).in_function for n in (5, 8, 11, 12, 16)] == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_what_is_for_type_checkers_and_against_programmers_faults_has_no_effect() -> None:
    spans = spans_without_effect(PARSED)
    annotated = [columns(4, "|"), columns(4, "| b"), columns(5, "|"), columns(11, "|")]
    for place in [(3, 4), *annotated, columns(7, "True"), columns(10, "s"), columns(18, "True")]:
        assert any(span.holds(place) for span in spans), place
    for place in [columns(5, "+"), columns(11, "6"), columns(14, "and"), columns(16, "-")]:
        assert not any(span.holds(place) for span in spans), place


def test_defaults_and_constants_stand_outside_of_functions() -> None:
    spans = spans_of_functions(PARSED)
    inside = [columns(n, sign) for n, sign in ((5, "3"), (8, "5"), (11, "6"), (16, "7"))]
    assert [any(span.holds(place) for span in spans) for place in inside] == [
        False, False, False, True,
    ]  # fmt: skip


def test_the_head_of_a_function_ends_where_its_body_begins() -> None:
    [head] = spans_of_heads(PARSED)
    assert head.holds(columns(11, "b: int"))
    for place in [columns(8, "5"), columns(10, "@"), columns(12, "if"), columns(16, "-")]:
        assert not head.holds(place), place
