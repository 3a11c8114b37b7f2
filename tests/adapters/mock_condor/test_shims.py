"""The stand-ins for HTCondor's tools print what those print with ``-json``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outrider_adapters.mock_condor import shims
from tests.adapters.mock_condor.made_pool import BEGIN_S, JOB, MockPool, made_pool


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools of a pool with two jobs running, one waiting and one completed."""
    made = tmp_path_factory.mktemp("tools")
    shims.dump(lived_pool(), made)
    subprocess.run([sys.executable, "-m", shims.__name__, str(made)], check=True)
    return made


def lived_pool() -> MockPool:
    pool = made_pool(2)
    pool.submit("alice", JOB, 100)
    pool.submit("bob", JOB, 1000, 3)
    pool.advance(BEGIN_S + 300)
    return pool


def call(folder: Path, tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(folder / tool), *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_tools_answer_from_the_state_of_the_pool(folder: Path) -> None:
    jobs = json.loads(call(folder, "condor_q", "-json").stdout)
    assert sorted(ad["JobStatus"] for ad in jobs) == [1, 2, 2]
    slots = json.loads(call(folder, "condor_status", "-json").stdout)
    assert [ad["State"] for ad in slots] == ["Claimed", "Claimed"]
    (left,) = json.loads(call(folder, "condor_history", "-json").stdout)
    assert (left["Owner"], left["JobStatus"]) == ("alice", 4)


def test_a_constraint_and_a_projection_are_understood(folder: Path) -> None:
    words = ("-json", "-constraint", "JobStatus == 1", "-attributes", "procid,Requirements")
    (ad,) = json.loads(call(folder, "condor_q", *words).stdout)
    assert set(ad) == {"ProcId", "Requirements"}
    assert ad["Requirements"].startswith("/Expr(")
    nobody = call(folder, "condor_q", "-json", "-constraint", 'Owner == "carol"')
    assert (nobody.returncode, json.loads(nobody.stdout)) == (0, [])


@pytest.mark.parametrize(
    "words", [(), ("-json", "-nobatch"), ("-json", "-constraint", "x y"), ("-json", "-constraint")]
)
def test_what_a_tool_does_not_know_it_refuses(folder: Path, words: tuple[str, ...]) -> None:
    refused = call(folder, "condor_q", *words)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("condor_q:")


def test_without_a_state_the_tools_fail(tmp_path: Path) -> None:
    shims.write_shims(tmp_path)
    failed = call(tmp_path, "condor_q", "-json")
    assert failed.returncode == 1
    assert "jobs.json" in failed.stderr


@pytest.mark.parametrize(
    ("ours", "real"),
    [
        ("jobs.json", "text-jobs-1-running.json"),
        ("slots.json", "text-slots-1-busy.json"),
        ("history.json", "text-history.json"),
    ],
)
def test_ads_have_the_attributes_and_types_of_real_ones(
    shared: Path, folder: Path, ours: str, real: str
) -> None:
    sample = shared / "peers/htcondor/samples" / real
    if not sample.is_file():
        pytest.skip(f"{real} is not in the shared folder")
    kinds = _kinds(json.loads(sample.read_text()))
    if "PolicyOrigRank" in kinds:  # the real pool's transform had wrapped the jobs' own Rank
        kinds["Rank"] = kinds["PolicyOrigRank"]
    mine = _kinds(json.loads((folder / ours).read_text()))
    unlike = {name: kind for name, kind in mine.items() if not kind <= kinds.get(name, kind)}
    assert unlike == {}
    assert set(mine) - set(kinds) <= {"AutoClusterAttrs", "AutoClusterId", "ExitCode"}


def _kinds(ads: list[dict[str, Any]]) -> dict[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for ad in ads:
        for name, value in ad.items():
            expression = isinstance(value, str) and value.startswith("/Expr(")
            kinds.setdefault(name, set()).add("Expr" if expression else type(value).__name__)
    return kinds
