"""Every way to lose a run on a real pool, once, and the reason that reaches two journals.

One daemon reads the event log, the other has the queue alone.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from outrider.model.events import EVICTED, HELD, REMOVED, STARTED, NamedEvent
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import daemon_beside, told
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

SETTINGS: Final = """\
PREEMPTION_REQUIREMENTS = RemoteUserPrio > SubmitterUserPrio * 2
RANK = TARGET.Important =?= True
M4.STARTER = /bin/false
M5.STARTER = /home/work/slow_starter
# an eviction is seen before its job runs again
NEGOTIATOR_INTERVAL = 3
NEGOTIATOR_MIN_INTERVAL = 3
NEGOTIATOR_CYCLE_DELAY = 3
"""
KILL_STARTER: Final = """\
for process in /proc/[0-9]*; do
    read -r name <"$process/comm" && [ "$name" = condor_starter ] && kill -9 "${process#/proc/}"
done; true
"""
SLOW_STARTER: Final = "#!/bin/sh\nsleep 9\nexit 1\n"
SEEN_WITHIN_S: Final = 90.0
MOST_ATTEMPTS: Final = 5


class Watched(NamedTuple):
    """A pool, and the journals of the daemons beside it."""

    pool: HTCondorPool
    journals: dict[str, Path]

    def on(self, machine: str, user: str = "alice", more: str = "") -> int:
        """Return the number of a job that runs on a machine which no job had claimed.

        On the claim of a job that has just ended its first start may fail. The queue shows that
        failed start as a run, the event log does not.
        """
        slot = f"slot1@{machine}@host.pool.test"
        state = partial(self.pool.run, "root", "condor_status", slot, "-af", "State")
        self.pool.wait_until(f"{slot} to be unclaimed", lambda: state().split() == ["Unclaimed"])
        cluster = self.submit(machine, user, more)
        self.pool.wait_for_events(1, 1, cluster)
        return cluster

    def submit(self, machine: str, user: str = "alice", more: str = "") -> int:
        """A job for a machine; its number."""
        text = (
            f'executable = /bin/sleep\narguments = 600\nrequirements = regexp("{machine}@", Name)'
        )
        return self.pool.submit(f"{text}\nrequest_memory = 64\n{more}\nqueue\n", user)

    def reasons(self, cluster: int) -> dict[str, list[str]]:
        """Return the reasons of lost runs, in each journal so far."""
        seen = {name: self.told(name, cluster) for name in self.journals}
        return {name: [e[3] for e in events if e[1] == EVICTED] for name, events in seen.items()}

    def told(self, name: str, cluster: int) -> list[NamedEvent]:
        """Return the events of a job in a journal."""
        return told(self.journals[name], {cluster}).get(f"{cluster}.0", [])

    def ended_in_one_second(self, machine: str, command: str, kind: int) -> int:
        """Return the number of a job whose user ended its run, once the log has the end.

        They are written milliseconds apart. Only in the same second the one tells why of the
        other (docs/reference/definitions.md); the next second may have come in between.
        """
        for _ in range(MOST_ATTEMPTS):
            cluster = self.on(machine)
            self.pool.run("alice", command, f"{cluster}")
            self.pool.wait_until(f"end of {cluster}", partial(self._has_ended, cluster, kind))
            times = [e[0] for e in self.told("event log", cluster) if e[1] in (EVICTED, kind)]
            if len({int(time_s) for time_s in times}) == 1:
                return cluster
            self.remove(cluster)
        raise AssertionError(f"{MOST_ATTEMPTS} jobs ended across the border of two seconds")

    def _has_ended(self, cluster: int, kind: int) -> bool:
        """Return whether both journals have this end of a job."""
        seen = [self.told(name, cluster) for name in self.journals]
        return all(any(e[1] == kind for e in events) for events in seen)

    def remove(self, cluster: int) -> None:
        """Take a job off the queue if it is there."""
        with suppress(RuntimeError):  # it may have left
            self.pool.run("root", "condor_rm", f"{cluster}")

    def lost(self, cluster: int, reason: str) -> None:
        """Wait until its first run is lost for this reason in both journals, then remove it."""
        try:
            self.pool.wait_until(
                f"loss of {cluster}", lambda: all(self.reasons(cluster).values()), SEEN_WITHIN_S
            )
            first = {name: found[0] for name, found in self.reasons(cluster).items()}
            seen = [self.told(name, cluster) for name in self.journals]
            assert first == dict.fromkeys(self.journals, reason), seen
        finally:
            self.remove(cluster)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A real pool in which runs are lost in every way, and a daemon."""
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("evictions")
    with HTCondorPool(folder / "pool", 5, SETTINGS) as pool:
        slow = pool.work_dir / "slow_starter"
        slow.write_text(SLOW_STARTER)
        slow.chmod(0o755)
        pool.wait_for_events(0, 1, pool.submit("executable = /bin/true\nhold = true\nqueue\n"))
        daemons: dict[str, DaemonProcess] = {}
        for name, has_log in (("event log", True), ("queue alone", False)):
            (folder / name).mkdir()
            daemons[name] = daemon_beside(pool, folder / name, has_log)
        with daemons["event log"] as one, daemons["queue alone"] as other:
            for daemon in (one, other):
                daemon.wait_until(
                    "machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 5
                )
            journals = {name: folder / name / "state" / "journal.sqlite" for name in daemons}
            yield Watched(pool, journals)
            assert one.stop() == 0
            assert other.stop() == 0


def test_an_owner_who_returns(watched: Watched) -> None:
    cluster = watched.on("m1")
    watched.pool.owner_returns("m1")
    try:
        watched.lost(cluster, "owner")
    finally:
        watched.pool.owner_leaves("m1")


def test_an_administrator_who_drains_the_machine(watched: Watched) -> None:
    cluster = watched.on("m2")
    watched.pool.run("root", "condor_drain", "-quick", "slot1@m2@host.pool.test")
    try:
        watched.lost(cluster, "drained")
    finally:
        watched.pool.run("root", "condor_drain", "-cancel", "slot1@m2@host.pool.test")


def test_a_user_of_better_priority(watched: Watched) -> None:
    pool = watched.pool
    cluster = watched.on("m3", "bob")
    pool.run("root", "condor_userprio", "-setfactor", "bob@pool.test", "1000000")
    try:
        preempting = watched.submit("m3", "alice")
        watched.lost(cluster, "preempted")
        pool.wait_until("its run", partial(bool, pool.machine_of(preempting)))
    finally:
        pool.run("root", "condor_userprio", "-setfactor", "bob@pool.test", "1000")
        pool.run("root", "condor_rm", "alice")


def test_a_job_that_the_machine_ranks_higher_even_of_the_same_user(watched: Watched) -> None:
    cluster = watched.on("m3")
    important = watched.submit("m3", more="+Important = True")
    watched.lost(cluster, "preempted")
    watched.pool.run("root", "condor_rm", f"{important}")


@pytest.mark.parametrize("how", [(), ("-fast",)], ids=["", "fast"])
def test_a_request_to_vacate_has_no_reason_of_its_own(
    watched: Watched, how: tuple[str, ...]
) -> None:
    cluster = watched.on("m1")
    watched.pool.run("alice", "condor_vacate_job", *how, f"{cluster}")
    watched.lost(cluster, "unknown")


def test_a_starter_that_dies_is_lost_from_sight(watched: Watched) -> None:
    pool, slot = watched.pool, "slot1@m2@host.pool.test"
    cluster = watched.on("m2", more="job_lease_duration = 20")

    def is_busy() -> bool:  # a shadow whose starter dies in its first moment waits for its lease
        return pool.run("root", "condor_status", slot, "-af", "Activity").split() == ["Busy"]

    pool.wait_until("a busy slot", is_busy)
    pool.run("root", "sh", "-c", KILL_STARTER)
    watched.lost(cluster, "unknown")


def test_a_program_that_is_not_there_fails_to_start_and_the_job_is_held(watched: Watched) -> None:
    text = "executable = /home/work/none\ntransfer_executable = false\nrequest_memory = 64\n"
    cluster = watched.pool.submit(f'{text}requirements = regexp("m1@", Name)\nqueue\n')
    watched.lost(cluster, "failed_start")


def test_a_machine_on_which_nothing_starts_is_told_with_its_failures(watched: Watched) -> None:
    cluster = watched.submit("m4")
    watched.lost(cluster, "failed_start")
    for name in watched.journals:
        starts = [e for e in watched.told(name, cluster) if e[1] == STARTED]
        assert "m4@host.pool.test" in {event[3][0] for event in starts}


def test_a_start_that_fails_after_the_queue_showed_it_is_a_failed_one(watched: Watched) -> None:
    watched.lost(watched.submit("m5"), "failed_start")


def test_its_user_removes_it_or_holds_it(watched: Watched) -> None:
    ends = (("m1", "condor_rm", REMOVED, "removed"), ("m2", "condor_hold", HELD, "held"))
    said = {"removed": "removed", "held": "via condor_hold (by user alice)"}
    for machine, command, kind, reason in ends:
        cluster = watched.ended_in_one_second(machine, command, kind)
        for name in watched.journals:
            assert [e[3] for e in watched.told(name, cluster) if e[1] == kind] == [said[reason]]
        # the queue alone tells the hold, or the end, and no eviction before it
        assert watched.reasons(cluster) == {"event log": [reason], "queue alone": []}
        watched.remove(cluster)
