"""Tables of a journal for other programs: their columns, and their rows in a journal."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from outrider.formats.tables import (
    FLAG,
    INTEGER,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Column,
    Row,
    Rows,
    Table,
)
from outrider.journal.reading import JournalReading
from outrider.model.errors import LedgerError, nearest

_TIME: Final = "event time in seconds: Unix time, or since the start of a trace"

DECISIONS: Final = Table(
    "decisions",
    "A decision of a policy. A job has a new row whenever its decision changes.",
    (
        Column("time_s", NUMBER, f"when it was made, {_TIME}"),
        Column("seq", INTEGER, "number in the journal; decisions, outcomes and inputs share them"),
        Column("job", TEXT, "the job; the first of several that share the row"),
        Column("action", TEXT, "`start`, `defer`, or another action of a plan"),
        Column("machine", TEXT, "where; null: the action has none", True),
        Column("cpus", INTEGER, "CPUs from then on; 0: the action has none"),
        Column("reason", TEXT, "a word or two from a small closed set"),
        Column("policy", TEXT, "who decided"),
        Column("mode", TEXT, "`active` in replays, `observe` for records; of a daemon the mode "
               "that was active"),
        Column("propensity", NUMBER, "probability with which this was drawn, 0 to 1", True),
        Column("scores", NUMBERS, "score of each alternative, in the policy's own unit; an "
               "infinite or undefined score is null", True),
        Column("input_age_s", NUMBER, "seconds since the newest input; null in replays", True),
        Column("input", TEXT, "`full`, or `inferred` where machines are known by their jobs alone"),
        Column("gate", TEXT, "the gate's answer: `act`, `would`, or refused with the reason; null "
               "without a gate", True),
        Column("jobs", TEXTS, "all jobs, where several share the row", True),
    ),
)  # fmt: skip
OUTCOMES: Final = Table(
    "outcomes",
    "The end of a run, once for each policy that learned from it.",
    (
        Column("time_s", NUMBER, f"when it ended, {_TIME}"),
        Column("seq", INTEGER, "number in the journal"),
        Column("job", TEXT, "the job"),
        Column("machine", TEXT, "where it ran; null: it left the queue without a start", True),
        Column("ending", TEXT, "`completed`, `evicted` or `removed`"),
        Column("reason", TEXT, "why, where it did not complete; else empty"),
        Column("run_s", NUMBER, "seconds of work in the run"),
        Column("policy", TEXT, "the policy that learned from it; empty: none did"),
        Column("reward", NUMBER, "the sum of its rewards, in the policy's own unit; null: none",
               True),
        Column("on_policy", FLAG, "whether the run followed that policy's decision"),
    ),
)  # fmt: skip
RUNS: Final = Table(
    "runs",
    "A run that ended, from a daemon's journal; kept for longer than decisions, without users.",
    (
        Column("job", TEXT, "the job"),
        Column("vo", TEXT, "its VO: accounting group of HTCondor, account of Slurm"),
        Column("job_class", TEXT, "its class"),
        Column("machine", TEXT, "where it ran"),
        Column("cpus", INTEGER, "how many CPUs it had"),
        Column("submit_s", NUMBER, f"when it was submitted, {_TIME}; null: not seen", True),
        Column("start_s", NUMBER, f"when the run began, {_TIME}"),
        Column("end_s", NUMBER, f"when it ended, {_TIME}"),
        Column("run_s", NUMBER, "seconds of work in it"),
        Column("reason", TEXT, "why it was wasted; empty: it completed its job"),
    ),
)
COMMANDS: Final = Table(
    "commands",
    "A command from a daemon's journal, or an automatic change of its mode.",
    (
        Column("after_seq", INTEGER, "number of the last row of the journal before it"),
        Column("at_s", NUMBER, "when, Unix seconds by the clock of the daemon's host"),
        Column("command", TEXT, "`mode`, `promote`, `release`, `fall_back`, `configuration`, "
               "`trial`"),
        Column("uid", INTEGER, "number of the user who gave it; null: an automatic change", True),
        Column("user", TEXT, "name of that user; empty: not known"),
        Column("from_mode", TEXT, "the mode before; empty: there was none"),
        Column("to_mode", TEXT, "the mode after"),
        Column("outcome", TEXT, "`done`, `refused` or `failed`"),
        Column("why", TEXT, "the reason that was given"),
        Column("detail", TEXT, "what it did, or why it was refused or failed"),
    ),
)  # fmt: skip

TABLES: Final = {table.name: table for table in (DECISIONS, OUTCOMES, RUNS, COMMANDS)}
"""Tables by the value of ``--rows``."""
ABOUT_JOBS: Final = (DECISIONS.name, OUTCOMES.name, RUNS.name)
"""Names of the tables that can be filtered by job."""


def rows_of(journal: JournalReading, table: str, job: str | None = None) -> Rows:
    """Return the rows of a table of a journal, in order, read lazily.

    Args:
        journal: open as long as rows are read.
        table: one of `TABLES`.
        job: only rows about this job; None: all.

    Raises:
        LedgerError: there is no such table, or it cannot be filtered by job.
    """
    if table not in TABLES:
        raise LedgerError(f'{journal.path}: there is no table "{table}"; {nearest(table, TABLES)}')
    if job is not None and table not in ABOUT_JOBS:
        raise LedgerError(f"{journal.path}: the table {table} cannot be filtered by job")
    return Rows(TABLES[table], lambda: _READ[table](journal, job))


def _decisions(journal: JournalReading, job: str | None) -> Iterator[Row]:
    return (decision.as_row(seq) for seq, decision in journal.decisions(job=job))


def _outcomes(journal: JournalReading, job: str | None) -> Iterator[Row]:
    for seq, outcome in journal.outcomes():
        if job is None or outcome.job == job:
            yield {"time_s": outcome.time_s, "seq": seq, **msgspec.structs.asdict(outcome)}


def _runs(journal: JournalReading, job: str | None) -> Iterator[Row]:
    return (
        msgspec.structs.asdict(run) for _, run in journal.runs() if job is None or run.job == job
    )


def _commands(journal: JournalReading, job: str | None) -> Iterator[Row]:
    for after_seq, command in journal.commands():
        yield {"after_seq": after_seq, **msgspec.structs.asdict(command)}


_READ: Final[dict[str, Callable[[JournalReading, str | None], Iterator[Row]]]] = {
    DECISIONS.name: _decisions,
    OUTCOMES.name: _outcomes,
    RUNS.name: _runs,
    COMMANDS.name: _commands,
}
