"""Tests that every job of a real pool is seen once and correctly, with any user text.

One daemon reads the event log, the other has the queue alone. The names and groups of machines
are as hostile as a startd takes them.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from outrider.journal import verify
from tests.cli.running import shell
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import daemon_beside
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

SETTINGS: Final = r"""
M2.MachineCluster = "B \"quoted\" | JobState=COMPLETED {x=1}\nnewline </script>"
M3.STARTD_NAME = m3|;<b>$(x)'"
M4.STARTD_NAME = m4\n"a
"""
MACHINES: Final = {
    "m1@host.pool.test": "A",
    "m2@host.pool.test": r'B "quoted" | JobState=COMPLETED {x=1}\nnewline </script>',
    "m3|;<b>'\"@host.pool.test": "B",
    'm4\\n"a@host.pool.test': "B",
}
MANY: Final = 1_000_000
HELD: Final = "executable = /bin/sleep\narguments = 600\nhold = true\n"
JOBS: Final = {
    "another user": '+User = "bob@pool.test"',
    "another job's id": '+GlobalJobId = "other#1.0#1"\n+ClusterId = 1\n+ProcId = 77',
    "a group with a record in it": r'+AccountingGroup = "a|b\"\n009 (001.000.000) x.bob"',
    "another's group": "accounting_group = physics\naccounting_group_user = bob",
    "markup for a group": r'+AcctGroup = "<script>alert(1)</script>\n...\n"',
    "requests that are none": '+RequestMemory = "lots"\n+RequestCpus = -5\n+RequestGPUs = 1e300',
    "a note with a record in it": r'+LogNotes = "a\n...\n005 (001.000.000) Job terminated.\n"',
    "a batch name": 'batch_name = "x"|;JobState=COMPLETED {}',
    "a megabyte": f'+Junk = "{"x" * MANY}"',
    "conditions of a megabyte": f'requirements = Name != "{"y" * MANY}"',
    "arguments": "arguments = \"'a\\nb' ''\"\"x\"\"'' | ; $(date)\"",
    "environment": "environment = \"A='1\\n2' B='|JobState=COMPLETED'\"",
    "a hold of its own": r'+HoldReason = "red \x1b[31m\n009"' + "\n+HoldReasonCode = 99",
    "times that are none": '+EnteredCurrentStatus = "x"\n+QDate = "soon"',
    "counts that are none": '+NumShadowStarts = "a"\n+RequestCpus = real("INF")',
    "places that are none": '+RemoteHost = 7\n+CpusProvisioned = "many"\n+LastRemoteHost = error',
}
"""Commands that alice adds to jobs that she submits on hold."""

EDITED: Final = {
    "a name of another schedd": ("GlobalJobId", '"other#1.0#5"'),
    "a time of long ago": ("QDate", "5"),
    "a time of the far future": ("EnteredCurrentStatus", "99999999999"),
    "a reason that is a number": ("HoldReason", "3"),
    "a code that is a word": ("VacateReasonCode", '"x"'),
    "a reason of other bytes": ("HoldReason", '"a\udcff\udcfe b"'),
    "a group of other bytes": ("AccountingGroup", '"\udcff"'),
    "conditions of other bytes": ("Requirements", 'TARGET.Name =!= "\udcff"'),
    "a size that is no number": ("RequestMemory", 'real("NaN")'),
    "a size beyond all": ("RequestCpus", "1e300"),
    "a name of 4 kB": ("JobBatchName", f'"@#{"é " * 2_000}"'),
}
"""Edits that alice makes in other jobs that she submitted on hold."""

FORGED: Final = {
    "JobStatus": "2",
    "RemoteHost": '"slot1@m1@host.pool.test"',
    "NumShadowStarts": "1",
    "JobCurrentStartDate": "{now}",
    "CpusProvisioned": "1e300",
}
"""Edits by alice so that her job seems to run where bob's does."""


class Attacked(NamedTuple):
    """A pool of such jobs and machines, and the daemons beside it.

    Attributes:
        running: bob's job on m1, at the mercy of the others.
        seems: alice's job that seems to run there, too.
        jobs: the others, by what is hostile in them.
    """

    pool: HTCondorPool
    daemons: dict[str, DaemonProcess]
    running: str
    seems: str
    jobs: dict[str, str]


def all_have_users(daemon: DaemonProcess, _: dict[str, Any]) -> bool:
    """Return whether it is known of every job whose it is."""
    return all(job["user"] for job in daemon.get("/api/v1/jobs?limit=200")["jobs"])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A real pool with hostile jobs, and a daemon."""
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("hostile")
    with HTCondorPool(folder / "pool", 4, SETTINGS) as pool:
        on_m1 = 'executable = /bin/sleep\narguments = 600\nrequirements = regexp("m1@", Name)\n'
        running = pool.submit(f"{on_m1}request_memory = 64\nqueue\n", "bob")
        pool.wait_for_events(1, 1, running)
        daemons: dict[str, DaemonProcess] = {}
        for name, has_log in (("event log", True), ("queue alone", False)):
            (folder / name).mkdir()
            daemon = daemons[name] = daemon_beside(pool, folder / name, has_log)
            text = daemon.config.read_text()
            daemon.config.write_text(f'show_users = "everybody"\n{text}')
        with daemons["event log"] as one, daemons["queue alone"] as other:
            for daemon in (one, other):
                daemon.wait_until("bob's run", lambda s: s["jobs"]["running"] == 1)
            jobs = {what: pool.submit(f"{HELD}{more}\nqueue\n") for what, more in JOBS.items()}
            for what, edit in EDITED.items():
                jobs[what] = pool.submit(f"{HELD}queue\n")
                pool.run("alice", "condor_qedit", f"{jobs[what]}.0", *edit)
            seems = pool.submit(f"{HELD}queue\n")
            for name, value in FORGED.items():
                words = name, value.format(now=int(time.time()))
                pool.run("alice", "condor_qedit", f"{seems}.0", *words)
            for daemon in (one, other):
                daemon.wait_until(
                    "the jobs",
                    lambda s: (s["jobs"]["held"], s["jobs"]["running"]) == (len(jobs), 2),
                )
                # a busy schedd is asked for what it did not say of a job at the next look
                daemon.wait_until("their users", partial(all_have_users, daemon))
            named = {what: f"host.pool.test#{cluster}.0" for what, cluster in jobs.items()}
            bobs, other_bobs = (f"host.pool.test#{cluster}.0" for cluster in (running, seems))
            yield Attacked(pool, daemons, bobs, other_bobs, named)
            assert one.stop() == 0
            assert other.stop() == 0


@pytest.fixture(params=["event log", "queue alone"])
def daemon(attacked: Attacked, request: pytest.FixtureRequest) -> DaemonProcess:
    """One of the two."""
    return attacked.daemons[request.param]


def test_every_job_is_there_once_under_its_own_user_and_in_its_own_state(
    attacked: Attacked, daemon: DaemonProcess
) -> None:
    known = "ClusterId,ProcId,Owner,JobStatus"
    asked = "condor_q", "-allusers", "-json", "-attributes", known
    ads = json.loads(attacked.pool.run("root", *asked))
    states = {1: "queued", 2: "running", 5: "held"}
    true = sorted(
        (f"host.pool.test#{ad['ClusterId']}.{ad['ProcId']}", ad["Owner"], states[ad["JobStatus"]])
        for ad in ads
    )
    shown = daemon.get("/api/v1/jobs?limit=200")["jobs"]
    assert sorted((job["job"], job["user"], job["state"]) for job in shown) == true
    vos = {job["job"]: job["vo"] for job in shown}
    assert vos[attacked.jobs["another's group"]] == "physics"
    assert vos[attacked.jobs["another user"]] == "all"
    status = daemon.status()
    assert status["jobs"]["completed"] == status["jobs"]["removed"] == 0
    assert status["adapters"][0]["rejected"] == {}
    assert not any(status["set_aside"].values())
    assert status["evictions"] == dict.fromkeys(status["evictions"], 0)


def test_a_job_that_only_seems_to_run_ends_nobodys_run(
    attacked: Attacked, daemon: DaemonProcess
) -> None:
    told = daemon.get(f"/api/v1/explain/{quote(attacked.running, safe='')}")
    assert told["state"] == "running"
    assert told["runs"] == []
    assert daemon.status()["repairs"].get("slot_used_again", 0) == 0


def test_machines_go_by_their_own_names_and_groups(daemon: DaemonProcess) -> None:
    machines = daemon.get("/api/v1/machines?limit=200")["machines"]
    assert {one["machine"]: one["cluster"] for one in machines} == MACHINES


def test_what_is_shown_can_be_read_by_those_for_whom_it_is(
    attacked: Attacked, daemon: DaemonProcess
) -> None:
    families = list(text_string_to_metric_families(daemon.text("/metrics")))
    clusters = {
        sample.labels["cluster"]
        for family in families
        for sample in family.samples
        if sample.name == "outrider_machines"
    }
    assert clusters >= set(MACHINES.values())
    for job in attacked.jobs.values():
        told: dict[str, Any] = daemon.get(f"/api/v1/explain/{quote(job, safe='')}")
        assert told["state"] == "held"
        assert told["batch_system_errors"] == []
        assert told["batch_system"] is not None
        said = shell("explain", job, "--url", daemon.url)
        assert said.code == 0, said.err
        assert all(line.isprintable() for line in said.out.split("\n"))
        assert len(said.out) < 20_000


def test_after_all_of_it_the_journal_is_whole(attacked: Attacked, daemon: DaemonProcess) -> None:
    pool = attacked.pool
    with suppress(RuntimeError):
        pool.run("root", "condor_rm", "alice")
    daemon.wait_until("their end", lambda s: s["jobs"]["held"] == 0)
    [left] = daemon.get("/api/v1/jobs?state=running")["jobs"]
    assert (left["job"], left["user"]) == (attacked.running, "bob")
    checked = verify(Path(daemon.config.parent / "state" / "journal.sqlite"))
    assert checked.problems == []
