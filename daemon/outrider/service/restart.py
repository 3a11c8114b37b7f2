"""Bringing a core to where the journal ends: after a restart, or with its state in doubt."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from outrider.engine.ingest.event_merger import EventIdentity
from outrider.ledger import Journal, check_end
from outrider.model.errors import LedgerError
from outrider.service.core import Core
from outrider.service.recording import Recording
from outrider.service.start_progress import StartProgress

_TRIES: Final = 3
"""Each leaves out the events after which the one before could not repair its state."""

log = structlog.get_logger()


def bring_up(
    make: Callable[[], Core],
    recording: Recording,
    left_out: Iterable[EventIdentity] = (),
    progress: StartProgress | None = None,
) -> tuple[Core, dict[str, Any], list[str]]:
    """A core in the state in which the journal ends.

    Args:
        make: gives an empty core.
        recording: the state directory.
        left_out: events that are set aside without being tried.
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
        core, cursors, notes = _recall(make, recording, skipped, progress)
        if not core.unrepaired:
            break
        skipped |= {key for key in core.unrepaired if key is not None}
    else:
        note = "the state is in doubt: Outrider failed, and failed again at repairing it"
        log.critical("doubt_state", reason=note)
        notes.append(note)
        core.unrepaired.clear()
    return core, cursors, notes


def _recall(
    make: Callable[[], Core],
    recording: Recording,
    skipped: set[EventIdentity],
    progress: StartProgress,
) -> tuple[Core, dict[str, Any], list[str]]:
    """A core where the journal ends, by the newest snapshot that fits and what came after."""
    progress.begin("reading the last snapshot")
    core, seq, notes = _from_snapshot(make, recording)
    core.merger.leave_out = skipped
    progress.begin("checking the end of the journal")
    notes += check_end(recording.path)
    progress.begin("feeding the journal again")
    left_out: list[str] = []
    with Journal(recording.path, read_only=True) as journal:
        if recording.last_seq and not recording.snapshot_used:
            notes += _made_anew(journal, had_snapshots=bool(recording.snapshots.paths()))
        rows = progress.watch(journal.inputs_after(seq, left_out), seq, recording.last_seq)
        recording.fed = core.refeed(rows)
        # without a snapshot or a row, history was not read to its end: it is read again
        cursors: dict[str, Any] = {}
        for label in core.sources:
            try:
                if not recording.is_new:
                    cursors[label] = journal.cursor(label)
                core.recall_records(label, journal.meta(f"records:{label}"))
            except (LedgerError, AttributeError, LookupError, TypeError, ValueError) as error:
                notes.append(f"{label}: read as on a first start: {error}")
    if left_out:
        notes.append(
            f"{len(left_out)} inputs of the journal cannot be read and were left out: {left_out[0]}"
        )
    core.merger.leave_out = set()
    log.info(
        "recall_state", snapshot_seq=seq, inputs_fed=recording.fed, last_seq=recording.last_seq
    )
    return core, cursors, notes


def _from_snapshot(make: Callable[[], Core], recording: Recording) -> tuple[Core, int, list[str]]:
    """A core in the state of the newest snapshot that fits it, or an empty one.

    Returns:
        The core, the sequence number at which it stands, and notes.
    """
    snapshots = recording.snapshots
    snapshots.notes.clear()
    notes: list[str] = []
    recording.snapshot_used = False
    core, seq = make(), 0
    for seq_of_it, state in snapshots.newest_first(not_after=recording.last_seq):
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
