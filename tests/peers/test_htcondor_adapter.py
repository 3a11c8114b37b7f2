"""A daemon beside a real pool that it may only read: with its event log, and without."""

import json
import re
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.model.events import (
    CHANGED,
    COMPLETED,
    ELIGIBLE,
    EVICTED,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from tests.cli.running import shell
from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

JOBS = 4
MACHINES = ("m1", "m2", "m3", "m4")
CLIENT = """\
NO_DNS = True
DEFAULT_DOMAIN_NAME = pool.test
NETWORK_INTERFACE = 127.0.0.1
SEC_CLIENT_AUTHENTICATION = OPTIONAL
SEC_CLIENT_INTEGRITY = OPTIONAL
"""
"""Configuration of a client outside the pool, without a credential."""
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
    """Return the pool's own record of its jobs, by job."""
    ads = json.loads(pool.run("root", "condor_history", "-json"))
    return {
        f"{ad['ClusterId']}.{ad['ProcId']}": {name: float(ad[name]) for name in RECORDED}
        for ad in ads
        if ad["ClusterId"] in clusters
    }


def times_in_log(pool: HTCondorPool, clusters: set[int]) -> dict[str, dict[int, list[int]]]:
    """Return the times of each job's records by kind, Unix seconds."""
    kinds = {0: SUBMITTED, 1: STARTED, 4: EVICTED, 5: COMPLETED}
    found: dict[str, dict[int, list[int]]] = {}
    for code, cluster, proc, time_s in pool.records():
        if cluster in clusters and code in kinds:
            of_job = found.setdefault(f"{cluster}.{proc}", {kind: [] for kind in kinds.values()})
            of_job[kinds[code]].append(time_s)
    return found


def told(journal: Path, clusters: set[int]) -> dict[str, list[NamedEvent]]:
    """Return the events that the daemon recorded, by job."""
    found: dict[str, list[NamedEvent]] = {}
    with Journal(journal, read_only=True) as opened:
        for _, _, event in opened.inputs_after(0):
            job = event[2].rpartition("#")[2]
            if event[2].startswith("host.pool.test#") and int(job.split(".")[0]) in clusters:
                found.setdefault(job, []).append(event)
    return found


def classes(journal: Path) -> dict[str, set[str]]:
    """Return the machines of each class, as the daemon got them last."""
    with Journal(journal, read_only=True) as opened:
        told = [event for _, _, event in opened.inputs_after(0) if event[1] == ELIGIBLE]
    return {event[2]: set(event[3]) for event in told}


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
        try:
            pool.evict("m1", lambda: len(pool.events(4)))
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
    logged = times_in_log(pool, clusters)
    # a machine may refuse a start as its owner returns: the queue counts it, the log does not
    begun = sum(ad["NumShadowStarts"] for ad in recorded.values())
    unlogged = begun - sum(len(times[STARTED]) for times in logged.values())
    shadows = (pool.run_dir / "log" / "ShadowLog").read_text()
    assert 0 <= unlogged <= shadows.count(" was REFUSED\n")
    for job, events in seen.items():
        times = {kind: [e[0] for e in events if e[1] == kind]
                 for kind in (SUBMITTED, STARTED, EVICTED, COMPLETED)}  # fmt: skip
        ad = recorded[job]
        assert (len(times[SUBMITTED]), len(times[COMPLETED])) == (1, 1)
        runs = len(logged[job][STARTED]) if has_log else ad["NumShadowStarts"]
        assert len(times[STARTED]) == runs
        assert len(times[EVICTED]) == runs - 1
        first_s = times[SUBMITTED][0], times[STARTED][0], times[COMPLETED][0]
        queue_s = ad["QDate"], ad["JobStartDate"], ad["CompletionDate"]
        if has_log:  # a record is written after what it tells, as late as the machine is busy
            assert {kind: list(map(int, at_s)) for kind, at_s in times.items()} == logged[job]
            assert all(at_s >= known_s for at_s, known_s in zip(first_s, queue_s, strict=True))
        else:
            assert first_s == queue_s
    machines = classes(tmp_path / "state" / "journal.sqlite")
    started_on = [
        (event[3].eligible, {event[3][0] for event in events if event[1] == STARTED})
        for events in seen.values()
        for event in events
        if event[1] == SUBMITTED and event[3].eligible  # not known of a job that is over at once
    ]
    assert len(started_on) >= JOBS
    assert all(used <= machines[eligible] for eligible, used in started_on)


ASKED = {
    "a machine of cluster A": 'requirements = MachineCluster == "A"',
    "more memory than anybody has": "request_memory = 900 GB",
    "another system": 'requirements = OpSys == "WINDOWS" || Memory > 1000000',
    "more CPUs than a slot has": "request_cpus = 65",
    "one machine by its name": 'requirements = regexp("m3@", Name) && Arch == "X86_64"',
    "nothing": "",
}


ANALYSIS = re.compile(r"Of (\d+) machines,\s+(\d+) are rejected by your job's requirements")


def test_a_job_may_use_the_machines_that_the_pools_own_analysis_counts(
    htcondor_pool: HTCondorPool, tmp_path: Path
) -> None:
    """Test explanations by the journal; `test_choices` covers jobs from before the daemon."""
    pool, asked = htcondor_pool, dict[int, str]()
    journal = tmp_path / "state" / "journal.sqlite"

    def submit(*kinds: str) -> None:
        for what in kinds:
            text = f"executable = /bin/sleep\narguments = 600\n{ASKED[what]}\nqueue\n"
            asked[pool.submit(text)] = what

    def found() -> dict[str, int]:
        jobs = told(journal, set(asked))
        machines = classes(journal)  # which are told before the jobs of them
        said = {
            job: event[3]["eligible"] if event[1] == CHANGED else event[3].eligible
            for job, events in jobs.items()
            for event in events
            if event[1] == SUBMITTED or (event[1] == CHANGED and "eligible" in event[3])
        }
        return {asked[int(job.split(".")[0])]: len(machines[name]) for job, name in said.items()}

    for machine in MACHINES:  # nothing starts, and all is analysed as it waits
        pool.owner_returns(machine)
    try:
        pool.wait_until("owners", lambda: _states(pool) == ["Owner"] * len(MACHINES))
        with daemon_beside(pool, tmp_path, has_log=True) as daemon:
            daemon.wait_until(
                "machines", lambda s: sum(c["machines"] for c in s["clusters"]) == len(MACHINES)
            )
            submit(*ASKED)
            pool.wait_until("what each may use", lambda: len(found()) == len(ASKED))
            assert daemon.stop() == 0
        said = {
            what: ANALYSIS.search(pool.run("root", "condor_q", "-better-analyze", f"{cluster}"))
            for cluster, what in asked.items()
        }
    finally:
        pool.run("root", "condor_rm", "-all")
        for machine in MACHINES:
            pool.owner_leaves(machine)
    counted = {what: int(one[1]) - int(one[2]) for what, one in said.items() if one is not None}
    assert found() == counted
    assert sorted(counted.values()) == [0, 0, 0, 1, 2, 4]


def test_doctor_says_who_answers_and_what_is_missing(
    htcondor_pool: HTCondorPool, tmp_path: Path
) -> None:
    daemon_beside(htcondor_pool, tmp_path, has_log=False)
    words = ("doctor", "--config", tmp_path / "outrider.toml", "--json")
    said = shell(*words, CONDOR_CONFIG=str(tmp_path / "condor_config"))
    checks = {one["name"]: one for one in json.loads(said.out)["checks"]}
    assert checks["adapter htcondor: collector"]["found"] == "knows 4 slots"
    point = checks["adapter htcondor: access point host.pool.test"]
    assert point["state"] == "warn"
    assert "event_logs" in point["remedy"]
    assert checks["adapter htcondor"]["state"] == "ok", checks["adapter htcondor"]


def _states(pool: HTCondorPool) -> list[str]:
    return pool.run("root", "condor_status", "-af", "State").split()
