"""Leases by begin times: jobs stay in the queue until a begin time that is renewed.

A begin time expires automatically. It also overwrites one that the job's user requested, so that is
written to the undo log first. This module queries no batch system: it plans the changes.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from outrider.api import PeerError, Undo, UndoLog

# -- changes ---------------------------------------------------------------------------------------
# Changes of jobs: planned, noted in the undo log, made, read back, and un-noted if they failed.

GONE: Final = "it no longer waits in the queue"
JobT = TypeVar("JobT")
"""Type of a waiting job in the batch system's answer."""


class GivenUpError(PeerError):
    """Raised if the remaining changes were not requested; they may be requested again."""


class Plan(NamedTuple):
    """Plan of new values of one attribute of several jobs.

    Attributes:
        notes: entries for the undo log, by job name.
        values: new values by job name; a noted job without a value already has it.
        refused: jobs that are not changed, and why.
    """

    notes: dict[str, Undo]
    values: dict[str, int]
    refused: dict[str, str]

    @classmethod
    def empty(cls) -> Self:
        """Return a plan without jobs."""
        return cls({}, {}, {})

    def without(self, names: Collection[str]) -> "Plan":
        """Return the plan without some jobs."""
        notes = {name: note for name, note in self.notes.items() if name not in names}
        values = {name: value for name, value in self.values.items() if name not in names}
        return Plan(notes, values, self.refused)


class Change(NamedTuple, Generic[JobT]):
    """A plan, with functions that check its result.

    Attributes:
        plan: the plan.
        attribute: name of the attribute that is changed.
        undo_log: the undo log of the change.
        wrong: describes how a waiting job differs from its note; empty: it does not, or cannot.
        may_have_gone: True if a job that no longer waits may have got the value nevertheless.
        forgotten: True if a waiting job shows an earlier value of Outrider's. The batch system was
            then killed before it had saved the noted value.
    """

    plan: Plan
    attribute: str
    undo_log: UndoLog
    wrong: Callable[[Undo, JobT], str]
    may_have_gone: Callable[[Undo], bool] = lambda noted: False
    forgotten: Callable[[Undo, JobT], bool] = lambda noted, job: False


def apply_changes(
    changes: Sequence[Change[JobT]],
    make: Callable[[Mapping[str, Mapping[str, int]]], str],
    waiting: Callable[[], Mapping[str, JobT]],
) -> dict[str, str]:
    """Apply changes to waiting jobs; return the jobs that were not changed, and why.

    Args:
        changes: changes of different attributes, or of different jobs.
        make: sets the values of jobs, by job name and attribute; returns the batch system's message
            if it refused, or raises `GivenUpError`.
        waiting: queries the jobs that wait now, by name.

    Raises:
        PeerError: something cannot be noted, so nothing is changed; the batch system does not
            answer; it was stopped half way; or the batch system accepted the changes and has lost
            them.
    """
    changes = [change for change in changes if change.plan.notes]
    before = [change.undo_log.entries for change in changes]
    for change in changes:
        change.undo_log.write(change.plan.notes)
    edits: dict[str, dict[str, int]] = {}
    for change in changes:
        for name, value in change.plan.values.items():
            edits.setdefault(name, {})[change.attribute] = value
    if not edits:  # all values are set already, and were renewed
        return {}
    given_up: GivenUpError | None = None
    try:
        answer = make(edits)
    except GivenUpError as error:
        answer, given_up = str(error), error
    shown = waiting()  # may fail: notes of changes that were not made are found the next time
    refused: dict[str, str] = {}
    forgotten: dict[str, str] = {}
    for change, noted_before in zip(changes, before, strict=True):
        wrong = _wrong(change, shown)
        forgotten |= {
            name: why for name, why in wrong.items()
            if name in shown and change.forgotten(change.plan.notes[name], shown[name])
        }  # fmt: skip
        refused |= {name: why if why == GONE else answer or why for name, why in wrong.items()}
        # a job that was released may have begun since, with the noted value
        as_it_was = [
            name for name, why in wrong.items()
            if why != GONE or not change.may_have_gone(change.plan.notes[name])
        ]  # fmt: skip
        change.undo_log.write({n: noted_before[n] for n in as_it_was if n in noted_before})
        change.undo_log.forget(set(as_it_was) - noted_before.keys())
    if given_up is not None:
        raise given_up
    if forgotten and not answer:
        name, why = next(iter(forgotten.items()))
        raise PeerError(f"{len(forgotten)} jobs are as Outrider changed them before: {name}: {why}")
    return refused


def _wrong(change: Change[JobT], shown: Mapping[str, JobT]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, noted in change.plan.notes.items():
        job = shown.get(name)
        if why := GONE if job is None else change.wrong(noted, job):
            found[name] = why
    return found


# -- begin times -----------------------------------------------------------------------------------

_NOT_ELIGIBLE: Final = "the batch system itself holds it: it has no eligible time"
_CHANGED: Final = "its start time was changed since Outrider set it"


class MayBegin(Protocol):
    """Interface of a job that waits."""

    @property
    def eligible_s(self) -> float | None:
        """Unix seconds when it may begin; 0: immediately, None: the batch system holds it."""
        ...


Waiting = Mapping[str, MayBegin | None]
"""Jobs that wait now, by name; None: the job does not wait."""


class BeginTimes:
    """Planner of begin times of jobs, and of their entries in the undo log.

    Args:
        undo_log: the log of the values before our changes.
        lease_s: how long a begin time that is not renewed keeps a job in the queue.
        late_s: see `outrider_adapters.noted_changes.is_own`.
    """

    def __init__(self, undo_log: UndoLog, lease_s: float, late_s: float = 0.0) -> None:
        self._undo_log = undo_log
        self._lease_s = lease_s
        self._late_s = late_s

    def deferred(self, waiting: Waiting, now_s: int) -> Plan:
        """Plan to keep jobs in the queue for a lease from now.

        A job whose user wants it to begin later than that needs no change.

        Args:
            waiting: the jobs.
            now_s: Unix seconds now, by the batch system's clock.
        """
        until_s = now_s + int(self._lease_s)
        plan = Plan.empty()
        for name, job in waiting.items():
            known = self._undo_log.entries.get(name)
            if job is None or job.eligible_s is None:
                plan.refused[name] = GONE if job is None else _NOT_ELIGIBLE
                continue
            at_s = job.eligible_s
            # noted and never set, or lost by the batch system
            is_free = is_as_before(known, at_s) or not is_kept(known, now_s)
            if is_own(known, at_s, self._late_s) or (at_s <= until_s and is_free):
                plan.notes[name] = lease_of(until_s, at_s, known, now_s, self._late_s)
                plan.values[name] = until_s
            elif at_s < until_s:
                plan.refused[name] = _CHANGED
        return plan

    def released(self, waiting: Waiting, now_s: int) -> Plan:
        """Plan to let jobs begin, or to restore their users' begin times; see `deferred`."""
        plan = Plan.empty()
        for name, job in waiting.items():
            known = self._undo_log.entries.get(name)
            at_s = job.eligible_s if job is not None else None
            if known is None or at_s is None or at_s <= now_s:
                continue
            if not is_own(known, at_s, self._late_s):
                continue
            begin_s = int(before_of(known).begin_s or 0)
            if begin_s > now_s:
                plan.notes[name] = lease_of(begin_s, at_s, known, now_s, self._late_s)
                plan.values[name] = begin_s
            else:
                plan.notes[name] = released_undo(known, now_s)
                plan.values[name] = now_s  # a batch system takes a past time as now
        return plan

    def kept(self, now_s: int) -> list[str]:
        """Return the jobs that Outrider keeps in the queue, by the undo log."""
        noted = self._undo_log.entries
        return [name for name, undo in noted.items() if is_kept(undo, now_s)]

    def change(self, plan: Plan) -> Change[Any]:
        """Return the change for a plan: it sets `begin_s` of each job."""
        return Change(
            plan, "begin_s", self._undo_log, self._wrong, _may_have_gone, self._is_forgotten
        )

    def _wrong(self, noted: Undo, job: MayBegin) -> str:
        if is_done(noted, job.eligible_s, self._late_s):
            return ""
        return f"its start time is {job.eligible_s or 0:.0f} and not {noted.until_s:.0f}"

    def _is_forgotten(self, noted: Undo, job: MayBegin) -> bool:
        """Return whether a job still has our earlier time, which this one should replace."""
        before = before_of(noted)
        asked_s = noted.until_s - (0 if before.let_go else int(self._lease_s))
        # an expired time keeps no job: a system that refuses silently is not asked indefinitely
        return before.had(job.eligible_s) and (job.eligible_s or 0.0) > asked_s


def _may_have_gone(noted: Undo) -> bool:
    return before_of(noted).let_go


# -- begin notes -----------------------------------------------------------------------------------
# Distinguish begin times that Outrider set from those that users requested.

_LET_GO_WITHIN_S: Final = 30.0
"""Seconds within which a released job gets its begin time, which is the time of release."""
_SAVED_WITHIN_S: Final = 30.0
"""Seconds after which a batch system has saved a change: Slurm takes five."""


class Before(msgspec.Struct, frozen=True, gc=False):
    """State before a begin time of ours; all times are Unix seconds.

    Attributes:
        eligible_s: since when the job might begin; 0: not yet known from the batch system.
        begin_s: the same if it was in the future: a begin time that its user requested.
        earlier_s: our begin time that is about to be renewed; None: there was none.
        let_go: the job was released to begin immediately.
        older_s: our earlier times that a batch system may show again if it is killed now.
    """

    eligible_s: float
    begin_s: float | None = None
    earlier_s: float | None = None
    let_go: bool = False
    older_s: list[float] = []  # a list, since a tuple is not equal after it was read back

    def had(self, at_s: float | None) -> bool:
        """Return whether a begin time is an earlier one of ours."""
        return at_s is not None and (at_s == self.earlier_s or at_s in self.older_s)


def lease_of(until_s: int, at_s: float, known: Undo | None, now_s: float, late_s: float) -> Undo:
    """Return the undo entry for a job that gets a new begin time.

    Args:
        until_s: the new begin time.
        at_s: the time when it might begin until now.
        known: its present undo entry.
        now_s: Unix seconds now.
        late_s: see `is_own`.
    """
    if known is not None and is_own(known, at_s, late_s):
        before = before_of(known)
        had_s = [*before.older_s, *([] if before.earlier_s is None else [before.earlier_s])]
        older_s = [s for s in had_s if until_s - _SAVED_WITHIN_S < s != at_s]
        before = msgspec.structs.replace(before, earlier_s=at_s, older_s=older_s, let_go=False)
    else:
        before = Before(at_s, begin_s=at_s if at_s > now_s else None)
    return Undo(float(until_s), msgspec.to_builtins(before))


def released_undo(known: Undo, now_s: float) -> Undo:
    """Return the undo entry for a deferred job that is released to begin immediately."""
    before = msgspec.structs.replace(before_of(known), earlier_s=known.until_s, let_go=True)
    return Undo(float(now_s), msgspec.to_builtins(before))


def is_own(known: Undo | None, at_s: float | None, late_s: float = 0.0) -> bool:
    """Return whether a job's begin time was set by Outrider, not by its user.

    Args:
        known: its undo entry.
        at_s: its begin time.
        late_s: seconds by which the batch system may report a later time than was set.
    """
    if known is None or at_s is None:
        return False
    before = before_of(known)
    return at_s != before.begin_s and (before.had(at_s) or is_done(known, at_s, late_s))


def is_done(noted: Undo, at_s: float | None, late_s: float = 0.0) -> bool:
    """Return whether a job has the noted begin time; see `is_own` for `late_s`."""
    late_s = max(late_s, _LET_GO_WITHIN_S) if before_of(noted).let_go else late_s
    return at_s is not None and noted.until_s <= at_s <= noted.until_s + late_s


def is_as_before(known: Undo | None, at_s: float) -> bool:
    """Return whether a job has the begin time from before our first change."""
    return known is not None and at_s == before_of(known).eligible_s


def before_of(known: Undo) -> Before:
    """Return the state before our change. Raises `msgspec.ValidationError`: not our entry."""
    return msgspec.convert(known.before, Before)


def is_kept(known: Undo | None, at_s: float) -> bool:
    """Return whether Outrider keeps a job in the queue at a time, by its undo entry."""
    return known is not None and known.until_s > at_s and known.until_s != before_of(known).begin_s


# -- pace ------------------------------------------------------------------------------------------
# Rate limit of changes.


class Pace:
    """Rate limit of requests.

    Args:
        per_s: maximum number in a second.
        clock: seconds of a monotonic clock.
        wait: waits for some seconds or until it has to end; returns True if it has to.
    """

    def __init__(
        self,
        per_s: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._per_s = per_s
        self._clock = clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._next_s = 0.0

    @property
    def burst_n(self) -> int:
        """Number of requests in one burst; there are pauses between bursts."""
        return max(1, int(self._per_s / 2))

    def wait_or_end(self, n: int) -> bool:
        """Wait until `n` more requests are allowed; return True if it has to end instead."""
        now_s = self._clock()
        pause_s = self._next_s - now_s
        if pause_s > 0.0 and self._wait(pause_s):
            return True
        self._next_s = max(self._next_s, now_s) + n / self._per_s
        return False

    def hurry(self) -> None:
        """End all waits immediately, from any thread."""
        self._ended.set()
