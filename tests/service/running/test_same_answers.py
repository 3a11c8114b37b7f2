"""A change that should change nothing for scripts: every documented endpoint answers as before.

The daemon of an earlier revision and that of this tree read the same log. Their JSON is compared
leaf by leaf, but for what differs between two runs of this tree: clocks, ports, durations.

    OUTRIDER_BEFORE=v0.1.0 python -m pytest -m long tests/service/running/test_same_answers.py
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.service.running.small_site import SmallSite

pytestmark = [pytest.mark.long]

ROOTS: Final = ("daemon", "adapters", "policies", "lab")
BEGIN_S: Final = 1_790_000_000.0
JOB, MACHINE = "1.0", "10.0.0.1"
POLICIES: Final = """
[adapters.log]
type = "logtail"
paths = ["{log}"]
format = "htcondor"
start_at = "beginning"
settle_s = 0.0

[policies.fifo]

[policies.sjf]
"""
NOT_JSON: Final = ("/", "/page/{asset}", "/metrics")
Leaves = dict[str, Any]


def tree_of(revision: str, repository: Path, folder: Path) -> Path:
    """The product at a revision, with the names of its plugins."""
    words = ["git", "archive", revision, *ROOTS, "pyproject.toml"]
    packed = subprocess.run(words, cwd=repository, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"no revision {revision} here: {packed.stderr.decode().strip()}")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


def with_plugins(tree: Path, folder: Path) -> dict[str, str]:
    """The environment in which a tree is what Python imports, and whose plugins it finds."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / "outrider-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outrider\nVersion: 0\n")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [
        line
        for group, named in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in named.items()), "")
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return {"PYTHONPATH": os.pathsep.join([str(folder), *(str(tree / root) for root in ROOTS)])}


def answers_of(tree: Path, folder: Path) -> Leaves:
    """The leaves of what every documented endpoint answers to GET, by path and place."""
    folder.mkdir()
    site = SmallSite(folder, tables=POLICIES, environ=with_plugins(tree, folder / "plugins"))
    site.log.at(BEGIN_S)
    site.log.run(range(2, 6), machine=1)
    site.log.submit(1, 7, 8)
    site.log.start(1, 1)
    site.log.submit(9)
    site.log.start(9, 2)
    site.log.evict(9)
    with site.daemon as daemon:
        site.wait_until_applied()
        daemon.wait_until(
            "all recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"], within_s=10
        )
        found: Leaves = {}
        paths = daemon.get("/api/v1/openapi.json")["paths"]
        for path in sorted(paths.keys() - set(NOT_JSON)):
            asked = path.replace("{job}", quote(job_of(daemon.get("/api/v1/jobs"))))
            asked = asked.replace("{machine}", quote(machine_of(daemon.get("/api/v1/machines"))))
            found |= leaves(daemon.get(asked), path)
        daemon.stop()
    return found


def job_of(page: dict[str, Any]) -> str:
    return str(min(row["job"] for row in page["jobs"]))


def machine_of(page: dict[str, Any]) -> str:
    return str(min(row["machine"] for row in page["machines"]))


def leaves(value: Any, place: str) -> Leaves:
    """Yield every leaf of a JSON value by its path; empty lists and objects count as leaves."""
    inner: Iterator[tuple[Any, Any]]
    if isinstance(value, dict) and value:
        inner = iter(value.items())
    elif isinstance(value, list) and value:
        inner = iter(enumerate(value))
    else:
        return {place: value}
    return {k: v for key, one in inner for k, v in leaves(one, f"{place} {key}").items()}


def test_every_documented_endpoint_answers_as_it_did(repository: Path, tmp_path: Path) -> None:
    if shutil.which("git") is None or not (repository / ".git").exists():
        pytest.skip("no git, or no clone: there is no earlier revision to compare with")
    before = tree_of(os.environ.get("OUTRIDER_BEFORE", "HEAD~1"), repository, tmp_path / "before")
    first, second = (answers_of(repository, tmp_path / name) for name in ("first", "second"))
    then = answers_of(before, tmp_path / "then")
    steady = {place for place in first.keys() & second.keys() if first[place] == second[place]}
    assert len(steady) > 500, "nothing is compared"
    gone = {place for place in steady if place not in then}
    differs = {
        place: (then[place], first[place]) for place in steady - gone if then[place] != first[place]
    }
    new = {place for place in then if place not in first and place not in second}
    assert not differs, f"{len(differs)} differ, before and now: {list(differs.items())[:20]}"
    assert not gone, f"no longer returned: {sorted(gone)[:20]}"
    assert not new, f"new: {sorted(new)[:20]}"
