"""Rebuild a core from snapshot and journal, after a restart or an internal error."""

import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final, TypeAlias

import structlog

from outrider.engine.ingest.bounded_names import clean_event
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
"""Number of attempts; each leaves out the events whose repair failed in the one before."""
log = structlog.get_logger()
# -- time correction -------------------------------------------------------------------------------
# Correction of the times of inputs that were recorded while the host clock was ahead.
#
# While a clock is years ahead, the daemon's own watermarks have wrong dates, and so do the records
# of a batch system on the same host. The journal itself shows the error: the difference between the
# first such watermark and the last plausible one. Sources with correct clocks keep their times.

Input: TypeAlias = tuple[int, str, NamedEvent]
"""Sequence number, adapter and event, as in the journal."""


# -- start progress --------------------------------------------------------------------------------
# Progress of the daemon's start: written by the starting thread, read by the event loop.


class StartProgress:
    """Progress of the start: the current step, and its completed share.

    One thread writes and others read: each attribute is replaced as a whole.

    Attributes:
        doing: the current step, in a few words.
        fed: number of replayed inputs of the journal.
        ratio: share of the journal that has been read, 0 to 1.
        moved_at: `time.monotonic` of the last progress.
    """

    def __init__(self) -> None:
        self.doing = "opening the journal"
        self.fed = 0
        self.ratio = 0.0
        self.moved_at = self.began_at = time.monotonic()
        self._stopped = False

    def begin(self, doing: str) -> None:
        """Note that another step begins.

        Raises:
            StartStoppedError: the daemon is to stop.
        """
        self.doing = doing
        self.move()

    def move(self) -> None:
        """Note that the start progresses. Raises `StartStoppedError` if it is to stop."""
        self.moved_at = time.monotonic()
        if self._stopped:
            raise StartStoppedError("stop requested while starting")

    def stop(self) -> None:
        """End the start at its next progress."""
        self._stopped = True

    def watch(self, rows: Iterable[Input], first_seq: int, last_seq: int) -> Iterator[Input]:
        """Yield the same rows, and count them as progress.

        Args:
            rows: inputs in order.
            first_seq: sequence number before the first of them.
            last_seq: last sequence number of the journal.

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
        """The progress as a sentence for the page, the probes and systemd."""
        text = f"still starting: {self.doing}"
        if self.fed:
            text += f", {self.fed:,} inputs so far ({self.ratio:.0%} of the journal)"
        return text


def bring_up(
    make: Callable[[], Core],
    recording: Recording,
    left_out: Iterable[EventIdentity] = (),
    clock: WallClock | None = None,
    progress: StartProgress | None = None,
) -> tuple[Core, dict[str, Any], list[str]]:
    """Return a core in the state at the end of the journal.

    Args:
        make: returns an empty core.
        recording: the state directory.
        left_out: events that are rejected without being tried.
        clock: times recorded while it was ahead are corrected; None: the site has its own.
        progress: receives the progress.

    Returns:
        The core, the cursors by adapter (None: it never reported), and notes for operators. A
        missing snapshot is such a note, and no error: the journal is sufficient.

    Raises:
        LedgerError: the journal cannot be read.
        StartStoppedError: `progress.stop` was called.
    """
    progress = progress or StartProgress()
    skipped = set(left_out)
    for _ in range(_TRIES):
        core, cursors, notes = _recall(make, recording, skipped, clock, progress)
        if not core.unrepaired:
            break
        skipped |= {key for key in core.unrepaired if key is not None}
    else:
        note = "the state may be inconsistent: the repair after an internal error failed again"
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
    """Return a core at the end of the journal, from the newest usable snapshot and later inputs.

    If the clock has not reached the time of that snapshot, the clock was ahead then and has been
    set back. The newest snapshot before that is then used, if there is one.
    """
    latest_s = None if clock is None else clock.latest_site_s()
    progress.begin("reading the last snapshot")
    core, seq, notes = _from_snapshot(make, recording, latest_s)
    core.merger.leave_out = skipped
    progress.begin("checking the end of the journal")
    notes += check_end(recording.path)
    progress.begin("replaying the journal")
    left_out: list[str] = []
    with Journal(recording.path, read_only=True) as journal:
        if recording.last_seq and not recording.snapshot_used:
            notes += _without_snapshot(journal, had_snapshots=bool(recording.snapshots.paths()))
        rows = progress.watch(journal.inputs_after(seq, left_out), seq, recording.last_seq)
        core.known_users.recall(journal.meta(PERSONAL_VOS_KEY, {}))
        limits = None
        if clock is not None and recording.snapshot_used:
            believed_s = core.merger.now
            if believed_s > -inf:  # or a clock that is behind would decide
                limits = clock.limits(believed_s)
            if latest_s is not None:
                rows = correct_times(rows, believed_s, max(latest_s, believed_s + SITE_AHEAD_S))
        recording.fed = replay_inputs(core, rows, limits)
        for _, early in journal.set_aside_after(seq, IMPLAUSIBLE_TIME):
            core.merger.recount(early.adapter, early.kind, early.reason)
        # without a snapshot or a row, the history was not read completely: it is read again
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
    """Return a core in the state of the newest usable snapshot, or an empty one.

    Returns:
        The core, its sequence number in the journal, and notes.
    """
    snapshots = recording.snapshots
    snapshots.notes.clear()
    notes: list[str] = []
    recording.snapshot_used = False
    core, seq = make(), 0
    for snapshot_seq, state in _in_order(snapshots.newest_first(recording.last_seq), latest_s):
        try:
            fresh = core.restore(state)
        except Exception as error:  # noqa: BLE001 - of another version, or a plugin's own fault
            why = (
                str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            )
            notes.append(
                f"{snapshots.folder}: the snapshot at {snapshot_seq} does not fit this Outrider "
                f"and its configuration, and was not used: {why}"
            )
            core = make()  # the one before may be partly restored
            continue
        recording.snapshot_used, seq = True, snapshot_seq
        if fresh:
            notes.append(f"policies that start afresh: {', '.join(fresh)}")
        break
    return core, seq, [*recording.notes, *snapshots.notes, *notes]


def _in_order(snapshots: Iterable[Snapshot], latest_s: float | None) -> Iterator[Snapshot]:
    """Yield snapshots of past times, newest first; then the newest of later times."""
    ahead: Snapshot | None = None
    for snapshot in snapshots:
        if latest_s is None or _time_of(snapshot.state) <= latest_s:
            yield snapshot
        else:
            ahead = ahead or snapshot
    if ahead is not None:
        yield ahead


def _time_of(state: Any) -> float:
    """Return the time of a state; minus infinity for one of another release, which is unusable."""
    try:
        return site_time_of(state)
    except (LookupError, TypeError):
        return -inf


def _without_snapshot(journal: Journal, *, had_snapshots: bool) -> list[str]:
    """Return notes on a state that is rebuilt from the journal alone.

    There are none for a young journal: a daemon killed soon after its first start has no snapshot.
    """
    pruned = journal.pruned_inputs_seq()
    if not (had_snapshots or pruned):
        return []
    note = "no snapshot could be used: the state was rebuilt from the journal"
    if pruned:
        note += f", whose inputs up to number {pruned} were pruned"
    return [f"{note}; older jobs are known again once their source reports them"]


MIN_LEAP_S: Final = 3_600.0
"""Smallest step of the clock that counts as a leap; shorter ones are quiet periods."""
_MAX_HELD: Final = 100_000


def correct_times(rows: Iterable[Input], believed_s: float, latest_s: float) -> Iterator[Input]:
    """Yield the inputs, with corrected times for those dated by a wrong clock.

    Args:
        rows: in order of arrival.
        believed_s: the plausible time at the site before them.
        latest_s: later times are wrong.

    Yields:
        All of them. An event later than `latest_s` that came while the clock was right keeps its
        time, since the true time is unknown. So do all events if the clock never leapt.
    """
    ahead_s: float | None = None
    held: list[Input] = []
    for row in rows:
        time_s, kind = row[2][0], row[2][1]
        if kind != TICK:
            if time_s <= latest_s and not held:
                yield row
                continue
            held.append(row)  # the next watermark shows whether the clock was wrong
            if len(held) > _MAX_HELD:
                yield from _moved(held, ahead_s, latest_s)
                held = []
            continue
        if time_s <= latest_s:
            ahead_s = None
            believed_s = max(believed_s, time_s)
        else:
            moved_s = time_s - (ahead_s or 0.0)
            if MIN_LEAP_S < moved_s - believed_s < inf:
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


# -- journal replay --------------------------------------------------------------------------------
# Rebuild a core's state by replaying journal entries into it.

_STEP_EVENTS: Final = 10_000


def replay_inputs(
    core: Core, rows: Iterable[tuple[int, str, NamedEvent]], limits: TimeLimits | None = None
) -> int:
    """Replay inputs of the journal without recording decisions; return the number of inputs.

    Events beyond `limits` were accepted when they arrived. They are rejected now, and that must
    still be recorded.
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
            while feed.step(_STEP_EVENTS):
                pass
        elif limits is None or merger.admit(label, (event,), limits):
            core.arrive(label, (clean_event(event),))
        else:
            early += merger.take_set_aside()[-1:]
    merger.newly_set_aside[:] = early  # the others were recorded when they arrived
    core.decision_log.replaying = False
    return n


_LOOK_EVERY: Final = 64
"""Number of inputs between two updates of the progress."""


class StartStoppedError(OutriderError):
    """The daemon was stopped while it was starting, which is no failure."""
