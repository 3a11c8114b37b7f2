"""The mock pool beside a real one: the same submit file, the same story, the same job states."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest

from outrider.api import NamedEvent, ReaderOptions
from outrider.model.events import EVICTED, HELD
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.htcondor.watched_pool import kinds, named
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer

import htcondor2  # isort: skip  # after what skips without it
from outrider_adapters.htcondor import (
    AccessPoint,
    PoolCalls,
    PoolWatch,
    WatchSettings,
    edit_and_read_back,
)

from outrider_adapters.logtail import LogtailSettings  # isort: skip
from outrider_adapters.mock_condor.ads import PoolConfig  # isort: skip
from outrider_adapters.mock_condor.collector import Machine  # isort: skip
from outrider_adapters.mock_condor.pool import MockPool  # isort: skip

pytestmark = pytest.mark.htcondor

SLEEP = "executable = /bin/sleep\nrequest_memory = 64\n"
ON_A = 'requirements = TARGET.MachineCluster == "A"\n'
ON_B = 'requirements = TARGET.MachineCluster == "B"\n'
NOWHERE = 'requirements = TARGET.MachineCluster == "nowhere"\n'
SUBMIT_FILES = {
    "plain": f"{SLEEP}{ON_A}arguments = 2\npriority = 10",
    "evicted": f"{SLEEP}{ON_A}arguments = 16",
    "released": f"{SLEEP}{ON_B}arguments = 2\npriority = -5\nhold = true",
    "removed idle": f"{SLEEP}{NOWHERE}arguments = 600",
    "removed running": f"{SLEEP}{ON_B}arguments = 600",
    "held running": f"{SLEEP}{ON_B}arguments = 600",
}
"""Small jobs with different requirements and priorities, by what becomes of them."""
TOKENS = "SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS\n"
CLIENT = {
    "SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS",
    "NO_DNS": "True",
    "DEFAULT_DOMAIN_NAME": "pool.test",
    "NETWORK_INTERFACE": "127.0.0.1",
}


class Stage(Protocol):
    """A pool on which the story is played."""

    log: Path

    def submit(self, text: str) -> str: ...
    def command(self, name: str, job: str) -> None: ...
    def machine_of(self, job: str) -> str: ...
    def owner(self, machine: str, here: bool) -> None: ...
    def wait_until(self, what: str, holds: Callable[[], bool]) -> None: ...


class RealStage:
    """Run the story on the real pool, by its own commands."""

    def __init__(self, pool: HTCondorPool) -> None:
        self.pool = pool
        self.log = pool.event_log

    def submit(self, text: str) -> str:
        return f"{self.pool.submit(f'{text}{chr(10)}queue{chr(10)}')}.0"

    def command(self, name: str, job: str) -> None:
        self.pool.run("alice", name, job)

    def machine_of(self, job: str) -> str:
        return self.pool.machine_of(int(job.split(".")[0]))

    def owner(self, machine: str, here: bool) -> None:
        (self.pool.owner_returns if here else self.pool.owner_leaves)(machine)

    def wait_until(self, what: str, holds: Callable[[], bool]) -> None:
        self.pool.wait_until(what, holds)


class MockStage:
    """Run the story on the mock pool, by the bindings' calls, on a clock that it moves."""

    ACTIONS: ClassVar = {
        "condor_rm": htcondor2.JobAction.Remove,
        "condor_hold": htcondor2.JobAction.Hold,
        "condor_release": htcondor2.JobAction.Release,
    }

    def __init__(self, folder: Path) -> None:
        self.log = folder / "EventLog"
        self.file = self.log.open("w", encoding="utf-8")
        self.pool = MockPool(
            [Machine(name=f"m{n}", cluster="A" if n < 3 else "B") for n in range(1, 5)],
            now_s=1_800_000_000.0,
            rng=random.Random(1),
            event_log=self.file,
            config=PoolConfig(negotiator_interval_s=1.0),
        )
        self.schedd = self.pool.schedd("alice")

    def submit(self, text: str) -> str:
        return f"{self.schedd.submit(htcondor2.Submit(text)).cluster()}.0"

    def command(self, name: str, job: str) -> None:
        done = self.schedd.act(self.ACTIONS[name], [job], (f"via {name} (by user alice)", 1))
        assert done["TotalSuccess"] == 1

    def machine_of(self, job: str) -> str:
        cluster = job.split(".")[0]
        [ad] = self.schedd.query(f"ClusterId == {cluster}", ["RemoteHost"])
        return str(ad["RemoteHost"]).partition("@")[2]

    def owner(self, machine: str, here: bool) -> None:
        (self.pool.owner_came if here else self.pool.owner_went)(machine)

    def wait_until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline_s = self.pool.now_s + 600
        while not holds():
            assert self.pool.now_s < deadline_s, f"no {what} within 600 s of the pool's clock"
            self.pool.advance(self.pool.now_s + 0.5)


def read(log: Path) -> list[NamedEvent]:
    """The whole event log, through our reader, jobs by their short ids."""
    reading = HTCondorLogReader(ReaderOptions()).read(log.read_bytes(), final=True)
    assert reading.rejected == {}
    return [
        (at_s, kind, job.rpartition("#")[2], extra) for at_s, kind, job, extra in reading.events
    ]


def play(stage: Stage) -> dict[str, list[tuple[str, object]]]:
    """Play the story; the states of each job, in order, with the reason where there is one."""
    jobs = {role: stage.submit(text) for role, text in SUBMIT_FILES.items()}

    def wait_for(role: str, kind: str, times: int = 1) -> None:
        def has() -> bool:
            told = [named(event) for event in read(stage.log)] if stage.log.exists() else []
            return kinds(told, jobs[role]).count(kind) >= times

        stage.wait_until(f"{kind} of the job to be {role}", has)

    wait_for("evicted", "started")
    machine = stage.machine_of(jobs["evicted"])
    stage.owner(machine, here=True)
    wait_for("evicted", "evicted")
    wait_for("evicted", "started", times=2)
    assert stage.machine_of(jobs["evicted"]) != machine
    stage.owner(machine, here=False)
    wait_for("removed running", "started")
    stage.command("condor_rm", jobs["removed running"])
    wait_for("held running", "started")
    stage.command("condor_hold", jobs["held running"])
    stage.command("condor_rm", jobs["removed idle"])
    stage.command("condor_release", jobs["released"])
    for role in ("plain", "evicted", "released"):
        wait_for(role, "completed")
    wait_for("removed running", "removed")
    wait_for("held running", "held")
    wait_for("removed idle", "removed")
    return {role: states(read(stage.log), job) for role, job in jobs.items()}


def states(told: list[NamedEvent], job: str) -> list[tuple[str, object]]:
    """Return the states of a job, in order, with the reason where there is one.

    A real pool may write the end of a run and the hold or removal that caused it in two
    seconds. The log does not say the cause then (only records of one second belong together),
    so the reason has to be *unknown* there; it is returned as the pool's story has it.
    """
    found: list[tuple[str, object]] = []
    ended_s = 0
    for event in (event for event in told if event[2] == job):
        kind, _, extra = named(event)
        if kind in ("held", "removed") and found and found[-1][0] == "evicted":
            same_second = int(event[0]) == ended_s
            assert found[-1][1] == (kind if same_second else "unknown")
            found[-1] = ("evicted", kind)
        ended_s = int(event[0])
        found.append((kind, extra if isinstance(extra, str) else None))
    return found


def test_an_end_and_its_cause_in_two_seconds() -> None:
    apart = [(9.9, EVICTED, "1.0", "unknown"), (10.1, HELD, "1.0", "by alice")]
    together = [(9.1, EVICTED, "1.0", "held"), (9.9, HELD, "1.0", "by alice")]
    story: list[tuple[str, object]] = [("evicted", "held"), ("held", "by alice")]
    assert states(apart, "1.0") == states(together, "1.0") == story
    with pytest.raises(AssertionError):
        states([(9.1, EVICTED, "1.0", "unknown"), *together[1:]], "1.0")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTCondorPool]:
    """A real pool of its own, for it is restarted to let clients from outside in."""
    require_peer("HTCondor pool", missing_reason())
    os.environ.pop("CONDOR_CONFIG", None)  # the bindings set it, and the pool would inherit it
    with HTCondorPool(tmp_path_factory.mktemp("mock-against")) as running:
        yield running


@pytest.fixture
def bob(pool: HTCondorPool, tmp_path: Path) -> Iterator[PoolCalls]:
    """The real pool's calls with the identity of bob, who owns none of the jobs."""
    (pool.run_dir / "config" / "30-tokens.config").write_text(TOKENS)
    (tmp_path / "token").write_text(
        pool.run("root", "condor_token_create", "-identity", "bob@pool.test")
    )
    (tmp_path / "token").chmod(0o600)
    pool.run("root", "condor_restart", "-fast")
    ours = {**CLIENT, "SEC_TOKEN_DIRECTORY": str(tmp_path)}
    before = {name: htcondor2.param.get(name) for name in ours}
    htcondor2.param.update(ours)
    collector = htcondor2.Collector(pool.collector)
    slot_ads, failure = htcondor2.AdType.Startd, htcondor2.HTCondorException

    def is_back() -> bool:
        try:
            schedds = collector.locateAll(htcondor2.DaemonType.Schedd)
            slots = collector.query(slot_ads, "true", ["Name"])
        except failure:
            return False
        return len(schedds) == 1 and len(slots) == len(pool.machines)

    pool.wait_until("pool after its restart", is_back)
    [ad] = collector.locateAll(htcondor2.DaemonType.Schedd)
    point = AccessPoint(ad["Name"], htcondor2.Schedd(ad), failure)
    yield PoolCalls(collector, slot_ads, failure, (point,))
    for name, value in before.items():
        htcondor2.param[name] = value or ""


def test_the_same_submit_file_gives_the_same_job_states_on_both(
    pool: HTCondorPool, tmp_path: Path
) -> None:
    mock = MockStage(tmp_path)
    try:
        on_mock = play(mock)
    finally:
        mock.file.close()
    on_real = play(RealStage(pool))
    assert on_mock == on_real
    assert [kind for kind, _ in on_real["evicted"]] == [
        "submitted", "started", "evicted", "started", "completed",
    ]  # fmt: skip


def test_a_real_pool_is_watched_by_its_calls(pool: HTCondorPool, bob: PoolCalls) -> None:
    log = LogtailSettings(
        paths=(str(pool.event_log),), format="htcondor", start_at="beginning", settle_s=0.5
    )
    settings = WatchSettings(snapshot_s=2, repair_after_s=5)
    [point] = bob.access_points
    watch = PoolWatch(bob, {point.name: log}, settings, time.time)
    watch.start(None)
    told: list[tuple[str, str, Any]] = []
    cluster = pool.submit(
        f"{SLEEP}arguments = 16\naccounting_group = physics\naccounting_group_user = alice\nqueue\n"
    )
    job = f"{point.name}#{cluster}.0"

    def tells(kind: str, name: str, times: int = 1) -> Callable[[], bool]:
        def has() -> bool:
            told.extend(named(event) for event in watch.look().events)
            return kinds(told, name).count(kind) >= times

        return has

    pool.wait_until("start", tells("started", job))
    [machine] = [extra[0] for kind, name, extra in told if (kind, name) == ("started", job)]
    name = machine.partition("@")[0]
    pool.owner_returns(name)
    pool.wait_until("owner seen", tells("owner_came", machine))
    pool.wait_until("second start", tells("started", job, times=2))
    pool.owner_leaves(name)
    pool.wait_until("machine open again", tells("usable", machine))

    refused = edit_and_read_back(point, [job], "JobPrio", "7")
    assert list(refused) == [job], "bob may not change a job of alice's"
    pool.wait_until("completed", tells("completed", job))
    watch.close()

    joined = {name.partition("@")[0]: x.cluster for kind, name, x in told if kind == "joined"}
    assert joined == {"m1": "A", "m2": "A", "m3": "B", "m4": "B"}
    [spec] = [extra for kind, name, extra in told if (kind, name) == ("submitted", job)]
    assert (spec.user, spec.vo) == ("alice", "physics")
    assert [x for kind, name, x in told if (kind, name) == ("evicted", job)] == ["owner"]
    assert kinds(told, machine)[1:] == ["owner_came", "owner_went", "usable"]
