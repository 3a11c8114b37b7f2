"""Bringing a core to where the journal ends: after a restart, or with its state in doubt."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

import structlog

from outrider.engine.ingest.event_merger import EventIdentity
from outrider.engine.ingest.set_aside import IMPLAUSIBLE_TIME
from outrider.ledger import Journal
from outrider.model.errors import LedgerError
from outrider.service.core import PERSONAL_VOS_KEY, Core
from outrider.service.core_state import site_time_of
from outrider.service.put_right import put_right
from outrider.service.recording import Recording
from outrider.service.wall_clock import SITE_AHEAD_S, WallClock

_TRIES: Final = 3
"""Each leaves out the events after which the one before could not repair its state."""

log = structlog.get_logger()


def bring_up(
    make: Callable[[], Core], recording: Recording, left_out: Iterable[EventIdentity] = (),
    clock: WallClock | None = None,
) -> tuple[Core, dict[str, Any], list[str]]:  # fmt: skip
    """A core in the state in which the journal ends.

    Args:
        make: gives an empty core.
        recording: the state directory.
        left_out: events that are set aside without being tried.
        clock: what was recorded while it was ahead is put right; None: the site has its own.

    Returns:
        The core, the cursors by adapter (None: it never reported), and notes for the person on
        call.

    Raises:
        LedgerError: the journal or the snapshot cannot be read, or does not fit the configuration.
    """
    skipped = set(left_out)
    for _ in range(_TRIES):
        core = make()
        core.merger.leave_out = skipped
        cursors, notes = recall(core, recording, clock)
        core.merger.leave_out = set()
        if not core.unrepaired:
            break
        skipped |= {key for key in core.unrepaired if key is not None}
    else:
        note = "the state is in doubt: Outrider failed, and failed again at repairing it"
        log.critical("doubt_state", reason=note)
        notes.append(note)
        core.unrepaired.clear()
    return core, cursors, notes


def recall(
    core: Core, recording: Recording, clock: WallClock | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Bring an empty core to where the journal ends, by the newest snapshot and what came after.

    Where that snapshot is of a time that the clock has not reached, the clock was ahead then and
    has been put back: it is begun from the newest one before that, if there is one still.

    Returns, raises:
        As `bring_up`.
    """
    notes: list[str] = []
    seq = 0
    snapshots = recording.snapshots
    latest_s = None if clock is None else clock.latest_site_s()
    snapshot = snapshots.load_latest(
        recording.last_seq, lambda state: latest_s is None or site_time_of(state) <= latest_s
    )
    notes += snapshots.notes
    if snapshot is not None:
        seq, state = snapshot
        try:
            fresh = core.restore(state)
        except ValueError as error:
            raise LedgerError(
                f"{snapshots.folder}: what was learned does not fit this configuration: "
                f"{error}; right would be the settings it was learned with"
            ) from error
        if fresh:
            notes.append(f"policies that start afresh: {', '.join(fresh)}")
    with Journal(recording.path, read_only=True) as journal:
        core.personal_vos.recall(journal.meta(PERSONAL_VOS_KEY, {}))
        rows, limits = journal.inputs_after(seq), None
        if clock is not None and snapshot is not None:
            believed_s = core.merger.now
            if believed_s > -inf:  # or a clock that is behind would decide alone
                limits = clock.limits(believed_s)
            if latest_s is not None:
                rows = put_right(rows, believed_s, max(latest_s, believed_s + SITE_AHEAD_S))
        recording.fed = core.refeed(rows, limits)
        for _, early in journal.set_aside_after(seq, IMPLAUSIBLE_TIME):
            core.merger.recount(early.adapter, early.kind, early.reason)
        # without a snapshot or a row, history was not read to its end: it is read again
        cursors = {} if recording.is_new else {n: journal.cursor(n) for n in core.sources}
        for label in core.sources:
            core.recall_records(label, journal.meta(f"records:{label}"))
    log.info(
        "recall_state", snapshot_seq=seq, inputs_fed=recording.fed, last_seq=recording.last_seq
    )
    return cursors, notes
