"""Everything that is read from a journal."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from outrider.ledger.checksums import row_crc
from outrider.ledger.extras import decode_extra, decode_json
from outrider.ledger.job_ends import ENDED_JOBS
from outrider.ledger.job_lookup import about, find_jobs
from outrider.ledger.queries import PAGE_ROWS
from outrider.ledger.records import (
    COMMAND_COLUMNS,
    DECISION_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    SET_ASIDE_COLUMNS,
    CommandRecord,
    OutcomeRecord,
    SetAsideRecord,
    decision_from,
    outcome_from,
)
from outrider.ledger.run_reading import RunReading
from outrider.ledger.salvage import check_types, readable_inputs
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError
from outrider.model.events import KIND_NUMBERS, NamedEvent

_COMMANDS: Final = (
    f"SELECT id, {COMMAND_COLUMNS} FROM commands WHERE id > :after ORDER BY id LIMIT :limit"
)


class JournalReading(RunReading):
    """The questions that can be asked of a journal; errors as `JournalQueries`."""

    def inputs_after(
        self, seq: int, left_out: list[str] | None = None
    ) -> Iterator[tuple[int, str, NamedEvent]]:
        """Every input after a sequence number, as (its number, adapter, event), in order.

        Args:
            seq: only later ones.
            left_out: gets a sentence for each row that cannot be read, and the others follow.

        Raises:
            LedgerError: a row cannot be read, and `left_out` is None; or too many cannot.
        """
        if left_out is None:
            rows = self._pages("inputs", INPUT_COLUMNS, after=seq)
        else:
            rows = readable_inputs(self._fetch, seq, self.last_seq(), left_out)
        for row in rows:
            number, adapter, time_s, kind_name, subject, text = row
            try:
                kind = KIND_NUMBERS[kind_name]
                extra = None if text is None else decode_extra(kind, text)
                if left_out is not None:
                    check_types(adapter, time_s, kind, subject)
            except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
                why = (
                    f"{self.path}: input {number}: cannot read kind {kind_name!r} with extra "
                    f"{text!r}: {error}"
                )
                if left_out is None:
                    raise LedgerError(why) from error
                left_out.append(why)
                continue
            yield number, adapter, (time_s, kind, subject, extra)

    def decisions(
        self, after: int = 0, limit: int | None = None, job: str | None = None
    ) -> Iterator[tuple[int, DecisionRow]]:
        """Decisions after a sequence number with their numbers, in order.

        Args:
            after: only later ones.
            limit: greatest number of decisions; None: all.
            job: only those about this job, alone or among alike jobs.
        """
        where, values = about(job)
        for row in self._pages("decisions", DECISION_COLUMNS, after, limit, where, values):
            yield decision_from(row)

    def latest_decisions(self, limit: int, job: str | None = None) -> list[tuple[int, DecisionRow]]:
        """The last decisions (about one job, or all) with their numbers, the newest first."""
        where, values = about(job)
        query = (
            f"SELECT {DECISION_COLUMNS} FROM decisions WHERE {where} ORDER BY seq DESC LIMIT :limit"
        )
        return [decision_from(row) for row in self._fetch(query, values | {"limit": limit})]

    def jobs_meant(self, short: str, limit: int = 20) -> list[str]:
        """Names of jobs with decisions, runs or an end that a short form can mean: `limit`."""
        tables = ["decisions"]
        tables += ["runs"] if self._has("runs") else []
        tables += [ENDED_JOBS] if self._has("ends_by_job") else []
        found = (name for table in tables for name in find_jobs(self._fetch, table, short, limit))
        return list(dict.fromkeys(found))[:limit]

    def outcomes(self, after: int = 0) -> Iterator[tuple[int, OutcomeRecord]]:
        """Outcomes after a sequence number with their numbers, in order."""
        for row in self._pages("outcomes", OUTCOME_COLUMNS, after=after):
            yield outcome_from(row)

    def latest_set_aside(self, limit: int) -> list[tuple[int, SetAsideRecord]]:
        """The last events that were set aside with their numbers, the newest first."""
        query = f"SELECT {SET_ASIDE_COLUMNS} FROM set_aside ORDER BY seq DESC LIMIT :limit"
        rows = self._fetch(query, {"limit": limit})
        return [(row[0], SetAsideRecord(*row[1:])) for row in rows]

    def set_aside_after(self, seq: int, reason: str) -> Iterator[tuple[int, SetAsideRecord]]:
        """Events set aside for a reason, after a sequence number, with their numbers, in order."""
        where, values = "reason = :reason", {"reason": reason}
        for row in self._pages("set_aside", SET_ASIDE_COLUMNS, seq, None, where, values):
            yield row[0], SetAsideRecord(*row[1:])

    def commands(self) -> Iterator[tuple[int, CommandRecord]]:
        """Every command that is kept, each with the sequence number it came after, in order."""
        after, there = 0, self._has("commands")
        while there and (rows := self._fetch(_COMMANDS, {"after": after, "limit": PAGE_ROWS})):
            for row in rows:
                yield row[1], CommandRecord(*row[2:])
            after = rows[-1][0]

    def latest_commands(self, limit: int) -> list[tuple[int, CommandRecord]]:
        """The last commands, each with the sequence number it came after, the newest first."""
        if not self._has("commands"):
            return []
        query = f"SELECT {COMMAND_COLUMNS} FROM commands ORDER BY id DESC LIMIT :limit"
        return [(row[0], CommandRecord(*row[1:])) for row in self._fetch(query, {"limit": limit})]

    def last_seq(self) -> int:
        """The last sequence number given out; 0 in a new journal. Outlives pruning."""
        return int(self._fetch("SELECT last_seq FROM counter")[0][0])

    def last_decision_seq(self) -> int:
        """The sequence number of the last decision that is kept, or 0."""
        return int(self._fetch("SELECT coalesce(max(seq), 0) FROM decisions")[0][0])

    def pruned_seq(self) -> int:
        """Decisions and outcomes up to this sequence number were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_seq FROM counter")[0][0])

    def pruned_inputs_seq(self) -> int:
        """Inputs up to this sequence number were pruned; 0: none yet."""
        return int(self._fetch("SELECT pruned_inputs_seq FROM counter")[0][0])

    def cursor(self, adapter: str) -> Any:
        """The cursor from which an adapter resumes, or None if there is none.

        Raises:
            LedgerError: it cannot be read, or is not what was written.
        """
        rows = self._fetch("SELECT * FROM cursors WHERE adapter = :a", {"a": adapter})
        if not rows:
            return None
        name, cursor, seq, *crc = rows[0]
        if crc not in ([], [None], [row_crc((name, cursor, seq))]):
            raise LedgerError(f"{self.path}: the cursor of {adapter} is not what was written")
        try:
            return decode_json(cursor)
        except (TypeError, ValueError) as error:
            raise LedgerError(
                f"{self.path}: the cursor of {adapter} is no JSON: {error}"
            ) from error

    def meta(self, key: str, default: Any = None) -> Any:
        """The value that an entry recorded under this name, or the default."""
        rows = self._fetch("SELECT value FROM meta WHERE key = :key", {"key": key})
        return decode_json(rows[0][0]) if rows else default
