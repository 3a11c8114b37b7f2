"""Making the map of which tests run which line, or bringing it up to date."""

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

from tests.mutation import measuring
from tests.mutation.coverage_map import CoverageMap, keep, read

_CONFIGURATION: Final = """\
[run]
parallel = true
core = ctrace
data_file = {data}
source = {sources}
context = ${{{test}-}}
disable_warnings = no-data-collected,module-not-imported,module-not-measured,couldnt-parse
"""
_REST: Final = "all but tests"


def up_to_date(
    tree: Path, sources: list[str], tests: list[str], folder: Path, kept: Path | None
) -> CoverageMap:
    """The map, of a file where one is kept; tests that it lacks or that changed are measured.

    If anything else in the tree changed, all of it is: every test may run other lines now.

    Args:
        tree: the copy of the tree; `PYTHONPATH` already points into it.
        sources: folders of code, from its root.
        tests: folders and files of tests, from its root.
        folder: an empty one, for what coverage writes.
        kept: the file, which need not be there; None to keep nothing.
    """
    digests = _digests(tree, tests)
    known, made_from = CoverageMap({}, {}, []), {_REST: digests[_REST]}
    if kept is not None and kept.exists():
        known, made_from = read(kept)
        if made_from[_REST] != digests[_REST]:
            known, made_from = CoverageMap({}, {}, []), {_REST: digests[_REST]}
    missing = [path for path in digests if digests[path] != made_from.get(path)]
    if missing:
        known = known.without(missing).joined(_measure(tree, sources, missing, folder))
    if kept is not None:
        keep(known, made_from | digests, kept)
    return known


def _digests(tree: Path, tests: list[str]) -> dict[str, str]:
    """Return the digests of each test file, and of all other Python together."""
    found, rest = {}, hashlib.sha256()
    for path in sorted(tree.rglob("*.py")):
        name = str(path.relative_to(tree))
        if not path.name.startswith("test_"):
            if not name.startswith("tests/mutation/"):
                rest.update(f"{name}\n".encode() + path.read_bytes())
        elif any(name == one or name.startswith(f"{one}/") for one in tests):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found | {_REST: rest.hexdigest()}


def _measure(tree: Path, sources: list[str], tests: list[str], folder: Path) -> CoverageMap:
    """Run these files of tests once, and see what each test runs."""
    from coverage import CoverageData

    configuration, results = folder / "coverage.ini", folder / "results.json"
    listed = "".join(f"\n    {tree / source}" for source in sources)
    configuration.write_text(
        _CONFIGURATION.format(data=folder / "data", sources=listed, test=measuring.TEST)
    )
    environ = os.environ | {
        "COVERAGE_PROCESS_START": str(configuration),
        measuring.TEST: "",
        measuring.RESULTS: str(results),
    }
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-p", measuring.__name__, f"--basetemp={folder / 't'}", *tests,
    ]  # fmt: skip
    subprocess.run(command, cwd=tree, env=environ, stdout=sys.stderr, check=False)
    told = json.loads(results.read_text())
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for part in folder.glob("data.*"):
        data = CoverageData(str(part))
        data.read()
        for path in data.measured_files():
            numbers = lines[str(Path(path).relative_to(tree))]
            for number, contexts in data.contexts_by_lineno(path).items():
                numbers[number].update(contexts)
    frozen = {p: {n: frozenset(by) for n, by in numbers.items()} for p, numbers in lines.items()}
    return CoverageMap(told["durations_s"], frozen, told["not_passed"])
