"""Tables of the journal, and the migrations from one version to the next."""

import sqlite3
from pathlib import Path
from typing import Final

from outrider.model.errors import LedgerError

APPLICATION_ID: Final = 0x4F555452
"""``OUTR``, in the header, so that a file of another program is not mistaken for a journal."""

JOB_ENDS: Final = "kind IN ('completed', 'removed')"
"""Condition on inputs that end a job. Queries need it verbatim, to use the index."""

MACHINE_EVENTS: Final = (
    "kind IN ('owner_came', 'owner_went', 'usable', 'rebooted', 'joined', 'left', 'asleep', "
    "'woken', 'drained')"
)
"""Condition on inputs about machines, except meters. Queries need it verbatim."""

_VERSION_1: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """CREATE TABLE inputs (
        seq INTEGER PRIMARY KEY, adapter TEXT NOT NULL, time_s REAL NOT NULL,
        kind TEXT NOT NULL, subject TEXT NOT NULL, extra TEXT)""",
    """CREATE TABLE decisions (
        seq INTEGER PRIMARY KEY, time_s REAL NOT NULL, job TEXT NOT NULL, jobs TEXT,
        action TEXT NOT NULL, machine TEXT, cpus INTEGER NOT NULL, reason TEXT NOT NULL,
        policy TEXT NOT NULL, mode TEXT NOT NULL, propensity REAL, scores TEXT,
        input TEXT NOT NULL, input_age_s REAL)""",
    """CREATE TABLE outcomes (
        seq INTEGER PRIMARY KEY, time_s REAL NOT NULL, job TEXT NOT NULL, machine TEXT,
        ending TEXT NOT NULL, reason TEXT NOT NULL, run_s REAL NOT NULL, policy TEXT NOT NULL,
        reward REAL, on_policy INTEGER NOT NULL)""",
    """CREATE TABLE cursors (
        adapter TEXT PRIMARY KEY, cursor TEXT NOT NULL, seq INTEGER NOT NULL)""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # The last sequence number outlives the rows: it must not be used again after pruning.
    """CREATE TABLE counter (
        only INTEGER PRIMARY KEY CHECK (only = 1), last_seq INTEGER NOT NULL,
        pruned_inputs_seq INTEGER NOT NULL, pruned_seq INTEGER NOT NULL)""",
    "INSERT INTO counter VALUES (1, 0, 0, 0)",
    "CREATE INDEX decisions_by_job ON decisions (job)",
    "CREATE INDEX decisions_of_alike_jobs ON decisions (seq) WHERE jobs IS NOT NULL",
)

_VERSION_2: Final = (
    """CREATE TABLE set_aside (
        seq INTEGER PRIMARY KEY, adapter TEXT NOT NULL, time_s REAL NOT NULL,
        kind TEXT NOT NULL, subject TEXT NOT NULL, extra TEXT,
        reason TEXT NOT NULL, detail TEXT NOT NULL)""",
)

_VERSION_3: Final = ("ALTER TABLE decisions ADD COLUMN gate TEXT",)

_VERSION_4: Final = (
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY, job TEXT NOT NULL, vo TEXT NOT NULL, job_class TEXT NOT NULL,
        machine TEXT NOT NULL, cpus INTEGER NOT NULL, submit_s REAL, start_s REAL NOT NULL,
        end_s REAL NOT NULL, run_s REAL NOT NULL, reason TEXT NOT NULL, crc INTEGER)""",
    """CREATE TABLE checksums (
        last_seq INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    "ALTER TABLE counter ADD COLUMN open_first_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE counter ADD COLUMN open_crc INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE cursors ADD COLUMN crc INTEGER",
    "ALTER TABLE meta ADD COLUMN crc INTEGER",
)

_VERSION_5: Final = ("CREATE INDEX runs_by_job ON runs (job)",)

_VERSION_6: Final = (
    """CREATE TABLE commands (
        id INTEGER PRIMARY KEY, after_seq INTEGER NOT NULL, at_s REAL NOT NULL,
        command TEXT NOT NULL, uid INTEGER, user TEXT NOT NULL, from_mode TEXT NOT NULL,
        to_mode TEXT NOT NULL, outcome TEXT NOT NULL, why TEXT NOT NULL, detail TEXT NOT NULL,
        crc INTEGER)""",
)

_VERSION_7: Final = (f"CREATE INDEX ends_by_job ON inputs (subject) WHERE {JOB_ENDS}",)

_VERSION_8: Final = (
    "CREATE INDEX runs_by_machine ON runs (machine)",
    f"CREATE INDEX events_by_machine ON inputs (subject) WHERE {MACHINE_EVENTS}",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    _VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6,
    _VERSION_7, _VERSION_8,
)  # fmt: skip
"""Migrations: ``MIGRATIONS[n]`` leads from version n to n + 1. Append; never change one."""

VERSION: Final = len(MIGRATIONS)

READABLE_FROM: Final = 3
"""Oldest version that is read as it is; an older one has to be migrated first."""


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of an open file; 0 for an empty one.

    Raises:
        LedgerError: the file belongs to another program, or to a newer Outrider.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (tables or version):
        raise LedgerError(
            f"{path}: this SQLite file is no journal of Outrider (application id {owner:#x}, "
            f"ours is {APPLICATION_ID:#x}); use another file"
        )
    if version > VERSION:
        raise LedgerError(
            f"{path}: schema version {version} was written by a newer Outrider; this one reads "
            f"versions up to {VERSION}. Install the newer one again, or start a new journal"
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path) -> list[int]:
    """Migrate an open file to the present version, each step in its own transaction.

    Returns:
        The versions migrated from, oldest first; empty if there was nothing to do.

    Raises:
        LedgerError: as `version_of`.
        sqlite3.Error: a step failed; the file is at the version before it.
    """
    passed: list[int] = []
    version_of(connection, path)
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Read again inside the transaction: another process may have migrated it in between.
            version = version_of(connection, path)
            if version == VERSION:
                return passed
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
            passed.append(version + 1)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
