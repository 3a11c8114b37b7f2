"""Write speed of the journal and the ledger file, compared with raw SQLite in the same run.

    python bench/journal.py [--rows N] [--dir FOLDER] [--small] [--json]

``journal_rows_per_s`` goes through the writer thread in entries of 100 events with a cursor, as an
adapter yields them, in WAL with synchronous=NORMAL, as the daemon runs.
``journal_single_rows_per_s`` waits for each entry before the next: one transaction each.
``ledger_file_1500k_s`` is the time that a ledger file adds to a loop of 1.5 million decisions.
"""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from options import parsed

from outrider.journal import Entry, Journal, LedgerFile, LedgerHash, Writer
from outrider.model.decisions import DecisionRow
from outrider.model.events import COMPLETED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec

ENTRY_EVENTS = 100
TARGET_ROWS_PER_S = 20_000
TARGET_LEDGER_S = 4.0
LEDGER_ROWS = 1_500_000


def timed(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def entries(rows: int) -> list[Entry]:
    """Return entries of 80 events each (a third submitted, started, completed) and 20 decisions."""
    spec = JobSpec(user="ann@site", vo="physics", cpus=2, estimate_s=3600.5)
    made = []
    for first in range(0, rows, ENTRY_EVENTS):
        events: list[tuple[str, NamedEvent]] = []
        for job in range(first, first + ENTRY_EVENTS * 8 // 10):
            time_s = 1.7e9 + job * 0.25
            event: NamedEvent = (time_s, COMPLETED, f"{job}.0", None)
            if job % 3 == 0:
                event = (time_s, SUBMITTED, f"{job}.0", spec)
            elif job % 3 == 1:
                event = (time_s, STARTED, f"{job}.0", (f"slot1@node{job % 500:03}", 2))
            events.append(("condor", event))
        scores = {"library": 1.25, "labs": 0.75}
        decisions = [
            DecisionRow(1.7e9 + first, f"{job}.0", "start", "slot1@node001", 2, "best", "bandit",
                     "shadow", 0.9, scores, 0.5)
            for job in range(first, first + ENTRY_EVENTS * 2 // 10)
        ]  # fmt: skip
        cursor = {"files": [{"inode": first, "offset": first * 300}]}
        made.append(Entry(inputs=events, decisions=decisions, cursors={"condor": cursor}))
    return made


def raw_rows(path: Path, rows: int) -> float:
    """Return the time of executemany in transactions of 10,000 rows, 14 columns, same pragmas."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    columns = ", ".join(f"c{number}" for number in range(13))
    connection.execute(f"CREATE TABLE t (seq INTEGER PRIMARY KEY, {columns})")
    row = (1.7e9, "1.0", None, "start", "slot1@node001", 2, "best", "bandit", "shadow", 0.9,
           '{"library":1.25,"labs":0.75}', "full", 0.5)  # fmt: skip
    insert = f"INSERT INTO t VALUES ({', '.join('?' * 14)})"

    def work() -> None:
        for first in range(0, rows, 10_000):
            connection.execute("BEGIN IMMEDIATE")
            batch = [(seq, *row) for seq in range(first, min(rows, first + 10_000))]
            connection.executemany(insert, batch)
            connection.execute("COMMIT")

    seconds = timed(work)
    connection.close()
    return seconds


def through_writer(path: Path, made: list[Entry], wait_each: bool) -> float:
    writer = Writer(Journal(path), queue_rows=10**9)

    def work() -> None:
        future = None
        for entry in made:
            future = writer.submit(entry)
            if wait_each:
                future.result()
        assert future is not None
        future.result()

    seconds = timed(work)
    writer.stop(30)
    return seconds


def ledger_file(path: Path, rows: int, scores: dict[str, float] | None) -> float:
    """Return the time of writing rows to a ledger file, without making them."""

    def made(job: int) -> DecisionRow:
        return DecisionRow(job * 0.5, f"j{job}", "start", "node001", 1, "best", "bandit", "active",
                           0.9, scores)  # fmt: skip

    def written() -> None:
        with LedgerFile(path) as ledger:
            for job in range(rows):
                ledger.add(made(job))

    def only_made() -> None:
        for job in range(rows):
            made(job)

    return timed(written) - timed(only_made)


def hashing(rows: int) -> float:
    """Return the time of hashing decisions, as a replay without a ledger file does."""

    def hashed() -> None:
        total = LedgerHash()
        for job in range(rows):
            total.add(job * 0.5, f"j{job}", "start", "node001", 1)
        total.hexdigest()

    def only_looped() -> None:
        for job in range(rows):
            (job * 0.5, f"j{job}", "start", "node001", 1)

    return timed(hashed) - timed(only_looped)


def measure(folder: Path, rows: int) -> dict[str, float | bool]:
    made = entries(rows)
    raw = rows / raw_rows(folder / "raw.sqlite", rows)
    batched = rows / through_writer(folder / "batched.sqlite", made, wait_each=False)
    few = made[: max(1, len(made) // 10)]
    single = len(few) * ENTRY_EVENTS / through_writer(folder / "single.sqlite", few, wait_each=True)
    plain_s = ledger_file(folder / "plain.ledger", rows, None)
    scored_s = ledger_file(folder / "scored.ledger", rows, {"library": 1.25, "labs": 0.75})
    hash_s = hashing(rows)
    return {
        "rows": rows,
        "raw_rows_per_s": raw,
        "journal_rows_per_s": batched,
        "journal_single_rows_per_s": single,
        "journal_to_raw_ratio": batched / raw,
        "ledger_file_rows_per_s": rows / plain_s,
        "ledger_file_scored_rows_per_s": rows / scored_s,
        "ledger_file_to_raw_ratio": rows / plain_s / raw,
        "ledger_file_1500k_s": plain_s * LEDGER_ROWS / rows,
        "ledger_hash_1500k_s": hash_s * LEDGER_ROWS / rows,
        "ok": batched >= TARGET_ROWS_PER_S and plain_s * LEDGER_ROWS / rows <= TARGET_LEDGER_S,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument(
        "--dir", type=Path, help="folder for the files (default: the system's temporary folder)"
    )
    given = parsed(parser, rows=2_000)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        found = measure(Path(folder), given.rows)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(
                f"{name:32} {value:>14,.2f}"
                if isinstance(value, float)
                else f"{name:32} {value!s:>14}"
            )
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
