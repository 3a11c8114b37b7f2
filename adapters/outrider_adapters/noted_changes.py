"""Begin times of jobs, moved a lease ahead and renewed: until then they stay in the queue.

A begin time lapses by itself. It also writes over one that the job's user asked for: that is in the
undo log before. Nothing here asks a batch system: it says what is to be changed.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from outrider.api import PeerError, Undo, UndoLog

# -- changes ---------------------------------------------------------------------------------------
# Changes of jobs: planned, noted, made, read back, and un-noted where they are not shown.

GONE: Final = "it waits in the queue no more"
JobT = TypeVar("JobT")
"""A job as the batch system shows it while it waits."""


class GivenUpError(PeerError):
    """The rest was not asked for; the message says why. It may be asked for again."""


class Plan(NamedTuple):
    """What one attribute of several jobs is to be.

    Attributes:
        notes: what is noted before, by the name of each job.
        values: what each gets; a job that is noted and gets nothing has it already.
        refused: jobs that are left as they are, and why.
    """

    notes: dict[str, Undo]
    values: dict[str, int]
    refused: dict[str, str]

    @classmethod
    def empty(cls) -> Self:
        """One for no job yet."""
        return cls({}, {}, {})

    def without(self, names: Collection[str]) -> "Plan":
        """The same, but for some jobs."""
        notes = {name: note for name, note in self.notes.items() if name not in names}
        values = {name: value for name, value in self.values.items() if name not in names}
        return Plan(notes, values, self.refused)


class Change(NamedTuple, Generic[JobT]):
    """A plan, and how it is carried out.

    Attributes:
        plan: see there.
        attribute: its name, for whoever makes the change.
        undo_log: where it is noted.
        wrong: what a waiting job shows instead of what was noted; empty: it shows that, or cannot.
        may_have_gone: whether a job that waits no more may have got it all the same.
        forgotten: whether a waiting job shows what Outrider gave it before. The batch system had
            what is noted, and was killed before it had saved it.
    """

    plan: Plan
    attribute: str
    undo_log: UndoLog
    wrong: Callable[[Undo, JobT], str]
    may_have_gone: Callable[[Undo], bool] = lambda noted: False
    forgotten: Callable[[Undo, JobT], bool] = lambda noted, job: False


def carry_out(
    changes: Sequence[Change[JobT]],
    make: Callable[[Mapping[str, Mapping[str, int]]], str],
    waiting: Callable[[], Mapping[str, JobT]],
) -> dict[str, str]:
    """Make changes of jobs that wait; those for which it is not so then, and why.

    Args:
        changes: each of another attribute, or of other jobs.
        make: gives each job, by name, its values by attribute; returns what the batch system said
            when it refused, if it did, or raises `GivenUpError`.
        waiting: asks for the jobs that wait now, by name.

    Raises:
        PeerError: something cannot be noted, so nothing is changed; nobody answers; it was given up
            in its middle; or the batch system refused nothing and has forgotten it.
    """
    changes = [change for change in changes if change.plan.notes]
    before = [change.undo_log.entries for change in changes]
    for change in changes:
        change.undo_log.write(change.plan.notes)
    edits: dict[str, dict[str, int]] = {}
    for change in changes:
        for name, value in change.plan.values.items():
            edits.setdefault(name, {})[change.attribute] = value
    if not edits:  # all stands already, and was renewed
        return {}
    given_up: GivenUpError | None = None
    try:
        said = make(edits)
    except GivenUpError as error:
        said, given_up = str(error), error
    shown = waiting()  # may fail: what is noted and not done is found out the next time
    refused: dict[str, str] = {}
    forgotten: dict[str, str] = {}
    for change, noted_before in zip(changes, before, strict=True):
        wrong = _wrong(change, shown)
        forgotten |= {
            name: why for name, why in wrong.items()
            if name in shown and change.forgotten(change.plan.notes[name], shown[name])
        }  # fmt: skip
        refused |= {name: why if why == GONE else said or why for name, why in wrong.items()}
        # one that was let go may have begun since, with what is noted
        as_it_was = [
            name for name, why in wrong.items()
            if why != GONE or not change.may_have_gone(change.plan.notes[name])
        ]  # fmt: skip
        change.undo_log.write({n: noted_before[n] for n in as_it_was if n in noted_before})
        change.undo_log.forget(set(as_it_was) - noted_before.keys())
    if given_up is not None:
        raise given_up
    if forgotten and not said:
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

_NOT_ELIGIBLE: Final = "the batch system keeps it back itself: it has no eligible time"
_CHANGED: Final = "somebody else changed its start time since Outrider did"


class MayBegin(Protocol):
    """A job that waits."""

    @property
    def eligible_s(self) -> float | None:
        """When it may begin, Unix seconds; 0: at once, None: the batch system keeps it back."""
        ...


Waiting = Mapping[str, MayBegin | None]
"""Jobs by name, as they wait now; None: it does not."""


class BeginTimes:
    """Says which begin times jobs are to get, and what to note of them.

    Args:
        undo_log: where what stood before is noted.
        lease_s: how long a begin time that is not renewed keeps a job in the queue.
        late_s: as of `outrider_adapters.noted_changes.is_own`.
    """

    def __init__(self, undo_log: UndoLog, lease_s: float, late_s: float = 0.0) -> None:
        self._undo_log = undo_log
        self._lease_s = lease_s
        self._late_s = late_s

    def deferred(self, waiting: Waiting, now_s: int) -> Plan:
        """Keep jobs in the queue for a lease from now.

        A job whose user wants it to begin later than that is kept by that alone.

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
            # noted and never done, or the batch system has lost it
            is_free = is_as_before(known, at_s) or not is_kept(known, now_s)
            if is_own(known, at_s, self._late_s) or (at_s <= until_s and is_free):
                plan.notes[name] = lease_of(until_s, at_s, known, now_s, self._late_s)
                plan.values[name] = until_s
            elif at_s < until_s:
                plan.refused[name] = _CHANGED
        return plan

    def released(self, waiting: Waiting, now_s: int) -> Plan:
        """Let jobs begin, or let their users' own begin times hold again; as `deferred`."""
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
                plan.notes[name] = let_go_of(known, now_s)
                plan.values[name] = now_s  # a time that has passed is taken for the present one
        return plan

    def kept(self, now_s: int) -> list[str]:
        """The jobs that Outrider keeps in the queue, by what is noted."""
        noted = self._undo_log.entries
        return [name for name, undo in noted.items() if is_kept(undo, now_s)]

    def change(self, plan: Plan) -> Change[Any]:
        """How a plan of these is carried out: each job is given `begin_s`."""
        return Change(
            plan, "begin_s", self._undo_log, self._wrong, _may_have_gone, self._is_forgotten
        )

    def _wrong(self, noted: Undo, job: MayBegin) -> str:
        if is_done(noted, job.eligible_s, self._late_s):
            return ""
        return f"its start time is {job.eligible_s or 0:.0f} and not {noted.until_s:.0f}"

    def _is_forgotten(self, noted: Undo, job: MayBegin) -> bool:
        """Return whether a job is kept by our time of before, which this one was to renew or to end."""
        before = before_of(noted)
        asked_s = noted.until_s - (0 if before.let_go else int(self._lease_s))
        # one that is over keeps nobody: who refuses without a word is not asked for ever
        return before.had(job.eligible_s) and (job.eligible_s or 0.0) > asked_s


def _may_have_gone(noted: Undo) -> bool:
    return before_of(noted).let_go


# -- begin notes -----------------------------------------------------------------------------------
# Begin times of jobs that are Outrider's own, told from those that users asked for.

_LET_GO_WITHIN_S: Final = 30.0
"""A job that may begin is given the time at which it was told so: so soon after it was asked."""
_SAVED_WITHIN_S: Final = 30.0
"""What a batch system was told longer ago than this it has saved: Slurm takes five seconds."""


class Before(msgspec.Struct, frozen=True, gc=False):
    """What stood before a begin time of ours; all times are Unix seconds.

    Attributes:
        eligible_s: since when the job might begin; 0: the batch system had not said it yet.
        begin_s: the same if it lay ahead: a begin time that its user asked for.
        earlier_s: the begin time of ours that is about to be renewed; None: there was none.
        let_go: the job was told to begin at once.
        older_s: those before it that a batch system may show again if it is killed now.
    """

    eligible_s: float
    begin_s: float | None = None
    earlier_s: float | None = None
    let_go: bool = False
    older_s: list[float] = []  # no tuple: what is noted is equal once it was read back

    def had(self, at_s: float | None) -> bool:
        """Return whether a begin time is an earlier one of ours."""
        return at_s is not None and (at_s == self.earlier_s or at_s in self.older_s)


def lease_of(until_s: int, at_s: float, known: Undo | None, now_s: float, late_s: float) -> Undo:
    """What is noted before a job is given another begin time.

    Args:
        until_s: the begin time.
        at_s: when it might begin until now.
        known: what is noted of it already.
        now_s: Unix seconds now.
        late_s: as of `is_own`.
    """
    if known is not None and is_own(known, at_s, late_s):
        before = before_of(known)
        had_s = [*before.older_s, *([] if before.earlier_s is None else [before.earlier_s])]
        older_s = [s for s in had_s if until_s - _SAVED_WITHIN_S < s != at_s]
        before = msgspec.structs.replace(before, earlier_s=at_s, older_s=older_s, let_go=False)
    else:
        before = Before(at_s, begin_s=at_s if at_s > now_s else None)
    return Undo(float(until_s), msgspec.to_builtins(before))


def let_go_of(known: Undo, now_s: float) -> Undo:
    """What is noted before a job that Outrider keeps is told to begin at once."""
    before = msgspec.structs.replace(before_of(known), earlier_s=known.until_s, let_go=True)
    return Undo(float(now_s), msgspec.to_builtins(before))


def is_own(known: Undo | None, at_s: float | None, late_s: float = 0.0) -> bool:
    """Return whether a job might begin when Outrider said, in place of its user.

    Args:
        known: what is noted of it.
        at_s: when it may begin, or might.
        late_s: how much later than it was told a batch system says that it might.
    """
    if known is None or at_s is None:
        return False
    before = before_of(known)
    return at_s != before.begin_s and (before.had(at_s) or is_done(known, at_s, late_s))


def is_done(noted: Undo, at_s: float | None, late_s: float = 0.0) -> bool:
    """Return whether a job may begin when it was noted that it is to; `late_s` as of `is_own`."""
    late_s = max(late_s, _LET_GO_WITHIN_S) if before_of(noted).let_go else late_s
    return at_s is not None and noted.until_s <= at_s <= noted.until_s + late_s


def is_as_before(known: Undo | None, at_s: float) -> bool:
    """Return whether a job may begin when it might before the first change that was noted."""
    return known is not None and at_s == before_of(known).eligible_s


def before_of(known: Undo) -> Before:
    """What stood before, as it was noted. Raises `msgspec.ValidationError`: we did not note it."""
    return msgspec.convert(known.before, Before)


def is_kept(known: Undo | None, at_s: float) -> bool:
    """Return whether Outrider keeps a job in the queue at a time, by what is noted of it."""
    return known is not None and known.until_s > at_s and known.until_s != before_of(known).begin_s


# -- pace ------------------------------------------------------------------------------------------
# Not more than so many changes in a second.


class Pace:
    """Waits until so many more are allowed.

    Args:
        per_s: how many in a second.
        clock: seconds that only ever go on.
        wait: waits for so many seconds unless it is told to end, and says whether it was.
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
    def at_once(self) -> int:
        """How many to ask for together: short bursts, and pauses between them."""
        return max(1, int(self._per_s / 2))

    def waited_and_ended(self, n: int) -> bool:
        """Wait until so many more may be asked for; whether it is to end instead."""
        now_s = self._clock()
        pause_s = self._next_s - now_s
        if pause_s > 0.0 and self._wait(pause_s):
            return True
        self._next_s = max(self._next_s, now_s) + n / self._per_s
        return False

    def hurry(self) -> None:
        """Wait no more. From any thread."""
        self._ended.set()
