"""Lookup of the tests that run a line."""

from pathlib import Path

from tests.mutation.coverage_map import CoverageMap, keep, read

SOURCE = """\
LIMIT = 3


def doubled(x):
    return (
        x + x)


def at_import():
    return 1


FIRST = at_import()
"""
KNOWN = CoverageMap(
    durations_s={
        "t/test_a.py::test_one": 1.0,
        "t/test_a.py::test_two": 2.0,
        "t/test_b.py::test_c[x]": 3.0,
    },
    lines={
        "code.py": {
            1: frozenset([""]),
            4: frozenset(["", "t/test_b.py::test_c[x]"]),
            5: frozenset(["t/test_b.py::test_c[x]"]),
            6: frozenset(["t/test_b.py::test_c[x]", "t/test_a.py"]),
            10: frozenset([""]),
        }
    },
    not_passed=["t/test_b.py::test_skipped"],
)
EVERYBODY = set(KNOWN.durations_s)


def test_a_line_in_a_function_has_the_tests_that_run_its_statement() -> None:
    only_c = KNOWN._replace(lines={"code.py": {5: frozenset(["t/test_b.py::test_c[x]"])}})
    assert only_c.tests_running("code.py", 6, SOURCE) == {"t/test_b.py::test_c[x]"}


def test_what_a_fixture_of_a_module_runs_counts_for_every_test_of_the_file() -> None:
    assert KNOWN.tests_running("code.py", 6, SOURCE) == EVERYBODY


def test_what_runs_on_import_has_the_tests_that_run_anything_of_the_file() -> None:
    for line in (1, 4, 10):
        assert KNOWN.tests_running("code.py", line, SOURCE) == EVERYBODY


def test_where_nothing_of_a_file_is_called_it_is_the_tests_of_its_folder() -> None:
    settings, far = {1: frozenset([""])}, {1: frozenset(["t/test_a.py::test_one"])}
    known = KNOWN._replace(
        lines={"a/settings.py": settings, "a/b.py": KNOWN.lines["code.py"], "c/d.py": far}
    )
    assert known.tests_running("a/settings.py", 1, "X = 1\n") == EVERYBODY
    without = known._replace(lines={"a/settings.py": settings, "c/d.py": far})
    assert without.tests_running("a/settings.py", 1, "X = 1\n") == set()


def test_a_test_that_failed_or_was_skipped_is_not_asked() -> None:
    lines = {"code.py": {5: frozenset(["t/test_b.py::test_skipped"])}}
    assert KNOWN._replace(lines=lines).tests_running("code.py", 5, SOURCE) == set()


def test_a_map_is_the_same_from_its_file(tmp_path: Path) -> None:
    keep(KNOWN, {"t/test_a.py": "1"}, tmp_path / "map.json")
    assert read(tmp_path / "map.json") == (KNOWN, {"t/test_a.py": "1"})


def test_what_changed_is_replaced_and_the_rest_stays() -> None:
    rest = KNOWN.without({"t/test_b.py"})
    assert rest.durations_s.keys() == {"t/test_a.py::test_one", "t/test_a.py::test_two"}
    assert rest.not_passed == []
    assert rest.lines["code.py"][6] == {"t/test_a.py"}
    lines = {"code.py": {6: frozenset(["t/test_b.py::test_new"])}}
    again = CoverageMap({"t/test_b.py::test_new": 1.0}, lines, [])
    assert rest.joined(again).lines["code.py"][6] == {"t/test_a.py", "t/test_b.py::test_new"}
    assert len(rest.joined(again).durations_s) == 3
