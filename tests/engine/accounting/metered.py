"""A machine with a meter, played through the engine and integrated a second way beside it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.machine_power import METER_VALID_S
from outrider.engine.engine import Engine
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import ClusterSpec, MachineSpec
from outrider.testing.fixtures import KeptDecisions
from tests.fixtures.plays import NoActuator

SLEEP_AFTER_S: Final = 1200.0
HABITS: Final = ClusterSpec("lab", sleep_after_open_s=SLEEP_AFTER_S, sleep_after_closed_s=1200.0)
ENDS: Final = {ev.COMPLETED: "goodput", ev.EVICTED: "badput"}
Table = tuple[float, float, float] | None
"""Active, idle and sleep watts, or None where none were declared."""


def metered_engine() -> Engine:
    """An engine without policies: what happened is all that is asked."""
    clock = ZoneTime("UTC")
    site = Site(clock, [HABITS])
    return Engine(site, Accounting(clock), [], NoActuator(), KeptDecisions(site))


def joined(table: Table, cpus: int, machine: int = 0) -> Event:
    """A machine joins at second 0."""
    active_w, idle_w, sleep_w = table or (None, None, None)
    spec = MachineSpec("lab", cpus, active_w, idle_w, sleep_w)
    return 0.0, ev.JOINED, machine, spec


@dataclass
class Work:
    """A run: the CPUs it has, whether it works, and the joules it was given so far."""

    cpus: int
    works: bool = True
    joules: float = 0.0
    measured_j: float = 0.0


@dataclass
class Integrator:
    """Reference computation of one machine's energy, interval by interval, by the definitions."""

    table: Table
    cpus: int
    now: float = 0.0
    owner: bool = False
    told_asleep: bool = False
    idle_since: float = 0.0
    reading: tuple[float, float] | None = None
    runs: dict[int, Work] = field(default_factory=dict)
    joules: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)

    def pass_until(self, time_s: float) -> None:
        """Integrate up to a moment, with cuts at power changes without an event."""
        changes = [self.idle_since + SLEEP_AFTER_S]
        if self.reading is not None:
            changes.append(self.reading[0] + METER_VALID_S)
        cuts = sorted({self.now, time_s, *(c for c in changes if self.now < c < time_s)})
        for begin_s, end_s in itertools.pairwise(cuts):
            self._spend((begin_s + end_s) / 2, end_s - begin_s)
        self.now = time_s

    def _spend(self, moment_s: float, seconds: float) -> None:
        active_w, idle_w, sleep_w = self.table or (float("nan"),) * 3
        working = {job: run for job, run in self.runs.items() if run.works}
        shares: dict[Any, float] = {job: run.cpus / self.cpus for job, run in working.items()}
        watts: dict[Any, float] = {job: share * active_w for job, share in shares.items()}
        rest = (self.cpus - sum(run.cpus for run in working.values())) / self.cpus
        if rest:
            rests_as = self._rests_as(moment_s, bool(working))
            shares[rests_as] = rest
            watts[rests_as] = rest * {"owner": active_w, "idle": idle_w, "sleep": sleep_w}[rests_as]
        is_read = self.reading is not None and moment_s < self.reading[0] + METER_VALID_S
        if is_read:
            whole_w = self.reading[1] if self.reading is not None else 0.0
            parts = watts if self.table and sum(watts.values()) > 0 else shares
            watts = {use: whole_w * part / sum(parts.values()) for use, part in parts.items()}
        for use, drawn_w in watts.items():
            self._give(use, drawn_w * seconds, is_read)

    def _rests_as(self, moment_s: float, working: bool) -> str:
        if self.owner:
            return "owner"
        by_habit = not working and moment_s >= self.idle_since + SLEEP_AFTER_S
        return "sleep" if self.told_asleep or by_habit else "idle"

    def _give(self, use: Any, joules: float, is_read: bool) -> None:
        if isinstance(use, int):
            self.runs[use].joules += joules
            self.runs[use].measured_j += joules if is_read else 0.0
            return
        self.joules[use] = self.joules.get(use, 0.0) + joules
        self.measured[use] = self.measured.get(use, 0.0) + (joules if is_read else 0.0)

    def free_cpus(self) -> int:
        """CPUs that run no job, those of suspended jobs not counted as free."""
        return self.cpus - sum(run.cpus for run in self.runs.values())

    def idle_anew(self) -> None:
        """Restart the idle time of the machine."""
        self.idle_since, self.told_asleep = self.now, False

    def end(self, job: int, purpose: str) -> None:
        """A run is over: what it was given belongs to a purpose."""
        run = self.runs.pop(job)
        self.joules[purpose] = self.joules.get(purpose, 0.0) + run.joules
        self.measured[purpose] = self.measured.get(purpose, 0.0) + run.measured_j
        if run.works and not self.owner:
            self.idle_anew()


def play(
    table: Table, cpus: int, steps: Sequence[tuple[int, str, float]]
) -> tuple[list[Event], Integrator]:
    """Events made of steps (seconds since the last, what, how much), and what they must give.

    A step that is impossible in the state it meets makes no event.
    """
    truth, told = Integrator(table, cpus), [joined(table, cpus)]
    job = 0
    for wait_s, what, amount in steps:
        truth.pass_until(truth.now + wait_s)
        now = truth.now
        works = [number for number, run in truth.runs.items() if run.works]
        rests = [number for number, run in truth.runs.items() if not run.works]
        if what == "start" and truth.free_cpus() and not truth.owner:
            job, taken = job + 1, 1 + int(amount) % truth.free_cpus()
            truth.runs[job] = Work(taken)
            told += [(now, ev.SUBMITTED, job, JobSpec()), (now, ev.STARTED, job, (0, taken))]
        elif what in ("complete", "evict") and truth.runs:
            ended = sorted(truth.runs)[int(amount) % len(truth.runs)]
            kind = ev.COMPLETED if what == "complete" else ev.EVICTED
            truth.end(ended, ENDS[kind])
            told.append((now, kind, ended, None if what == "complete" else "unknown"))
        elif what == "suspend" and works:
            truth.runs[works[0]].works = False
            told.append((now, ev.SUSPENDED, works[0], None))
            if not truth.owner:
                truth.idle_anew()
        elif what == "resume" and rests:
            truth.runs[rests[0]].works = True
            told.append((now, ev.RESUMED, rests[0], None))
        elif what == "owner":
            truth.owner = not truth.owner
            told.append((now, ev.OWNER_CAME if truth.owner else ev.OWNER_WENT, 0, None))
            truth.idle_anew()
        elif what == "asleep" and not truth.owner and not works:
            truth.told_asleep = True
            told.append((now, ev.ASLEEP, 0, None))
        elif what == "read":
            truth.reading = (now, amount)
            told.append((now, ev.POWER, 0, amount))
    return told, truth
