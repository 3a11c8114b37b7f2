"""The daemon itself in shadow beside a mock pool: nothing but a configuration of three lines."""

from collections import Counter
from pathlib import Path

from outrider.journal import Journal
from outrider.model.events import JOINED, KIND_NAMES, SUBMITTED, TICK
from tests.service.running.process import DaemonProcess

CONFIG = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 600.0

[adapters.mock]
type = "mock_condor"
pool = "{pool}"
look_s = 20.0
negotiator_interval_s = 20.0
speed = 600.0

[policies.bandit]
"""
POOL = """\
[[machines]]
name = "lab-1"
cluster = "labs"

[[machines]]
name = "lab-2"
cluster = "labs"

[[machines]]
name = "attic-1"
cluster = "attic"
cpus = 2

[[jobs]]
user = "alice"
run_s = 900
count = 5
submit = { accounting_group = "physics" }

[[jobs]]
user = "bob"
at_s = 100
run_s = 600
count = 3
submit = { accounting_group = "biology", requirements = 'TARGET.MachineCluster == "labs"' }

[[owners]]
machine = "lab-1"
came_s = 300
went_s = 1200

[[owners]]
machine = "lab-2"
came_s = 4000
"""
JOBS = 8


def test_outrider_in_shadow_sees_a_mock_pool_and_decides_for_itself(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    config = tmp_path / "outrider.toml"
    config.write_text(CONFIG.format(state=tmp_path / "state", pool=tmp_path / "pool.toml"))
    with DaemonProcess(config) as daemon:
        status = daemon.wait_until(
            "all jobs completed and the second owner there",
            lambda s: s["jobs"]["completed"] == JOBS and s["machines"]["owner"] == 1,
        )
        [adapter] = status["adapters"]
        seen = {kind: n for kind, n in adapter["events"].items() if n}
        assert seen["joined"] == 3
        assert seen["submitted"] == seen["completed"] == JOBS
        assert seen["started"] == JOBS + seen["evicted"]
        assert (seen["owner_came"], seen["owner_went"]) == (2, 1)
        assert (adapter["up"], adapter["inferred"], adapter["rejected"]) == (True, False, {})
        assert (adapter["duplicates"], status["repairs"]) == (0, {})
        assert status["evictions"]["owner"] == seen["evicted"] == 1
        assert {c["name"] for c in status["clusters"]} >= {"labs", "attic"}
        bandit = next(p for p in status["policies"] if p["name"] == "bandit")
        assert bandit["agreed"] + bandit["disagreed"] > 0
        assert daemon.get("/api/v1/decisions")["decisions"], "no decision was recorded"
        assert daemon.stop() == 0

    with Journal(tmp_path / "state" / "journal.sqlite", read_only=True) as journal:
        inputs = [event for _, _, event in journal.inputs_after(0) if event[1] != TICK]
    specs = Counter((e[3].user, e[3].vo) for e in inputs if e[1] == SUBMITTED)
    assert specs == {("alice", "physics"): 5, ("bob", "biology"): 3}
    joined = {e[2]: (e[3].cluster, e[3].cpus) for e in inputs if e[1] == JOINED}
    assert joined == {"lab-1": ("labs", 1), "lab-2": ("labs", 1), "attic-1": ("attic", 2)}
    kept = Counter(KIND_NAMES[event[1]] for event in inputs)
    assert {kind: kept[kind] for kind in seen} == seen


def test_a_daemon_that_was_killed_goes_on_with_the_same_pool(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    config = tmp_path / "outrider.toml"
    config.write_text(CONFIG.format(state=tmp_path / "state", pool=tmp_path / "pool.toml"))
    with DaemonProcess(config) as daemon:
        daemon.wait_until("some have completed", lambda s: s["jobs"]["completed"] >= 2)
        daemon.kill()
    with DaemonProcess(config) as daemon:
        status = daemon.wait_until(
            "all jobs completed", lambda s: s["jobs"]["completed"] == JOBS, within_s=30
        )
        assert status["repairs"] == {}
        assert status["adapters"][0]["duplicates"] == 0
        assert daemon.stop() == 0
