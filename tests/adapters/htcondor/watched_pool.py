"""A mock pool, its event log and its watch, for tests that move the pool by hand."""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from outrider.api import Batch, JobSpec, NamedEvent
from outrider.model.events import ELIGIBLE, KIND_NAMES
from outrider_adapters.htcondor import (
    AccessPoint,
    CondorAdapter,
    PoolCalls,
    PoolWatch,
    WatchSettings,
)
from outrider_adapters.htcondor.pool_calls import AdType, HTCondorException, JobAction
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.mock_condor.ads import PoolConfig
from outrider_adapters.mock_condor.collector import Machine
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.mock_condor.pool import MockPool

BEGIN_S = 1_800_000_000.0
JOB = {"executable": "/bin/job", "accounting_group": "physics"}


class WatchedPool:
    """A mock pool of small machines, half of them in cluster A and half in B.

    Args:
        folder: of the event log.
        machines: how many.
        faults: what goes wrong from the beginning; `fails` changes it.
        settings: how it is watched; by default without waiting for anything.
        user: with whose identity.
        has_log: whether the watch may read the event log.
        domain: of its schedd's name.
    """

    def __init__(
        self,
        folder: Path,
        machines: int = 4,
        faults: Faults | None = None,
        settings: WatchSettings | None = None,
        user: str = "outrider",
        has_log: bool = True,
        domain: str = "mock.local",
    ) -> None:
        self.log = folder / "EventLog"
        self.settings = settings or WatchSettings(left_after_s=0, snapshot_s=1, repair_after_s=5)
        self.names = [f"m{number}" for number in range(1, machines + 1)]
        self._file = self.log.open("w", encoding="utf-8")
        self.pool = MockPool(
            [
                Machine(name=name, cluster="A" if 2 * number < machines else "B")
                for number, name in enumerate(self.names)
            ],
            now_s=BEGIN_S,
            rng=random.Random(1),
            event_log=self._file,
            config=PoolConfig(negotiator_interval_s=10.0, uid_domain=domain),
            faults=faults,
            sleep=time.sleep,
        )
        self.point = AccessPoint(self.pool.schedd_name, self.pool.schedd(user), HTCondorException)
        self.calls = PoolCalls(
            self.pool.collector(), AdType.Startd, HTCondorException, (self.point,)
        )
        self.has_log = has_log
        self.clock: Callable[[], float] = self.pool_clock
        self.watch = self.new_watch()
        self.watch.start(None)

    def now(self) -> float:
        """Time that the watch takes as the present."""
        return self.clock()

    def pool_clock(self) -> float:
        """Return the pool's own time, which only the test moves."""
        return self.pool.now_s

    def running_clock(self) -> Callable[[], float]:
        """Return the pool's time from now on, running as fast as real time."""
        ahead_s = self.pool.now_s - time.monotonic()
        return lambda: max(self.pool.now_s, ahead_s + time.monotonic())

    def new_watch(self, start_now: bool = False) -> PoolWatch:
        """Another watch on the same pool, as after a restart; it is not started yet."""
        log = LogtailSettings(
            paths=(str(self.log),),
            format="htcondor",
            start_at="now" if start_now else "beginning",
            settle_s=0.0,
        )
        logs = {self.point.name: log} if self.has_log else {}
        return PoolWatch(self.calls, logs, self.settings, self.now, start_now)

    def fails(self, **faults: float) -> None:
        """Inject this fault from now on, and no other."""
        self.pool.transport.faults = msgspec.convert(faults, Faults)

    def look(self, after_s: float = 0.0) -> Batch:
        """Let so much time pass, then look."""
        self.pool.advance(self.pool.now_s + after_s)
        return self.watch.look()

    def reported(self, after_s: float = 0.0) -> list[tuple[str, str, Any]]:
        """Return kind, subject and extra of the events of a look, except classes."""
        return without_classes(self.look(after_s).events)

    def submit(self, run_s: float, user: str = "alice", **commands: str) -> str:
        """Submit a job; its name."""
        cluster = self.pool.submit(user, JOB | commands, run_s).cluster()
        return f"{self.pool.schedd_name}#{cluster}.0"

    def act(self, action: str, job: str, user: str = "alice") -> None:
        """Hold, release or remove a job of a user's own."""
        done = self.pool.schedd(user).act(JobAction[action.title()], [job.rpartition("#")[2]])
        assert done["TotalSuccess"] == 1, done

    def close(self) -> None:
        """Close the log, at both ends."""
        self.watch.close()
        self._file.close()


def named(event: NamedEvent) -> tuple[str, str, Any]:
    """Return an event without its time, its kind as a word."""
    return KIND_NAMES[event[1]], event[2], event[3]


def without_classes(reported: list[NamedEvent]) -> list[tuple[str, str, Any]]:
    """Events without what they say of classes of machines: `test_eligibility` is about those."""
    return [
        (KIND_NAMES[kind], subject, _without_class(extra))
        for _, kind, subject, extra in reported
        if kind != ELIGIBLE and _without_class(extra) != {}
    ]


def _without_class(extra: Any) -> Any:
    if isinstance(extra, JobSpec):
        return msgspec.structs.replace(extra, eligible="")
    if isinstance(extra, dict):
        return {field: value for field, value in extra.items() if field != "eligible"}
    return extra


def kinds(reported: list[tuple[str, str, Any]], subject: str) -> list[str]:
    """Return the kinds of the events of one job or machine, in order."""
    return [kind for kind, name, _ in reported if name == subject]


def spec_of(reported: list[tuple[str, str, Any]], job: str) -> JobSpec:
    """Return the specification in the submission event of a job."""
    found = [extra for kind, name, extra in reported if (kind, name) == ("submitted", job)]
    assert len(found) == 1, f"{len(found)} submissions of {job} among {reported}"
    assert isinstance(found[0], JobSpec)
    return found[0]


class WatchingAdapter(CondorAdapter):
    """The plainest adapter: it looks at a `WatchedPool` several times a second.

    The pool knows no threads: every look holds the lock, and so must who moves the pool.
    """

    api_version = 1

    name = "watching"
    description = "a mock pool that somebody else moves"

    def __init__(self, site: WatchedPool, lock: threading.Lock) -> None:
        super().__init__("pool", site.settings)
        self._site = site
        self._lock = lock
        self._watch: PoolWatch | None = None

    def begin(self, cursor: Any) -> None:
        self._watch = self._site.new_watch()
        self._watch.start(cursor)

    def look(self) -> Batch:
        assert self._watch is not None
        with self._lock:
            return self._watch.look()

    def pause_s(self, batch: Batch) -> float:
        return 0.05

    def end(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
