"""Tests of reasons for waiting on a real pool, compared with the pool's own answers."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from outrider.api import events
from outrider_adapters.htcondor import WatchSettings
from outrider_adapters.htcondor.reasons import NegotiatorWatch
from outrider_adapters.htcondor.slots import SlotWatch
from tests.cli.running import shell
from tests.peers.explained_on_htcondor.pools_own_words import words
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import daemon_beside
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

MACHINES: Final = ("m1", "m2", "m3", "m4")
SLEEP: Final = "executable = /bin/sleep\narguments = 600\n"
ANALYSIS: Final = re.compile(r"Of (\d+) machines,\s+(\d+) are rejected by your job's requirements")
STEP: Final = re.compile(r"^\[\d+\]\s+(\d+)\s+(\S.*?)\s*$", re.MULTILINE)
"""A row of the analysis: how many slots a condition alone matches, and the condition."""

WITHIN_S: Final = 60.0


def remove_all(pool: HTCondorPool) -> None:
    """No job is left; `condor_rm` takes it for an error that there was none."""
    with suppress(RuntimeError):
        pool.run("root", "condor_rm", "-all")


@contextmanager
def owners_everywhere(pool: HTCondorPool) -> Iterator[None]:
    """Nothing starts within the block."""
    for machine in MACHINES:
        pool.owner_returns(machine)
    try:
        pool.wait_until("owners", lambda: _states(pool) == ["Owner"] * len(MACHINES))
        yield
    finally:
        remove_all(pool)
        for machine in MACHINES:
            pool.owner_leaves(machine)


@pytest.fixture
def daemon(htcondor_pool: HTCondorPool, tmp_path: Path) -> Iterator[DaemonProcess]:
    """Run a daemon in shadow that shows users' names; its jobs are removed afterwards."""
    made = daemon_beside(htcondor_pool, tmp_path, has_log=True)
    text = made.config.read_text()
    made.config.write_text(f'show_users = "everybody"\n{text}')
    with made as running:
        running.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        yield running
        remove_all(htcondor_pool)
        assert running.stop() == 0


def why(
    daemon: DaemonProcess, cluster: int, holds: Callable[[Any], bool] = lambda said: True
) -> dict[str, Any]:
    """Return the explanation of a job, once the pool's answer meets a condition."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        answer: dict[str, Any] = daemon.get(f"/api/v1/explain/host.pool.test%23{cluster}.0")
        said = answer.get("batch_system")
        if said is not None and holds(said):
            return answer
        if time.monotonic() > deadline_s:
            shown = json.dumps(answer, indent=1)
            raise AssertionError(f"{shown}\n{daemon.log.read_text()[-3000:]}")
        time.sleep(0.5)


def _states(pool: HTCondorPool) -> list[str]:
    return pool.run("root", "condor_status", "-af", "State").split()


def _is_said(like: str, said: dict[str, Any]) -> bool:
    return re.search(like, said["sentence"]) is not None


def _of_queue(pool: HTCondorPool, cluster: int, attribute: str) -> str:
    return pool.run("root", "condor_q", f"{cluster}.0", "-af", attribute).strip()


def _is(pool: HTCondorPool, cluster: int, status: str) -> bool:
    return _of_queue(pool, cluster, "JobStatus") == status


ASKED: Final = {
    "nothing": "",
    "more memory than anybody has": "request_memory = 900 GB",
    "more CPUs than a slot has": "request_cpus = 65",
    "another system": 'requirements = OpSys == "WINDOWS"',
    "a machine of cluster A": 'requirements = MachineCluster == "A"',
    "one machine by its name": 'requirements = regexp("m3@", Name)',
    "two that exclude each other": 'requirements = MachineCluster == "A" && regexp("m3@", Name)',
}


def test_the_counts_are_those_of_the_pools_own_analysis(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    compared = set[str]()
    with owners_everywhere(pool):
        jobs = {what: pool.submit(f"{SLEEP}{text}\nqueue\n") for what, text in ASKED.items()}
        for what, cluster in jobs.items():
            said = why(daemon, cluster, lambda said: said["machines"] is not None)["batch_system"]
            analysis = pool.run("root", "condor_q", "-better-analyze", f"{cluster}")
            counted = ANALYSIS.search(analysis)
            assert counted is not None, analysis
            assert said["machines"] == int(counted[1]) - int(counted[2]), (what, analysis)
            assert said["never"] == (said["machines"] == 0), what
            theirs = {words(text): int(n) for n, text in STEP.findall(analysis)}
            for clause in said["clauses"]:
                matched = theirs.get(words(clause["text"]))
                if matched is not None:
                    compared.add(what)
                    assert clause["machines"] == matched, (what, clause, analysis)
    assert compared >= set(ASKED) - {"nothing"}, "clauses stand in the pool's own analysis"


def test_memory_that_nobody_has_and_the_request_that_matches(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    cluster = pool.submit(f"{SLEEP}request_memory = 900 GB\nqueue\n")
    answer = why(daemon, cluster, lambda said: bool(said["remedies"]))
    said = answer["batch_system"]
    assert said["never"]
    first = said["remedies"][0]
    found = re.fullmatch(
        r"ask for at most 256 MB of memory: 4 machines match then: (condor_qedit .+)", first
    )
    assert found is not None, said
    assert answer["sentence"].startswith(
        f"host.pool.test#{cluster}.0 waits: none of the pool's 4 machines may run it"
    )
    told = shell("explain", f"{cluster}.0", "--url", daemon.url)
    assert f"what would change it: {first}" in told.out
    pool.run("alice", *found[1].split())  # what was advised is done, and it runs
    pool.wait_until("its run", partial(_is, pool, cluster, "2"))


def test_holds_are_told_in_the_pools_own_words(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    made = {
        "submitted on hold": pool.submit(f"{SLEEP}hold = true\nqueue\n"),
        "missing executable": pool.submit(
            "executable = /home/work/none\ntransfer_executable = false\nqueue\n"
        ),
        "its own policy": pool.submit("executable = /bin/true\non_exit_hold = true\nqueue\n"),
        "missing input": pool.submit(
            f"{SLEEP}should_transfer_files = yes\ntransfer_input_files = /home/work/none\nqueue\n"
        ),
        "its user": pool.submit(f"{SLEEP}request_memory = 900 GB\nqueue\n"),
    }
    pool.run("alice", "condor_hold", f"{made['its user']}")
    codes = {}
    for what, cluster in made.items():
        pool.wait_until(f"hold: {what}", partial(_is, pool, cluster, "5"))
        try:
            said = why(daemon, cluster, lambda said: said["code"] != "Idle")["batch_system"]
        except AssertionError as error:  # once a held job was taken to run: what did the log say?
            error.add_note(f"{what}:\n{pool.event_log.read_text()[-6000:]}")
            raise
        reason = " ".join(_of_queue(pool, cluster, "HoldReason").split())
        assert said["sentence"] == f"it is held: {reason[:300]}", what
        assert said["code"].split(".")[0] == _of_queue(pool, cluster, "HoldReasonCode")
        codes[what] = int(said["code"].split(".")[0])
        assert f"condor_release {cluster}.0" in said["remedies"][0]
    assert (codes["submitted on hold"], codes["its own policy"], codes["its user"]) == (15, 3, 1)
    assert codes["missing executable"] in (6, 14)
    pool.run("alice", *f"condor_release {made['submitted on hold']}.0".split())
    pool.wait_until("its run", partial(_is, pool, made["submitted on hold"], "2"))


def test_machines_that_others_and_owners_use(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    pool.submit(f"{SLEEP}request_memory = 64\nqueue 4\n")
    pool.wait_until("a full pool", lambda: _states(pool) == ["Claimed"] * 4)
    waits = pool.submit(f'{SLEEP}request_memory = 64\nrequirements = MachineCluster == "A"\nqueue')
    full = "2 of the pool's 4 machines may run it, and none of them has room for it now"
    said = why(daemon, waits, lambda said: said["sentence"].startswith(full))["batch_system"]
    assert (said["machines"], said["never"]) == (2, False)
    with owners_everywhere(pool):
        owned = f"{full}, 2 of them used by their owners"
        why(daemon, waits, lambda said: said["sentence"].startswith(owned))


def test_who_comes_before_is_as_the_pools_own_priorities_have_it(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    busy = pool.submit(f"{SLEEP}request_memory = 64\nqueue 4\n", "bob")
    pool.wait_until("a full pool", lambda: _states(pool) == ["Claimed"] * 4)
    pool.submit(f"{SLEEP}request_memory = 64\nqueue 3\n", "bob")
    pool.submit(f"{SLEEP}request_memory = 64\nqueue 2\n")
    waits = pool.submit(f"{SLEEP}request_memory = 64\nqueue\n")
    pool.run("root", "condor_userprio", "-setfactor", "alice@pool.test", "1000000")
    try:
        said = why(daemon, waits, lambda said: said["ahead"] == 5)["batch_system"]
        before = "3 idle jobs of 1 user of better priority and 2 idle jobs of its own user"
        assert before in said["sentence"]
        pool.run("root", "condor_userprio", "-setfactor", "bob@pool.test", "100000000")
        said = why(daemon, waits, lambda said: said["ahead"] == 2)["batch_system"]
        assert "; 2 idle jobs of its own user come before it" in said["sentence"]
        pool.run("alice", "condor_prio", "-p", "10", f"{waits}.0")
        why(daemon, waits, lambda said: said["ahead"] == 0)
        pool.run("root", "condor_rm", f"{busy}.0")
        pool.wait_until("its run", partial(_is, pool, waits, "2"))  # who is first is next
    finally:
        for user in ("alice", "bob"):
            pool.run("root", "condor_userprio", "-setfactor", f"{user}@pool.test", "1000")


OTHER_CAUSES: Final = {
    "a time": ("deferral_time = 2000000000\n", "it starts at 2033-05-18 03:33:20 UTC at the earl"),
    "cron": ("cron_minute = 0\ncron_month = 2\ncron_day_of_month = 28\n", "time of its cron_ set"),
    "another system": ("universe = grid\ngrid_resource = batch slurm\n", "it is for batch slurm"),
    "several": ("universe = parallel\nmachine_count = 2\n", "needs 2 slots together; 0 slots of"),
    "a drained machine": ('requirements = regexp("m2@", Name)\n', "administrator .broken fan."),
    "a ceiling": ("", "alice@pool.test uses 1 of at most 1 CPUs .its ceiling.; 4 of the pool's 4"),
    "another's ceiling": ("accounting_group_user = carol\n", "carol@pool.test uses 0 of at most 0"),
}
"""Requests of jobs, and what keeps each; the negotiator's next cycles would not help."""


def test_a_cause_other_than_machines_is_named_and_until_when(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    pool.run("root", "condor_drain", "-reason", "broken fan", "slot1@m2@host.pool.test")
    pool.run("root", "condor_userprio", "-setceil", "alice@pool.test", "1")
    pool.run("root", "condor_userprio", "-setceil", "carol@pool.test", "0")  # has no usage
    try:
        pool.wait_until("the drain", lambda: "Drained" in _states(pool))
        pool.wait_until("its reason", lambda: "broken fan" in _closed_because(daemon))
        first = pool.submit(f"{SLEEP}request_memory = 64\nqueue\n")
        pool.wait_until("its run", partial(_is, pool, first, "2"))
        jobs = {
            what: pool.submit(f"{SLEEP}request_memory = 64\n{text}queue\n")
            for what, (text, _) in OTHER_CAUSES.items()
            if what != "a drained machine"
        }
        for what, cluster in jobs.items():
            said = why(daemon, cluster, partial(_is_said, OTHER_CAUSES[what][1]))
            assert "negotiator's next cycles" not in said["batch_system"]["remedies"][0]
        pool.run("root", "condor_userprio", "-setceil", "alice@pool.test", "-1")
        drained = pool.submit(f"{SLEEP}{OTHER_CAUSES['a drained machine'][0]}queue\n", "bob")
        said = why(daemon, drained, lambda said: "broken fan" in said["sentence"])
        assert said["batch_system"]["remedies"][0].startswith("wait until an administrator opens")
    finally:
        for user in ("alice", "carol"):
            pool.run("root", "condor_userprio", "-setceil", f"{user}@pool.test", "-1")
        pool.run("root", "condor_drain", "-cancel", "slot1@m2@host.pool.test")
        pool.wait_until("no drain", lambda: "Drained" not in _states(pool))


def _closed_because(daemon: DaemonProcess) -> set[str | None]:
    return {one["closed_because"] for one in daemon.get("/api/v1/machines")["machines"]}


def test_a_negotiator_that_was_stopped_is_said_everywhere(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    pool.run("root", "condor_off", "-negotiator")
    try:
        waits = pool.submit(f"{SLEEP}request_memory = 64\nqueue\n")
        daemon.wait_until("problem", lambda s: "negotiator" in s["adapters"][0]["problem"])
        [reason] = daemon.get("/readyz")["reasons"]
        assert "the pool's negotiator does not run" in reason
        said = why(daemon, waits, lambda said: "negotiator does not run" in said["sentence"])
        assert "condor_on -negotiator" in said["batch_system"]["remedies"][0]
        words = ("doctor", "--config", daemon.config, "--json")
        told = shell(*words, CONDOR_CONFIG=str(daemon.config.with_name("condor_config")))
        checks = {one["name"]: one for one in json.loads(told.out)["checks"]}
        assert checks["adapter htcondor: negotiator"]["state"] == "fail"
    finally:
        pool.run("root", "condor_on", "-negotiator")
    daemon.wait_until("no problem", lambda s: s["adapters"][0]["up"])
    pool.wait_until("its run", partial(_is, pool, waits, "2"))
    assert "adapter_down" in daemon.log.read_text()


def test_a_negotiator_that_hangs_is_known_by_the_end_of_its_last_cycle(
    htcondor_pool: HTCondorPool,
) -> None:
    from outrider_adapters.htcondor.locating import located

    pool = htcondor_pool
    watch = NegotiatorWatch(located(pool.collector, ())[0], silent_after_s=1e6)
    watch.look(time.time())
    assert watch.problem == ""
    pool.run("root", "pkill", "-STOP", "-x", "condor_negotiat")
    try:
        pool.wait_until("no more cycles", lambda: _hangs_later(watch))
        assert "negotiator has ended no cycle for more than" in watch.problem
    finally:
        pool.run("root", "pkill", "-CONT", "-x", "condor_negotiat")
    pool.wait_until("a cycle", lambda: not _hangs_later(watch))


def _hangs_later(watch: NegotiatorWatch) -> bool:
    """Return whether no cycle ended since the last look, by one that is made an hour later."""
    watch.look(time.time())
    time.sleep(3.0)
    watch.look(time.time() + 3_600.0)
    return watch.problem != ""


def test_a_job_that_runs_or_has_left_waits_for_nothing(
    htcondor_pool: HTCondorPool, daemon: DaemonProcess
) -> None:
    pool = htcondor_pool
    cluster = pool.submit(f"{SLEEP}request_memory = 64\nqueue\n")
    name = f"host.pool.test%23{cluster}.0"
    pool.wait_until("its run", partial(_is, pool, cluster, "2"))

    def explained() -> dict[str, Any]:
        answer: dict[str, Any] = daemon.get(f"/api/v1/explain/{name}")
        return answer

    # another job of the pool may run still: it is this one that is waited for
    pool.wait_until("its start", lambda: explained().get("state") == "running")
    assert explained()["batch_system"] is None
    pool.run("root", "condor_rm", f"{cluster}")
    pool.wait_until("its end", lambda: explained().get("state") != "running")
    assert explained().get("batch_system") is None


PARTITIONABLE: Final = """\
NUM_CPUS = 4
MEMORY = 1024
MACHINE_RESOURCE_GPUs = CUDA0
SLOT_TYPE_1 = cpus=4, memory=1024, gpus=1
SLOT_TYPE_1_PARTITIONABLE = True
CLAIM_PARTITIONABLE_LEFTOVERS = False
"""


def test_what_is_left_of_a_partitionable_slot_may_be_too_little(tmp_path: Path) -> None:
    require_peer("HTCondor pool", missing_reason())
    with HTCondorPool(tmp_path / "pool", 2, PARTITIONABLE) as pool:
        made = daemon_beside(pool, tmp_path, has_log=True)
        made.config.write_text(f'show_users = "everybody"\n{made.config.read_text()}')
        with made as daemon:
            daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 2)
            wide = f"{SLEEP}request_memory = 64\nrequest_cpus = 2\nrequirements = regexp("
            for machine in ("m1", "m2"):
                pool.submit(f'{wide}"{machine}@", Name)\nqueue\n')
            pool.wait_until("2 runs", lambda: len(_running(pool)) == 2)
            waits = pool.submit(f"{SLEEP}request_memory = 64\nrequest_cpus = 3\nqueue\n")
            full = "2 of the pool's 2 machines may run it, and none of them has room for it now"
            said = why(daemon, waits, lambda said: said["sentence"].startswith(full))
            assert said["batch_system"]["machines"] == 2
            never = pool.submit(f"{SLEEP}request_memory = 64\nrequest_cpus = 5\nqueue\n")
            told = why(daemon, never)["batch_system"]
            assert told["never"]
            assert told["remedies"][0].startswith("ask for at most 4 CPUs: 2 machines match then")
            small = pool.submit(f"{SLEEP}request_memory = 64\nrequest_cpus = 2\nqueue\n")
            pool.wait_until("its run in what is left", partial(_is, pool, small, "2"))
            with_gpu = f"{SLEEP}request_memory = 64\nrequest_cpus = 1\nrequest_gpus = 1\nqueue 2\n"
            on_gpus = pool.submit(with_gpu)
            pool.wait_until("a GPU's run", lambda: f"{on_gpus}" in _running(pool))
            last = pool.submit(with_gpu.replace("queue 2", "queue 9"), "bob")
            full = "2 of the pool's 2 machines may run it, and none of them has room for it now"
            why(daemon, last, lambda said: said["sentence"].startswith(full))
            assert daemon.stop() == 0


def test_no_more_cpus_are_busy_than_there_are_while_runs_are_disconnected(tmp_path: Path) -> None:
    require_peer("HTCondor pool", missing_reason())
    with HTCondorPool(tmp_path / "pool", 1, PARTITIONABLE) as pool:
        cut = pool.submit(f"{SLEEP}request_memory = 64\nrequest_cpus = 2\nqueue 2\n")
        pool.wait_for_events(1, 2, cut)
        daemons = [_beside(pool, tmp_path / name, name == "log") for name in ("log", "queue")]
        with daemons[0], daemons[1]:
            for daemon in daemons:
                daemon.wait_until("2 runs", lambda s: s["jobs"]["running"] == 2)
            pool.run("root", "pkill", "-KILL", "-x", "condor_startd|condor_starter")
            pool.wait_for_events(22, 2, cut)
            away = "is running on m1@host.pool.test, or was: the connection to it is lost"
            for daemon in daemons:
                pool.wait_until("lost", partial(_is_explained, daemon, cut, away))
            new = pool.submit(f"{SLEEP}request_memory = 64\nrequest_cpus = 4\nqueue\n", "bob")
            pool.wait_for_events(1, 1, new)  # the master starts the startd again; it is empty
            assert _of_queue(pool, cut, "JobStatus") == "2"
            for daemon in daemons:
                daemon.wait_until("its run", lambda s: s["jobs"]["running"] == 1)
                [machine] = daemon.get("/api/v1/machines")["machines"]
                assert (machine["busy_cpus"], machine["cpus"]) == (4, 4)
                said = why(daemon, cut, partial(_is_said, "its access point lost the connection"))
                assert said["sentence"].startswith(f"host.pool.test#{cut}.0 ran on slot1_")
                assert daemon.stop() == 0
        _is_closed_when_it_is_off(pool)


def _is_closed_when_it_is_off(pool: HTCondorPool) -> None:
    """Switch the only machine off: the collector lacks it, and was not restarted."""
    from outrider_adapters.htcondor.locating import located

    slots = SlotWatch(located(pool.collector, ())[0], WatchSettings(left_after_s=10.0))
    slots.look(time.time())
    assert slots.machines["m1@host.pool.test"].usable
    pool.run("root", "condor_off", "-fast", "-daemon", "STARTD_M1")
    # the killed startd's own dynamic slots are there still
    whole = "condor_status", "-constraint", "PartitionableSlot", "-af", "State"
    pool.wait_until("no slot", lambda: not pool.run("root", *whole).strip())
    time.sleep(1.1)  # from then on all slots are asked for again
    [(_, kind, _, _)] = slots.look(time.time())
    assert kind == events.DRAINED


def _beside(pool: HTCondorPool, folder: Path, has_log: bool) -> DaemonProcess:
    folder.mkdir()
    made = daemon_beside(pool, folder, has_log)
    made.config.write_text(f'show_users = "everybody"\n{made.config.read_text()}')
    return made


def _is_explained(daemon: DaemonProcess, cluster: int, words: str) -> bool:
    """Return whether the explanation of a job has these words."""
    return words in daemon.get(f"/api/v1/explain/host.pool.test%23{cluster}.0")["sentence"]


def _running(pool: HTCondorPool) -> list[str]:
    return pool.run("root", "condor_q", "-allusers", "-run", "-af", "ClusterId").split()
