"""Map from lines to the tests that run them, measured once and stored in a file."""

import ast
import json
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.mutation.source_lines import StatementLines


class CoverageMap(NamedTuple):
    """The measured coverage map.

    Attributes:
        durations_s: seconds of each test that passed, by its id.
        lines: contexts that ran a line, by file and line number; a context is the id of a test,
            a file of tests (all of them), or empty (while modules were imported).
        not_passed: ids of tests that failed or skipped: nothing is asked of them.
    """

    durations_s: dict[str, float]
    lines: dict[str, dict[int, frozenset[str]]]
    not_passed: list[str]

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        """Return the map from the result of `plain`."""
        contexts: list[str] = list(told["contexts"])
        lines = {
            path: {int(n): frozenset(contexts[i] for i in by) for n, by in numbers.items()}
            for path, numbers in told["lines"].items()
        }
        return cls(dict(told["durations_s"]), lines, list(told["not_passed"]))

    def plain(self) -> dict[str, object]:
        """Return the map as plain data, each context once."""
        contexts = sorted({c for lines in self.lines.values() for by in lines.values() for c in by})
        index = {context: i for i, context in enumerate(contexts)}
        lines = {
            path: {str(n): sorted(index[c] for c in by) for n, by in numbers.items()}
            for path, numbers in self.lines.items()
        }
        return self._asdict() | {"contexts": contexts, "lines": lines}

    def without(self, files: Collection[str]) -> Self:
        """Return the map without these test files."""
        return type(self)(
            {test: s for test, s in self.durations_s.items() if _file(test) not in files},
            {
                path: {n: frozenset(c for c in by if _file(c) not in files) for n, by in of.items()}
                for path, of in self.lines.items()
            },
            [test for test in self.not_passed if _file(test) not in files],
        )

    def joined(self, other: Self) -> Self:
        """Return this map merged with one of other tests."""
        lines: dict[str, dict[int, frozenset[str]]] = defaultdict(dict)
        for part in (self, other):
            for path, numbers in part.lines.items():
                of = lines[path]
                for number, by in numbers.items():
                    of[number] = of.get(number, frozenset()) | by
        durations_s = self.durations_s | other.durations_s
        return type(self)(durations_s, dict(lines), [*self.not_passed, *other.not_passed])

    def tests_running(self, file: str, line: int, source: str) -> set[str]:
        """Ids of the tests that run the statement in which a line stands.

        What stands outside functions runs once, when the module is imported, and so do functions
        that are only called then: there it is the tests that run anything of the file, or of its
        folder where nothing in the file is ever called (settings are such files).
        """
        numbers = self.lines.get(file, {})
        statement = StatementLines(ast.parse(source)).around(line)
        contexts = {c for n in statement.numbers for c in numbers.get(n, ()) if c}
        if not contexts or not statement.in_function:
            contexts = {c for by in numbers.values() for c in by if c}
        if not contexts:
            beside = (of for path, of in self.lines.items() if _folder(path) == _folder(file))
            contexts = {c for of in beside for by in of.values() for c in by if c}
        files = {context for context in contexts if "::" not in context}
        return {t for t in self.durations_s if t in contexts or _file(t) in files}


def read(file: Path) -> tuple[CoverageMap, dict[str, str]]:
    """A map that was kept, and the digests of the files that it was made from."""
    told = json.loads(file.read_text())
    return CoverageMap.from_plain(told["map"]), told["digests"]


def keep(known: CoverageMap, digests: dict[str, str], file: Path) -> None:
    """Write what `read` reads."""
    file.write_text(json.dumps({"digests": digests, "map": known.plain()}))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _file(test: str) -> str:
    return test.partition("::")[0]
