"""Checksums of rows, which detect flipped bits in values: SQLite itself does not check them.

The checksum of numbered rows covers blocks of consecutive numbers. It is computed in the
transaction that writes them, from what it reads back. The block that is still growing is stored in
the table ``counter``. Other rows (cursors, meta, runs, commands) carry a checksum of their own.
"""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import heapq
import sqlite3
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

BLOCK_ROWS: Final = 256
"""Rows after which a block is closed. A fault is located to the block."""

_CHECKED: Final = (
    ("inputs", "seq, adapter, time_s, kind, subject, extra"),
    ("decisions", ("seq, time_s, job, jobs, action, machine, cpus, reason, policy, mode, "
                   "propensity, scores, input, input_age_s, gate")),
    ("outcomes", "seq, time_s, job, machine, ending, reason, run_s, policy, reward, on_policy"),
    ("set_aside", "seq, adapter, time_s, kind, subject, extra, reason, detail"),
)  # fmt: skip
"""Tables and columns of numbered rows; a column may be appended: trailing NULLs do not count."""

_OWN: Final = (
    ("cursors", "adapter", "adapter, cursor, seq"),
    ("meta", "key", "key, value"),
    ("commands", "id",
     "after_seq, at_s, command, uid, user, from_mode, to_mode, outcome, why, detail"),
    ("runs", "id", "job, vo, job_class, machine, cpus, submit_s, start_s, end_s, run_s, reason"),
)  # fmt: skip
"""Rows with a checksum of their own: the table, the row's name, the columns it covers."""

_encode: Final = msgspec.msgpack.Encoder().encode


class Block(NamedTuple):
    """Consecutive rows that share a checksum."""

    first_seq: int
    last_seq: int
    crc: int


def row_crc(values: tuple[Any, ...]) -> int:
    """Return the checksum of a single row."""
    return crc32(_encode(values))


def sum_up(connection: sqlite3.Connection, before: int, last: int) -> None:
    """Add the rows after a sequence number to the checksums, in the same transaction."""
    open_block = "SELECT open_first_seq, open_crc FROM counter"
    first, crc = connection.execute(open_block).fetchone()
    first = first or before + 1
    for seq, data in _rows(connection, before + 1, last):
        crc = crc32(data, crc)
        if seq - first + 1 >= BLOCK_ROWS:
            connection.execute("INSERT INTO checksums VALUES (?, ?, ?)", (seq, first, crc))
            first, crc = seq + 1, 0
    update = "UPDATE counter SET open_first_seq = ?, open_crc = ?"
    connection.execute(update, (first, crc))


def wrong_blocks(connection: sqlite3.Connection, newest: int | None = None) -> Iterator[str]:
    """Yield a sentence for each block whose rows are not what was written.

    Args:
        connection: must also read text that is not UTF-8 (`lenient`).
        newest: check only so many of the newest blocks; None: all.
    """
    query = "SELECT last_seq, pruned_seq, pruned_inputs_seq, open_first_seq, open_crc FROM counter"
    last, pruned, pruned_inputs, open_first, open_crc = connection.execute(query).fetchone()
    blocks = [
        Block(first_seq, last_seq, crc)
        for last_seq, first_seq, crc in connection.execute(
            "SELECT last_seq, first_seq, crc FROM checksums ORDER BY last_seq DESC LIMIT ?",
            (-1 if newest is None else newest,),
        )
    ][::-1]
    if open_first and open_first <= last:
        blocks.append(Block(open_first, last, open_crc))
    blocks = [block for block in blocks if block.first_seq > max(pruned, pruned_inputs)]
    expected = None
    for block in blocks:
        if expected is not None and block.first_seq != expected:
            yield f"there are no checksums for rows {expected} to {block.first_seq - 1}"
        expected = block.last_seq + 1
        crc, last_read = 0, block.first_seq
        for seq, data in _rows(connection, block.first_seq, block.last_seq):
            crc, last_read = crc32(data, crc), seq
        if crc != block.crc or last_read != block.last_seq:
            yield f"a value was changed among rows {block.first_seq} to {block.last_seq}"
    if expected is not None and expected != last + 1:
        yield f"there are no checksums for rows {expected} to {last}"


def wrong_rows(connection: sqlite3.Connection, tables: tuple[str, ...]) -> Iterator[str]:
    """Yield a sentence for each row whose own checksum does not match; names are quoted."""
    for table, name, columns in _OWN:
        if table not in tables:
            continue
        query = f"SELECT {name}, crc, {columns} FROM {table} WHERE crc IS NOT NULL"
        for named, crc, *values in connection.execute(query):
            if row_crc(tuple(values)) != crc:
                yield f"{table}: a value was changed in row {named!r}"


def lenient(text: bytes) -> str:
    """Decode text; a `sqlite3.Connection.text_factory` that no flipped bit can make fail."""
    return text.decode("utf-8", "backslashreplace")


def _rows(connection: sqlite3.Connection, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    """Return the numbered rows of all tables, in order."""
    return heapq.merge(*(_of(connection, n, first, last) for n in range(len(_CHECKED))))


def _of(
    connection: sqlite3.Connection, n: int, first: int, last: int
) -> Iterator[tuple[int, bytes]]:
    table, columns = _CHECKED[n]
    query = f"SELECT {columns} FROM {table} WHERE seq BETWEEN ? AND ? ORDER BY seq"
    for row in connection.execute(query, (first, last)):
        end = len(row)
        while row[end - 1] is None:
            end -= 1
        yield row[0], _encode((n, *row[:end]))
