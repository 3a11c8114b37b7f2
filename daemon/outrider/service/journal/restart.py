"""Bringing a core to where the journal ends: after a restart, or with its state in doubt."""

import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final, TypeAlias

import structlog

from outrider.engine.ingest.event_merger import EventIdentity
from outrider.engine.ingest.set_aside import IMPLAUSIBLE_TIME, SetAside, TimeLimits
from outrider.journal import Journal, check_end
from outrider.journal.snapshots import Snapshot
from outrider.model.errors import LedgerError, OutriderError
from outrider.model.events import TICK, NamedEvent
from outrider.service.core.core import PERSONAL_VOS_KEY, Core, site_time_of
from outrider.service.core.guarded_feed import GuardedFeed
from outrider.service.host.wall_clock import SITE_AHEAD_S, WallClock
from outrider.service.journal.recording import Recording

_TRIES: Final = 3
"""Each leaves out the events after which the one before could not repair its state."""
log = structlog.get_logger()
# -- put right -------------------------------------------------------------------------------------
# Inputs that were recorded while the clock was ahead, moved back to when they came.
#
# While a clock is years ahead, the daemon's own moves of the watermark are dated then, and so is
# what a batch system on the same host writes. How far it was ahead is in the journal itself: by as
# much as the first such watermark is ahead of the last one that is believed. Sources whose clocks
# were right meanwhile keep their times.

Input: TypeAlias = tuple[int, str, NamedEvent]
"""Sequence number, adapter, event; as the journal gives them."""


# -- start progress --------------------------------------------------------------------------------
# How far the start of the daemon has come: told by the thread that starts it, read by the loop.


class StartProgress:
    """What is done at the start, and how much of it.

    One thread writes, others read: each attribute is replaced whole.

    Attributes:
        doing: what is done now, in a few words.
        fed: inputs of the journal that were fed again.
        ratio: share of the journal that has been read, 0 to 1; 1 once nothing is left.
        moved_at: `time.monotonic` of the last sign that the start goes on.
    """

    def __init__(self) -> None:
        self.doing = "opening the journal"
        self.fed = 0
        self.ratio = 0.0
        self.moved_at = self.began_at = time.monotonic()
        self._stopped = False

    def begin(self, doing: str) -> None:
        """Something else is done from now on.

        Raises:
            StartStoppedError: the daemon is to stop.
        """
        self.doing = doing
        self.move()

    def move(self) -> None:
        """The start goes on. Raises `StartStoppedError` if it should not."""
        self.moved_at = time.monotonic()
        if self._stopped:
            raise StartStoppedError("stop requested while starting")

    def stop(self) -> None:
        """End the start at its next sign of life."""
        self._stopped = True

    def watch(self, rows: Iterable[Input], first_seq: int, last_seq: int) -> Iterator[Input]:
        """The same rows, counted.

        Args:
            rows: inputs in order.
            first_seq: they stand after this sequence number.
            last_seq: the journal ends at this one.

        Raises:
            StartStoppedError: the daemon is to stop.
        """
        span = max(1, last_seq - first_seq)
        self.fed, self.ratio = 0, 0.0
        for n, row in enumerate(rows, 1):
            if n % _LOOK_EVERY == 0:
                self.fed, self.ratio = n, (row[0] - first_seq) / span
                self.move()
            yield row
        self.ratio = 1.0

    @property
    def sentence(self) -> str:
        """For the page, the probes and systemd."""
        told = f"still starting: {self.doing}"
        if self.fed:
            told += f", {self.fed:,} inputs so far ({self.ratio:.0%} of the journal)"
        return told


def bring_up(
    make: Callable[[], Core],
    recording: Recording,
    left_out: Iterable[EventIdentity] = (),
    clock: WallClock | None = None,
    progress: StartProgress | None = None,
) -> tuple[Core, dict[str, Any], list[str]]:
    """A core in the state in which the journal ends.

    Args:
        make: gives an empty core.
        recording: the state directory.
        left_out: events that are set aside without being tried.
        clock: what was recorded while it was ahead is put right; None: the site has its own.
        progress: is told how far it has come.

    Returns:
        The core, the cursors by adapter (None: it never reported), and notes for the person on
        call. No snapshot that can be used is such a note, and no error: the journal is the truth.

    Raises:
        LedgerError: the journal cannot be read.
        StartStoppedError: `progress` was told to stop.
    """
    progress = progress or StartProgress()
    skipped = set(left_out)
    for _ in range(_TRIES):
        core, cursors, notes = _recall(make, recording, skipped, clock, progress)
        if not core.unrepaired:
            break
        skipped |= {key for key in core.unrepaired if key is not None}
    else:
        note = "the state may be inconsistent: Outrider failed, and failed again at repairing it"
        log.critical("state_inconsistent", reason=note)
        notes.append(note)
        core.unrepaired.clear()
    return core, cursors, notes


def _recall(
    make: Callable[[], Core],
    recording: Recording,
    skipped: set[EventIdentity],
    clock: WallClock | None,
    progress: StartProgress,
) -> tuple[Core, dict[str, Any], list[str]]:
    """A core where the journal ends, by the newest snapshot that fits and what came after.

    Where that snapshot is of a time that the clock has not reached, the clock was ahead then and
    has been put back: it is begun from the newest one before that, if there is one still.
    """
    latest_s = None if clock is None else clock.latest_site_s()
    progress.begin("reading the last snapshot")
    core, seq, notes = _from_snapshot(make, recording, latest_s)
    core.merger.leave_out = skipped
    progress.begin("checking the end of the journal")
    notes += check_end(recording.path)
    progress.begin("feeding the journal again")
    left_out: list[str] = []
    with Journal(recording.path, read_only=True) as journal:
        if recording.last_seq and not recording.snapshot_used:
            notes += _made_anew(journal, had_snapshots=bool(recording.snapshots.paths()))
        rows = progress.watch(journal.inputs_after(seq, left_out), seq, recording.last_seq)
        core.personal_vos.recall(journal.meta(PERSONAL_VOS_KEY, {}))
        limits = None
        if clock is not None and recording.snapshot_used:
            believed_s = core.merger.now
            if believed_s > -inf:  # or a clock that is behind would decide alone
                limits = clock.limits(believed_s)
            if latest_s is not None:
                rows = put_right(rows, believed_s, max(latest_s, believed_s + SITE_AHEAD_S))
        recording.fed = refeed(core, rows, limits)
        for _, early in journal.set_aside_after(seq, IMPLAUSIBLE_TIME):
            core.merger.recount(early.adapter, early.kind, early.reason)
        # without a snapshot or a row, history was not read to its end: it is read again
        cursors: dict[str, Any] = {}
        for label, source in core.sources.items():
            try:
                if not recording.is_new:
                    cursors[label] = journal.cursor(label)
                source.recall_records(journal.meta(f"records:{label}"))
            except (LedgerError, AttributeError, LookupError, TypeError, ValueError) as error:
                notes.append(f"{label}: read as on a first start: {error}")
    if left_out:
        notes.append(
            f"{len(left_out)} inputs of the journal cannot be read and were left out: {left_out[0]}"
        )
    core.merger.leave_out = set()
    log.info(
        "state_restored", snapshot_seq=seq, inputs_fed=recording.fed, last_seq=recording.last_seq
    )
    return core, cursors, notes


def _from_snapshot(
    make: Callable[[], Core], recording: Recording, latest_s: float | None
) -> tuple[Core, int, list[str]]:
    """A core in the state of the newest snapshot that fits it, or an empty one.

    Returns:
        The core, the sequence number at which it stands, and notes.
    """
    snapshots = recording.snapshots
    snapshots.notes.clear()
    notes: list[str] = []
    recording.snapshot_used = False
    core, seq = make(), 0
    for seq_of_it, state in _in_order(snapshots.newest_first(recording.last_seq), latest_s):
        try:
            fresh = core.restore(state)
        except Exception as error:  # noqa: BLE001 - of another version, or a plugin's own fault
            why = (
                str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            )
            notes.append(
                f"{snapshots.folder}: the snapshot at {seq_of_it} does not fit this Outrider and "
                f"its configuration, and was not used: {why}"
            )
            core = make()  # the one before may be half in another's state
            continue
        recording.snapshot_used, seq = True, seq_of_it
        if fresh:
            notes.append(f"policies that start afresh: {', '.join(fresh)}")
        break
    return core, seq, [*recording.notes, *snapshots.notes, *notes]


def _in_order(snapshots: Iterable[Snapshot], latest_s: float | None) -> Iterator[Snapshot]:
    """Those of a time that the clock has reached, newest first; then the newest of the others."""
    ahead: Snapshot | None = None
    for snapshot in snapshots:
        if latest_s is None or _time_of(snapshot.state) <= latest_s:
            yield snapshot
        else:
            ahead = ahead or snapshot
    if ahead is not None:
        yield ahead


def _time_of(state: Any) -> float:
    """The time of a state; minus infinity for one of another release, which will not fit."""
    try:
        return site_time_of(state)
    except (LookupError, TypeError):
        return -inf


def _made_anew(journal: Journal, *, had_snapshots: bool) -> list[str]:
    """What to know of a state that is made of the journal alone.

    Nothing where it is young: a daemon that is killed soon after its first start has no snapshot.
    """
    pruned = journal.pruned_inputs_seq()
    if not (had_snapshots or pruned):
        return []
    told = "no snapshot could be used: the state was made anew of the journal"
    if pruned:
        told += f", whose inputs up to number {pruned} were pruned"
    return [f"{told}; jobs that are older are known again once their source tells of them"]


LEAST_LEAP_S: Final = 3_600.0
"""A clock that went on by less at once did so because nothing happened meanwhile."""
_MOST_HELD: Final = 100_000


def put_right(rows: Iterable[Input], believed_s: float, latest_s: float) -> Iterator[Input]:
    """The inputs, with the times of those that a wrong clock dated put right.

    Args:
        rows: in order of arrival.
        believed_s: the time at the site before them.
        latest_s: later times are wrong.

    Yields:
        All of them. An event later than `latest_s` that came while the clock was right keeps its
        time: nobody knows when it was. So do all where the clock never leapt.
    """
    ahead_s: float | None = None
    held: list[Input] = []
    for row in rows:
        time_s, kind = row[2][0], row[2][1]
        if kind != TICK:
            if time_s <= latest_s and not held:
                yield row
                continue
            held.append(row)  # the next watermark tells whether the clock was wrong
            if len(held) > _MOST_HELD:
                yield from _moved(held, ahead_s, latest_s)
                held = []
            continue
        if time_s <= latest_s:
            ahead_s = None
            believed_s = max(believed_s, time_s)
        else:
            moved_s = time_s - (ahead_s or 0.0)
            if LEAST_LEAP_S < moved_s - believed_s < inf:
                ahead_s = time_s - believed_s
            believed_s = max(believed_s, time_s - (ahead_s or 0.0))
        yield from _moved(held, ahead_s, latest_s)
        held = []
        yield from _moved([row], ahead_s, latest_s)
    yield from _moved(held, ahead_s, latest_s)


def _moved(rows: Iterable[Input], ahead_s: float | None, latest_s: float) -> Iterator[Input]:
    for row in rows:
        seq, label, (time_s, kind, subject, extra) = row
        if ahead_s is None or time_s <= latest_s or time_s - ahead_s > latest_s:
            yield row
        else:
            yield seq, label, (time_s - ahead_s, kind, subject, extra)


# -- refeeding -------------------------------------------------------------------------------------
# Feeding a core what stands in the journal, so that it ends in the same state.

_AT_ONCE: Final = 10_000


def refeed(
    core: Core, rows: Iterable[tuple[int, str, NamedEvent]], limits: TimeLimits | None = None
) -> int:
    """Feed inputs of the journal again and record no decisions; returns how many inputs.

    Events of other times than `limits` were believed when they came: they are set aside now, and
    that is still to be recorded.
    """
    merger = core.merger
    core.decision_log.replaying = True
    n = 0
    early: list[SetAside] = []
    if limits is not None:
        merger.recheck(limits)
        early += merger.take_set_aside()
    for _, label, event in rows:
        n += 1
        if event[1] == TICK:
            feed = GuardedFeed(merger, core.engine, core.unrepaired, event[0])
            while feed.step(_AT_ONCE):
                pass
        elif limits is None or merger.admit(label, (event,), limits):
            core.arrive(label, (event,))
        else:
            early += merger.take_set_aside()[-1:]
    merger.newly_set_aside[:] = early  # the others were recorded when they came first
    core.decision_log.replaying = False
    return n


_LOOK_EVERY: Final = 64
"""Inputs between two looks at the clock and at `stop`."""


class StartStoppedError(OutriderError):
    """The daemon was told to stop while it was starting; nothing is wrong."""
