"""A daemon beside a real pool that it may only read: with its event log, and without."""

import json
from functools import partial
from pathlib import Path

import pytest

from outrider.ledger import Journal
from outrider.model.events import COMPLETED, EVICTED, STARTED, SUBMITTED, NamedEvent
from tests.cli.running import shell
from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

JOBS = 4
CLIENT = """\
NO_DNS = True
DEFAULT_DOMAIN_NAME = pool.test
NETWORK_INTERFACE = 127.0.0.1
SEC_CLIENT_AUTHENTICATION = OPTIONAL
SEC_CLIENT_INTEGRITY = OPTIONAL
"""
"""Of somebody outside the pool, without a credential."""
CONFIG = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0

[adapters.htcondor]
collector = "{collector}"
look_s = 1.0
queue_s = 2.0
snapshot_s = 4.0
repair_after_s = 5.0
{logs}

[policies.bandit]
"""
RECORDED = ("QDate", "JobStartDate", "CompletionDate", "NumShadowStarts")


def daemon_beside(pool: HTCondorPool, folder: Path, has_log: bool) -> DaemonProcess:
    """A daemon that has the right to read, and the event log or not."""
    (folder / "condor_config").write_text(CLIENT)
    logs = f'event_logs = {{ "host.pool.test" = "{pool.event_log}" }}' if has_log else ""
    config = folder / "outrider.toml"
    state = folder / "state"
    config.write_text(CONFIG.format(state=state, collector=pool.collector, logs=logs))
    return DaemonProcess(config, {"CONDOR_CONFIG": str(folder / "condor_config")})


def history(pool: HTCondorPool, clusters: set[int]) -> dict[str, dict[str, float]]:
    """What the pool itself recorded of its jobs, by job."""
    ads = json.loads(pool.run("root", "condor_history", "-json"))
    return {
        f"{ad['ClusterId']}.{ad['ProcId']}": {name: float(ad[name]) for name in RECORDED}
        for ad in ads
        if ad["ClusterId"] in clusters
    }


def told(journal: Path, clusters: set[int]) -> dict[str, list[NamedEvent]]:
    """What the daemon took in, by job."""
    found: dict[str, list[NamedEvent]] = {}
    with Journal(journal, read_only=True) as opened:
        for _, _, event in opened.inputs_after(0):
            job = event[2].rpartition("#")[2]
            if event[2].startswith("host.pool.test#") and int(job.split(".")[0]) in clusters:
                found.setdefault(job, []).append(event)
    return found


@pytest.mark.parametrize("has_log", [True, False], ids=["event log", "queue alone"])
def test_every_submission_start_eviction_and_end_once_at_the_pools_own_times(
    htcondor_pool: HTCondorPool, tmp_path: Path, has_log: bool
) -> None:
    pool = htcondor_pool
    with daemon_beside(pool, tmp_path, has_log) as daemon:
        daemon.wait_until("the machines", lambda s: sum(c["machines"] for c in s["clusters"]) >= 4)
        clusters = {
            pool.submit_sleepers(JOBS, 9, user="alice"),
            pool.submit_sleepers(JOBS, 1, user="bob"),
        }
        pool.wait_until("a job on m1", partial(_is_busy, pool, "m1"))
        pool.owner_returns("m1")
        try:
            daemon.wait_until("an owner", lambda s: s["evictions"].get("owner", 0) >= 1)
        finally:
            pool.owner_leaves("m1")
        done = daemon.wait_until(
            "all jobs completed", lambda s: s["jobs"]["completed"] >= 2 * JOBS, within_s=120
        )
        assert {cluster["name"] for cluster in done["clusters"]} >= {"A", "B"}
        assert done["adapters"][0]["inferred"] is False
        assert done["energy_wh"]["idle"] is None, "the pool's ads tell no watts"
        assert daemon.stop() == 0

    recorded, seen = history(pool, clusters), told(tmp_path / "state" / "journal.sqlite", clusters)
    assert len(recorded) == 2 * JOBS
    assert seen.keys() == recorded.keys()
    # the log is written a moment after the queue has put down its time
    apart_s = 1.0 if has_log else 0.0
    for job, events in seen.items():
        times = {kind: [e[0] for e in events if e[1] == kind]
                 for kind in (SUBMITTED, STARTED, EVICTED, COMPLETED)}  # fmt: skip
        ad = recorded[job]
        assert times[SUBMITTED] == [pytest.approx(ad["QDate"], abs=apart_s)]
        assert len(times[STARTED]) == ad["NumShadowStarts"]
        assert len(times[EVICTED]) == ad["NumShadowStarts"] - 1
        assert times[STARTED][0] == pytest.approx(ad["JobStartDate"], abs=apart_s)
        assert times[COMPLETED] == [pytest.approx(ad["CompletionDate"], abs=apart_s)]


def test_doctor_says_who_answers_and_what_is_missing(
    htcondor_pool: HTCondorPool, tmp_path: Path
) -> None:
    daemon_beside(htcondor_pool, tmp_path, has_log=False)
    words = ("doctor", "--config", tmp_path / "outrider.toml", "--json")
    said = shell(*words, CONDOR_CONFIG=str(tmp_path / "condor_config"))
    checks = {one["name"]: one for one in json.loads(said.out)["checks"]}
    assert checks["adapter htcondor: collector"]["found"] == "tells of 4 slots"
    point = checks["adapter htcondor: access point host.pool.test"]
    assert point["state"] == "warn"
    assert "event_logs" in point["remedy"]
    assert checks["adapter htcondor"]["state"] == "ok"


def _is_busy(pool: HTCondorPool, machine: str) -> bool:
    hosts = pool.run("root", "condor_q", "-allusers", "-af", "RemoteHost").split()
    return any(host.split("@")[1] == machine for host in hosts if "@" in host)
