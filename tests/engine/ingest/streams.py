"""Named events in the form sources report them, and an event merger with an engine."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.report import report
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.decisions import Decision
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import TraceTime
from outrider.model.machines import MachineSpec
from tests.fixtures.plays import bandit


def guessed(name: str) -> MachineSpec:
    """A machine that is only known because a job ran there."""
    return MachineSpec(cluster=name[:1], inferred=True)


class Quiet:
    """A decision_log that keeps decisions by number."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.rows: list[tuple[Any, ...]] = []

    def decided(self, decision: Decision, /) -> None:
        """A decision was made."""
        d = decision
        self.rows.append((d.time_s, d.policy, d.job, d.action, d.machine, d.reason))

    def ended(self, *outcome: Any) -> None:
        """Ignore the outcome, which is not tested here."""


class Live:
    """Event merger and engine, joined; `out` is the stream that entered the engine."""

    def __init__(self, sources: Sequence[str] = ("log",)) -> None:
        clock = TraceTime(dt.datetime.fromisoformat("2010-01-04T00:00:00"))
        self.site = Site(clock, [])
        self.accounting = Accounting(clock, {}, exact=True)
        self.merger = EventMerger(sources, guessed)
        self.runners = [PolicyRunner(bandit(), False, 600.0)]
        self.decision_log = Quiet(self.site)
        self.engine = Engine(
            self.site, self.accounting, self.runners, self.merger, self.decision_log
        )
        self.out: list[Event] = []

    def tell(self, source: str, events: Sequence[NamedEvent]) -> None:
        """Let events of a source arrive."""
        self.merger.arrive(source, events)

    def seen(self, source: str, until_s: float) -> None:
        """A source has been seen up to a time."""
        for event in self.merger.seen(source, until_s):
            self.out.append(event)
            self.engine.feed([event])

    def all_at_once(self, source: str, events: Sequence[NamedEvent]) -> None:
        """Events arrive and the source has been seen to their end, a little past it."""
        self.tell(source, events)
        self.seen(source, max((event[0] for event in events), default=0.0) + 1.0)

    def told(self) -> dict[str, Any]:
        """The report, decisions and repairs."""
        self.engine.finish(self.site.now)
        return {
            "report": report(
                self.site, self.accounting, self.runners[0].longest_deferral_s(self.site.now)
            ),
            "rows": self.decision_log.rows,
            "repairs": dict(self.merger.normaliser.repairs),
        }


def run_of(
    job: str, machine: str, submit_s: float, start_s: float, end_s: float
) -> list[NamedEvent]:
    """A job's plain life."""
    return [
        (submit_s, ev.SUBMITTED, job, JobSpec()),
        (start_s, ev.STARTED, job, (machine, 1)),
        (end_s, ev.COMPLETED, job, None),
    ]


times = st.integers(0, 40).map(float)
jobs = st.sampled_from(["1.0", "1.1", "2.0"])
hosts = st.sampled_from(["a1", "a2", "b1"])
slots = st.sampled_from(["slot1", "slot1_1"])
bare = st.sampled_from(
    [ev.SUSPENDED, ev.RESUMED, ev.HELD, ev.RELEASED, ev.COMPLETED, ev.DISCONNECTED, ev.RECONNECTED]
)
of_hosts = st.sampled_from(
    [ev.OWNER_CAME, ev.OWNER_WENT, ev.USABLE, ev.REBOOTED, ev.LEFT, ev.ASLEEP, ev.WOKEN, ev.DRAINED]
)
any_event: st.SearchStrategy[NamedEvent] = st.one_of(
    st.tuples(times, st.just(ev.SUBMITTED), jobs, st.just(JobSpec())),
    st.tuples(times, st.just(ev.STARTED), jobs, st.tuples(hosts, st.integers(1, 2))),
    st.tuples(times, st.just(ev.STARTED), jobs, st.tuples(hosts, st.integers(1, 2), slots)),
    st.tuples(times, st.just(ev.EVICTED), jobs, st.sampled_from(ev.EVICTION_REASONS)),
    st.tuples(times, st.just(ev.REMOVED), jobs, st.sampled_from(["removed", "killed"])),
    st.tuples(times, st.just(ev.CHANGED), jobs, st.sampled_from([{"vo": "bio"}, {"cpus": 2}])),
    st.tuples(times, bare, jobs, st.none()),
    st.tuples(times, of_hosts, hosts, st.none()),
    st.tuples(times, st.just(ev.POWER), hosts, st.just(80.0)),
    st.tuples(
        times, st.just(ev.JOINED), hosts,
        st.builds(MachineSpec, cluster=st.sampled_from(["a", "b"]), cpus=st.integers(1, 3),
                  active_w=st.just(90.0), idle_w=st.just(30.0), sleep_w=st.just(2.0)),
    ),
)  # fmt: skip
any_events = st.lists(any_event, max_size=40)
