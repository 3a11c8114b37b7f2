"""Checks of a journal: the file, the numbering without gaps, and the contents of every row."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import sqlite3
import time
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from outrider.journal.checksums import lenient, wrong_blocks, wrong_rows
from outrider.journal.connection import naming_errors, open_to_read
from outrider.journal.journal import Journal
from outrider.journal.ledger_file import LedgerHash
from outrider.journal.records import decode_extra, decode_json
from outrider.journal.schema import APPLICATION_ID, VERSION
from outrider.journal.snapshots import SnapshotStore, read_snapshot
from outrider.model.decisions import ACTIONS
from outrider.model.errors import LedgerError
from outrider.model.events import KIND_NUMBERS
from outrider.model.modes import MODES

EXAMPLES: Final = 5
"""Number of bad rows of one kind that are listed; the rest are counted."""
_SUMMED_FROM: Final = 4
"""First schema version whose rows have checksums."""
_COMMANDS_FROM: Final = 6
"""First schema version that has commands."""
_NEWEST_BLOCKS: Final = 8
_MAX_PROBLEMS: Final = 100
"""Maximum number of problems of one kind that are listed."""
NUMBERED: Final = ("inputs", "decisions", "outcomes", "set_aside")
# Each: what is wrong, the column to show, the table, the condition, values for it.
_ROW_RULES: Final[tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = (
    ("unknown action", "action", "decisions",
     f"action NOT IN ({', '.join('?' * len(ACTIONS))})", ACTIONS),
    ("unknown mode", "mode", "decisions", f"mode NOT IN ({', '.join('?' * len(MODES))})", MODES),
    ("start without a machine", "action", "decisions", "action = 'start' AND machine IS NULL", ()),
    ("negative CPUs", "cpus", "decisions", "cpus < 0", ()),
    ("propensity outside 0..1", "propensity", "decisions", "propensity NOT BETWEEN 0 AND 1", ()),
    ("negative run time", "run_s", "outcomes", "run_s < 0", ()),
)  # fmt: skip


class Report(msgspec.Struct):
    """Result of `verify` for one journal.

    Attributes:
        path: the journal.
        schema_version: of its tables.
        rows: rows kept, by table.
        last_seq: the last sequence number given out.
        pruned_seq: decisions and outcomes up to here were pruned; inputs up to
            `pruned_inputs_seq`.
        cursors: adapter to the sequence number of its cursor.
        snapshots: file name to its sequence number, if a folder was given.
        ledger_sha256: recomputed from the decisions; None if they cannot be read.
        problems: descriptions of what is wrong; empty if nothing is.
    """

    path: str
    schema_version: int = VERSION
    rows: dict[str, int] = {}
    last_seq: int = 0
    pruned_inputs_seq: int = 0
    pruned_seq: int = 0
    cursors: dict[str, int] = {}
    snapshots: dict[str, int] = {}
    ledger_sha256: str | None = None
    problems: list[str] = []

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {"ok": self.ok, **msgspec.structs.asdict(self)}

    def as_text(self) -> str:
        """Return the report as text for people."""
        rows = ", ".join(f"{count} {table}" for table, count in self.rows.items())
        lines = [f"{self.path}: {rows or 'no rows read'}; last sequence number {self.last_seq}"]
        if self.pruned_seq or self.pruned_inputs_seq:
            lines.append(f"pruned up to {self.pruned_seq} (inputs: {self.pruned_inputs_seq})")
        lines += [f"cursor of {adapter} is at {seq}" for adapter, seq in self.cursors.items()]
        lines += [f"snapshot {name} is at {seq}" for name, seq in self.snapshots.items()]
        lines.append(f"ledger_sha256 {self.ledger_sha256 or 'unknown'}")
        lines += [f"PROBLEM: {problem}" for problem in self.problems]
        lines.append("all is well" if self.ok else f"{len(self.problems)} problems")
        return "\n".join(lines)


def verify(path: Path | str, snapshots: Path | str | None = None) -> Report:
    """Check a journal file, and its snapshots; change nothing.

    A daemon may be writing at the same time: the journal is checked as of one moment.

    Args:
        path: the journal.
        snapshots: the folder of its snapshots, if they should be checked too.

    Raises:
        LedgerError: there is no journal to check: missing, of another program, of another version.
            Damage is not an error but a problem in the report.
    """
    path = Path(path)
    report = Report(str(path), problems=[])
    connection = open_to_read(path)
    try:
        connection.execute("BEGIN")
        report.schema_version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        for check in (_check_file, _check_numbers, _check_cursors, _check_rows, _check_inputs,
                      _check_decisions, _check_values):  # fmt: skip
            try:
                with naming_errors(path, "read it whole"):
                    check(connection, report)
            except LedgerError as error:
                report.problems.append(str(error))
    finally:
        connection.close()
    if snapshots is not None:
        _check_snapshots(SnapshotStore(snapshots), report)
    return report


def _check_file(connection: sqlite3.Connection, report: Report) -> None:
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            report.problems.append(f"integrity check: {line}")


def _check_numbers(connection: sqlite3.Connection, report: Report) -> None:
    counter = "SELECT last_seq, pruned_inputs_seq, pruned_seq FROM counter"
    last, pruned_inputs, pruned = connection.execute(counter).fetchone()
    report.last_seq, report.pruned_inputs_seq, report.pruned_seq = last, pruned_inputs, pruned
    unpruned = 0
    for table in NUMBERED:
        start = pruned_inputs if table == "inputs" else pruned
        query = (
            "SELECT count(*), coalesce(sum(seq > ?), 0), coalesce(sum(seq <= ?), 0), "
            f"coalesce(sum(seq > ?), 0) FROM {table}"
        )
        count, after, before, beyond = connection.execute(query, (pruned, start, last)).fetchone()
        report.rows[table] = count
        unpruned += after - beyond
        if before:
            report.problems.append(f"{table}: {before} rows at or before {start}, pruned long ago")
        if beyond:
            report.problems.append(f"{table}: {beyond} rows beyond the last number, {last}")
    doubles = 0
    for first, second in combinations(NUMBERED, 2):
        query = f"SELECT seq FROM {first} INTERSECT SELECT seq FROM {second}"
        seqs = [seq for (seq,) in connection.execute(query)]
        doubles += len(seqs)
        if seqs:
            report.problems.append(f"numbers in both {first} and {second}: {_some(seqs)}")
    if missing := last - pruned - unpruned + doubles:
        report.problems.append(f"{missing} numbers between {pruned + 1} and {last} have no row")


def _check_cursors(connection: sqlite3.Connection, report: Report) -> None:
    for adapter, cursor, seq in connection.execute("SELECT adapter, cursor, seq FROM cursors"):
        report.cursors[adapter] = seq
        if seq > report.last_seq:
            report.problems.append(
                f"cursor of {adapter} is at {seq}, beyond the last number, {report.last_seq}"
            )
        try:
            decode_json(cursor)
        except ValueError as error:
            report.problems.append(f"cursor of {adapter} is not valid JSON: {error}")


def _check_rows(connection: sqlite3.Connection, report: Report) -> None:
    for wrong, column, table, condition, values in _ROW_RULES:
        query = f"SELECT seq, {column} FROM {table} WHERE {condition} ORDER BY seq"
        bad = connection.execute(query, values).fetchall()
        if bad:
            report.problems.append(f"{table}: {wrong}: " + _some([f"{s} ({v!r})" for s, v in bad]))


def _check_inputs(connection: sqlite3.Connection, report: Report) -> None:
    bad = []
    for seq, kind, extra in connection.execute("SELECT seq, kind, extra FROM inputs ORDER BY seq"):
        try:
            decode_extra(KIND_NUMBERS[kind], extra)
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            bad.append(f"{seq} ({kind} {extra!r}: {error})")
    if bad:
        report.problems.append(f"inputs that cannot be read: {_some(bad)}")


def _check_decisions(connection: sqlite3.Connection, report: Report) -> None:
    total = LedgerHash()
    bad = []
    query = (
        "SELECT seq, time_s, job, action, machine, cpus, jobs, scores FROM decisions ORDER BY seq"
    )
    for seq, time_s, job, action, machine, cpus, jobs, scores in connection.execute(query):
        try:
            alike = [job] if jobs is None else decode_json(jobs)
            if scores is not None:
                decode_json(scores)
            for name in alike:
                total.add(time_s, name, action, machine, cpus)
        except (TypeError, ValueError) as error:  # a flipped bit may change the type of a value
            bad.append(f"{seq} ({error})")
    if bad:
        report.problems.append(f"decisions that cannot be read: {_some(bad)}")
    else:
        report.ledger_sha256 = total.hexdigest()


def _check_values(connection: sqlite3.Connection, report: Report) -> None:
    if report.schema_version < _SUMMED_FROM:
        return
    before, connection.text_factory = connection.text_factory, lenient
    try:
        bad = list(islice(wrong_blocks(connection), _MAX_PROBLEMS))
        own = ("cursors", "meta", "runs")
        later = ("commands",) if report.schema_version >= _COMMANDS_FROM else ()
        bad += islice(wrong_rows(connection, own + later), _MAX_PROBLEMS)
    finally:
        connection.text_factory = before
    report.problems += bad


def check_end(path: Path | str) -> list[str]:
    """Return what is wrong with the newest rows, cursors and meta entries, as sentences.

    Cheap at any length of the journal: for the start of a daemon. At most some 2,000 rows are
        compared
    with their checksums; `verify` checks all.
    """
    path = Path(path)
    try:
        connection = open_to_read(path)
    except LedgerError as error:
        return [str(error)]
    try:
        connection.text_factory = lenient
        with naming_errors(path, "check its end"):
            bad = list(islice(wrong_blocks(connection, newest=_NEWEST_BLOCKS), _MAX_PROBLEMS))
            bad += islice(wrong_rows(connection, ("cursors", "meta")), _MAX_PROBLEMS)
    except LedgerError as error:
        return [str(error)]
    finally:
        connection.close()
    return [f"{path}: {problem}" for problem in bad]


def _check_snapshots(store: SnapshotStore, report: Report) -> None:
    for path in store.paths():
        try:
            seq = read_snapshot(path).seq
        except LedgerError as error:
            report.problems.append(str(error))
            continue
        report.snapshots[path.name] = seq
        if seq > report.last_seq:
            report.problems.append(
                f"{path}: is at {seq}, beyond the journal's last number, {report.last_seq}"
            )


def _some(items: list[Any]) -> str:
    shown = ", ".join(str(item) for item in items[:EXAMPLES])
    return shown + (f" and {len(items) - EXAMPLES} more" if len(items) > EXAMPLES else "")


# -- damaged ---------------------------------------------------------------------------------------
# Opening a journal that may be too damaged to write to.

_OWNER_AT: Final = 68
"""Offset of the application id in the header of an SQLite file; it has four bytes."""
_SIGNS: Final = (
    "malformed", "not a database", "unsupported file format", "no such table", "no such column",
    "already exists", "duplicate column", "Could not decode", "file is encrypted", "constraint",
    "corrupt",
)  # fmt: skip
"""Parts of SQLite's messages that mean damage, unlike a full or unreadable disk."""
log = structlog.get_logger()


def open_or_replace(path: Path) -> tuple[Journal, str | None]:
    """Open the journal for writing; move a damaged one away, and start a new one.

    Returns:
        The journal, and a note for the operator if it was repaired or moved away.

    Raises:
        LedgerError: it cannot be opened for another reason: it is not a journal of Outrider, one of
            a newer release, or the disk prevents it.
    """
    try:
        return _opened(path)
    except (LedgerError, IndexError, TypeError, ValueError) as error:
        if not (_is_ours(path) and _is_damage(error)):
            raise
        aside = _move_aside(path)
        note = (
            f"the journal was damaged and could not be opened ({error}); it was moved to "
            f"{aside}, and a new one was started: the policies learn again from the sources"
        )
        log.critical("journal_replaced", path=str(path), aside=str(aside), error=str(error))
        return Journal(path), note


def _opened(path: Path) -> tuple[Journal, str | None]:
    """Open the journal and check what every write needs; return it and any repair made."""
    journal = Journal(path)
    note = None
    try:
        journal.probe()
        if journal.repair_counter():
            note = f"{path}: its counter was behind its last row, and was set to it"
            log.error("counter_repaired", path=str(path))
        _probe_writing(journal)
    except BaseException:
        journal.close()
        raise
    return journal, note


def _probe_writing(journal: Journal) -> None:
    """Raise `LedgerError` where damage prevents writing; a full disk does not raise."""
    try:
        journal.probe_writing()
    except LedgerError as error:
        if _is_damage(error):
            raise
        log.error("write_failed", error=str(error))


def _is_ours(path: Path) -> bool:
    """Return whether the header names Outrider, even if the rest is damaged."""
    with naming_errors(path, "read the journal"), path.open("rb") as file:
        header = file.read(_OWNER_AT + 4)
    return header[_OWNER_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _is_damage(error: Exception) -> bool:
    return not isinstance(error, LedgerError) or any(sign in str(error) for sign in _SIGNS)


def _move_aside(path: Path) -> Path:
    """Rename the journal and its companion files; return its new name."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"damaged-{stamp}-{path.name}")
    with naming_errors(path, "move the damaged journal away"):
        for ending in ("", "-wal", "-shm"):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
    return aside
