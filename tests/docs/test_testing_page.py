"""The page on running the tests names every file that has long tests, and no other."""

import re
from pathlib import Path

ROW = re.compile(r"^\| `(?P<file>tests/\S+/test_\w+\.py)` \|", re.MULTILINE)


def test_each_file_with_long_tests_has_a_row(repository: Path) -> None:
    page = (repository / "docs" / "testing.md").read_text(encoding="utf-8")
    mark = "pytest.mark." + "long"
    have = {
        path.relative_to(repository).as_posix()
        for path in (repository / "tests").rglob("test_*.py")
        if mark in path.read_text(encoding="utf-8")
    }
    assert set(ROW.findall(page)) == have
