"""Patches of `examples/changes`: each is small and works.

Each is applied to a copy of the product, and tried in a process that imports the copy.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOTS: Final = ("daemon", "adapters", "policies", "lab")


class NewThing(NamedTuple):
    """A change: the files that it may touch, and its expected effect.

    Attributes:
        files: most files; `pyproject.toml` does not count, where plugins are named.
        holds: Python that fails where it is not true.
    """

    files: int
    holds: str


CORE: Final = """
from outrider.model.events import *
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.fixtures.cores import T, core_of, tell
core = core_of("log", policies={"fifo": {}})
job = JobSpec(user="ann", estimate_s=90.0)
joined = [(T, JOINED, "m1", MachineSpec("lab")), (T, JOINED, "m2", MachineSpec("lab"))]
tell(core, "log", [*joined, (T + 1, OWNER_CAME, "m1", None)], T + 2)
"""

NEW_THINGS: Final = {
    "policy": NewThing(
        1,
        """
import subprocess, sys, pathlib
tests = pathlib.Path("test_ljf.py")
tests.write_text('''
from outrider.testing.policies import PolicyConformance
from outrider_policies.rules.orders import LongestJobFirst
class TestIt(PolicyConformance):
    policy = LongestJobFirst
''')
run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
done = subprocess.run(run, capture_output=True, text=True)
assert done.returncode == 0, done.stdout
""",
    ),
    "metric": NewThing(
        1,
        CORE
        + """
from outrider.service.metrics.exporter import MetricsExporter
from tests.fixtures.cores import RECORDING
told = MetricsExporter(core).take(RECORDING, 0.0)
assert told.numbers["machines_with_owner"][()] == 1.0, told.numbers["machines_with_owner"]
""",
    ),
    "endpoint": NewThing(
        1,
        CORE
        + """
import asyncio
import msgspec
from types import SimpleNamespace
from outrider.service.web.endpoints import ENDPOINTS
from outrider.service.web.openapi import openapi
[groups] = [one for one in ENDPOINTS if one.path == "/api/v1/groups"]
call = SimpleNamespace(view=SimpleNamespace(core=core))
assert msgspec.to_builtins(asyncio.run(groups.handle(call))) == {"machines": {"lab": 2}}
assert "/api/v1/groups" in openapi(ENDPOINTS)["paths"]
""",
    ),
    "setting": NewThing(
        1,
        """
from outrider_policies.rules.orders import EarliestDeadlineFirst, EdfSettings
from outrider.model.errors import ConfigurationError
from outrider.plugins.finding import make_policy
made = make_policy("edf", {"cpu_s": 30.0}, 0, "here")
assert made.settings == EdfSettings(cpu_s=30.0)
try:
    make_policy("edf", {"cpu_s": -1.0}, 0, "here")
except ConfigurationError as error:
    assert "cpu_s" in str(error)
else:
    raise AssertionError("it takes anything")
""",
    ),
    "jobs-column": NewThing(
        2,
        CORE
        + """
import msgspec, pathlib, outrider
from outrider.service.core.source_state import StateWords
from outrider.service.web.endpoints.jobs import Jobs, jobs, known_jobs
tell(core, "log", [(T + 3, SUBMITTED, "1", job)], T + 9)
page = jobs(core, 10, known_jobs(core))
assert page.jobs[0].estimate_s == 90.0
script = pathlib.Path(outrider.__file__).parent / "service/web/page/jobs.js"
assert '"Estimate"' in script.read_text()
""",
    ),
    "event-kind": NewThing(
        3,
        CORE
        + """
tell(core, "log", [(T + 3, KIND_NUMBERS["fenced"], "m2", None)], T + 9)
assert core.merger.counts["log"]["fenced"] == 1
assert not any(core.merger.set_aside.values()), core.merger.set_aside
assert core.site.free_total == 0
""",
    ),
}


@pytest.fixture(scope="module")
def copied(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product, to be changed."""
    folder = tmp_path_factory.mktemp("changed")
    for root in ROOTS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(repository / root, folder / root, ignore=ignored)
    shutil.copy(repository / "pyproject.toml", folder)
    return folder


def apply(patch: Path, folder: Path, *words: str) -> None:
    done = subprocess.run(
        ["git", "apply", *words, str(patch)],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NEW_THINGS)
def test_a_new_thing_touches_as_little_as_is_said_and_works(
    name: str, copied: Path, repository: Path, tmp_path: Path
) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git, which applies the examples")
    patch = repository / "examples" / "changes" / f"{name}.patch"
    touched = set(re.findall(r"^\+\+\+ b/(.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(touched - {"pyproject.toml"}) <= NEW_THINGS[name].files
    apply(patch, copied)
    try:
        paths = os.pathsep.join([*(str(copied / root) for root in ROOTS), str(repository)])
        done = subprocess.run(
            [sys.executable, "-c", NEW_THINGS[name].holds],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    finally:
        apply(patch, copied, "--reverse")


def test_every_example_is_shown_to_contributors(repository: Path) -> None:
    text = (repository / "docs/adding-parts.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\(\.\./examples/changes/([a-z-]+)\.patch\)", text))
    files = {file.stem for file in (repository / "examples" / "changes").glob("*.patch")}
    assert shown == files == NEW_THINGS.keys()
