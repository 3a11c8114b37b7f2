"""Records of the journal, and their conversion to table rows."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

import json
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from outrider.engine.ingest.set_aside import SetAside
from outrider.journal.checksums import row_crc, sum_up
from outrider.model.decisions import DecisionRow
from outrider.model.events import (
    CHANGED,
    ELIGIBLE,
    EVICTED,
    HELD,
    JOINED,
    KIND_NAMES,
    POWER,
    REMOVED,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

TIMEZONE_KEY: Final = "timezone"
"""Name of the meta entry with the site's time zone, in which times are shown to people."""
Row = tuple[Any, ...]
"""Row of a table, its sequence number first."""


class AlikeDecision(DecisionRow, gc=False):
    """One decision for several equal jobs; `job` is the first of `jobs`.

    Attributes:
        jobs: all of them, in the order in which they were decided.
    """

    jobs: tuple[str, ...] = ()


class OutcomeRecord(msgspec.Struct, gc=False):
    """End of a run, by names, and the reward that one policy computed.

    Attributes:
        time_s: event time of the end, in seconds.
        job: the job.
        machine: its machine, or None if the job left the queue without a start.
        ending: ``completed``, ``evicted`` or ``removed``.
        reason: one of `outrider.model.events.EVICTION_REASONS`, or empty when completed.
        run_s: seconds of work in the run.
        policy: the policy that observed it; empty for an evicted run that no policy observes.
        reward: the reward of that policy, or None.
        on_policy: whether the run followed that policy's decision.
    """

    time_s: float
    job: str
    machine: str | None
    ending: str
    reason: str
    run_s: float
    policy: str
    reward: float | None = None
    on_policy: bool = False


class SetAsideRecord(msgspec.Struct, gc=False):
    """Rejected event, which could not be applied, by names, and the reason.

    Attributes:
        adapter: its source; empty for a tick.
        time_s: event time in seconds.
        kind: its kind, by name.
        subject: the job or machine.
        extra: its extra as JSON text, or None.
        reason: one of `outrider.engine.ingest.set_aside.REASONS`.
        detail: the error, if the reason is a fault of Outrider; else empty.
    """

    adapter: str
    time_s: float
    kind: str
    subject: str
    extra: str | None
    reason: str
    detail: str = ""

    @classmethod
    def of(cls, put: SetAside) -> "SetAsideRecord":
        """Return the record of a rejected event."""
        time_s, kind, subject, extra = put.event
        text = None if extra is None else encode_extra(kind, extra)
        return cls(put.source, time_s, KIND_NAMES[kind], subject, text, put.reason, put.detail)


class RunRecord(msgspec.Struct, gc=False):
    """One run in a few columns, kept for longer than events; without the name of its user.

    Attributes:
        job: the job.
        vo: its accounting group.
        job_class: its class.
        machine: where it ran.
        cpus: how many CPUs it had; at its end, where a simulated site has resized it.
        submit_s: when it was submitted, in seconds; None if that was not seen.
        start_s: when the run began.
        end_s: when it ended.
        run_s: seconds of work in it.
        reason: why it was wasted; empty: it completed its job.
    """

    job: str
    vo: str
    job_class: str
    machine: str
    cpus: int
    submit_s: float | None
    start_s: float
    end_s: float
    run_s: float
    reason: str = ""


class CommandRecord(msgspec.Struct, gc=False):
    """Command that was given to the daemon, or an automatic change of its mode.

    Attributes:
        at_s: when, Unix seconds by the clock of the daemon's host.
        command: ``mode``, ``promote``, ``release``; ``fall_back``: a guard was violated;
            ``configuration``: the active mode follows the file, after a start or a reload;
            ``trial``: a step of a canary trial.
        uid: number of the user who gave it; None: an automatic change.
        user: that user's name; empty where it is not known.
        from_mode: the mode before; empty: there was none.
        to_mode: the mode after.
        outcome: ``done``, ``refused`` or ``failed``.
        why: the reason that was given.
        detail: what it did, or why it was refused or failed.
    """

    at_s: float
    command: str
    uid: int | None
    user: str
    from_mode: str
    to_mode: str
    outcome: str = "done"
    why: str = ""
    detail: str = ""


class Entry(msgspec.Struct):
    """Rows recorded together, in one transaction.

    Attributes:
        inputs: (adapter, event) in order of arrival. An event of kind ``tick`` whose subject is the
            adapter means: everything of this adapter up to `time_s` has been seen.
        decisions: the decisions that followed, in order.
        outcomes: runs that ended, in order.
        cursors: adapter to the cursor from which it resumes after these inputs, as JSON types.
        meta: values by name, as JSON types; a later value replaces an earlier one.
        set_aside: events that could not be applied, in order. They are among the inputs too, of
            this entry or an earlier one, and are rejected again in a replay. Those of reason
            ``implausible_time`` were rejected before they became inputs.
        runs: runs that ended, in order. They have no sequence numbers.
        commands: commands that were given, in order. They have no sequence numbers either, but
            store the last one that was given out before them.
    """

    inputs: Sequence[tuple[str, NamedEvent]] = ()
    decisions: Sequence[DecisionRow] = ()
    outcomes: Sequence[OutcomeRecord] = ()
    cursors: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    set_aside: Sequence[SetAsideRecord] = ()
    runs: Sequence[RunRecord] = ()
    commands: Sequence[CommandRecord] = ()

    def rows(self) -> int:
        """Return the number of rows that get sequence numbers."""
        return len(self.inputs) + len(self.decisions) + len(self.outcomes) + len(self.set_aside)


INPUT_COLUMNS: Final = "seq, adapter, time_s, kind, subject, extra"
DECISION_COLUMNS: Final = (
    "seq, time_s, job, jobs, action, machine, cpus, reason, policy, mode, propensity, scores, "
    "input, input_age_s, gate"
)
OUTCOME_COLUMNS: Final = (
    "seq, time_s, job, machine, ending, reason, run_s, policy, reward, on_policy"
)
RUN_COLUMNS: Final = "job, vo, job_class, machine, cpus, submit_s, start_s, end_s, run_s, reason"
COMMAND_COLUMNS: Final = (
    "after_seq, at_s, command, uid, user, from_mode, to_mode, outcome, why, detail"
)
SET_ASIDE_COLUMNS: Final = "seq, adapter, time_s, kind, subject, extra, reason, detail"


def input_rows(entry: Entry, seq: int) -> list[Row]:
    """Return the inputs of an entry as rows numbered after `seq`."""
    return [
        (
            number,
            adapter,
            time_s,
            KIND_NAMES[kind],
            subject,
            None if extra is None else encode_extra(kind, extra),
        )
        for number, (adapter, (time_s, kind, subject, extra)) in enumerate(entry.inputs, seq + 1)
    ]


def decision_rows(decisions: Sequence[DecisionRow], seq: int) -> list[Row]:
    """Return decisions as rows numbered after `seq`."""
    return [
        (
            number,
            d.time_s,
            d.job,
            encode_json(d.jobs) if isinstance(d, AlikeDecision) else None,
            d.action,
            d.machine,
            d.cpus,
            d.reason,
            d.policy,
            d.mode,
            d.propensity,
            None if d.scores is None else encode_json(d.scores),
            d.input,
            d.input_age_s,
            d.gate,
        )
        for number, d in enumerate(decisions, seq + 1)
    ]


def decision_from(row: Row) -> tuple[int, DecisionRow]:
    """Return the sequence number and the decision of a row of `DECISION_COLUMNS`."""
    (seq, time_s, job, jobs, action, machine, cpus, reason, policy, mode) = row[:10]
    (propensity, scores, input_kind, input_age_s, gate) = row[10:]
    plain = DecisionRow(
        time_s=time_s,
        job=job,
        action=action,
        machine=machine,
        cpus=cpus,
        reason=reason,
        policy=policy,
        mode=mode,
        propensity=propensity,
        scores=None if scores is None else decode_json(scores),
        input_age_s=input_age_s,
        input=input_kind,
        gate=gate,
    )
    if jobs is None:
        return seq, plain
    return seq, AlikeDecision(**msgspec.structs.asdict(plain), jobs=tuple(decode_json(jobs)))


def outcome_rows(outcomes: Sequence[OutcomeRecord], seq: int) -> list[Row]:
    """Return outcomes as rows numbered after `seq`."""
    return [
        (number, *msgspec.structs.astuple(outcome))
        for number, outcome in enumerate(outcomes, seq + 1)
    ]


def outcome_from(row: Row) -> tuple[int, OutcomeRecord]:
    """Return the sequence number and the outcome of a row of `OUTCOME_COLUMNS`."""
    (seq, time_s, job, machine, ending, reason, run_s, policy, reward, on_policy) = row
    return seq, OutcomeRecord(
        time_s, job, machine, ending, reason, run_s, policy, reward, bool(on_policy)
    )


def set_aside_rows(events: Sequence[SetAsideRecord], seq: int) -> list[Row]:
    """Return rejected events as rows numbered after `seq`."""
    return [
        (number, *msgspec.structs.astuple(event)) for number, event in enumerate(events, seq + 1)
    ]


# -- extras ----------------------------------------------------------------------------------------
# The fourth part of an event as JSON text: lossless, and fast for common values.
#
# msgspec writes and reads nearly everything. JSON cannot represent an infinite or undefined float,
# and msgspec writes ``null`` for it. A text with a ``null`` in it is therefore written again by the
# standard library, which writes ``Infinity`` and ``NaN`` and reads them back. A strict parser fails
# at these words; then the text is read with the standard library, too.


class _Start(NamedTuple):
    """The extra of a start in JSON; the slot may be missing."""

    machine: str
    cpus: int
    slot: str = ""


class _Change(TypedDict, total=False):
    """The fields of a `JobSpec` that changed."""

    user: str
    vo: str
    job_class: str
    cpus: int
    estimate_s: float | None
    eligible_s: float | None
    seen_submit: bool
    recalled: bool
    resources: Resources | None
    eligible: str
    reporter: str


_SHAPES: Final[dict[int, Any]] = {
    SUBMITTED: JobSpec,
    JOINED: MachineSpec,
    STARTED: _Start,
    EVICTED: str,
    REMOVED: str,
    HELD: str,
    POWER: float,
    CHANGED: _Change,
    ELIGIBLE: tuple[str, ...],
}
_encode = msgspec.json.Encoder().encode
_decoders: Final[tuple[Any, ...]] = tuple(
    msgspec.json.Decoder(_SHAPES.get(kind, Any)).decode for kind in range(len(KIND_NAMES))
)


def encode_extra(kind: int, extra: Any) -> str | None:
    """Return the extra of an event as JSON text, or None for None.

    Args:
        kind: an event kind; it has no effect here and determines the type in `decode_extra`.
        extra: the extra of that kind (`outrider.model.events`), with machines by name.

    Raises:
        TypeError: the extra is not made of plain data.
        UnicodeEncodeError: a text in it cannot be written as UTF-8 (half a surrogate pair).
    """
    if extra is None:
        return None
    return encode_json(extra)


def decode_extra(kind: int, text: str | None) -> Any:
    """Return the extra that `encode_extra` wrote.

    Raises:
        msgspec.MsgspecError, ValueError: the text is not JSON, or not of the kind's type.
    """
    if text is None:
        return None
    try:
        extra = _decoders[kind](text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        extra = msgspec.convert(json.loads(text), _SHAPES.get(kind, Any))
    if kind == STARTED:
        return tuple(extra) if extra.slot else (extra.machine, extra.cpus)
    return extra


def encode_json(value: Any) -> str:
    """Return plain data as JSON text; infinite and undefined floats are ``Infinity``, ``NaN``."""
    text: str = _encode(value).decode()
    if "null" in text:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
    return text


def decode_json(text: str) -> Any:
    """Return what `encode_json` wrote. Raises `ValueError` if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)
    except TypeError as error:  # a flipped bit made a number of it
        raise ValueError(f"{text!r} is not text") from error


# -- appending -------------------------------------------------------------------------------------
# Conversion of an entry into rows of a journal.

_INSERT_INPUT: Final = f"INSERT INTO inputs ({INPUT_COLUMNS}) VALUES ({', '.join('?' * 6)})"
INSERT_DECISION: Final = (
    f"INSERT INTO decisions ({DECISION_COLUMNS}) VALUES ({', '.join('?' * 15)})"
)
INSERT_OUTCOME: Final = f"INSERT INTO outcomes ({OUTCOME_COLUMNS}) VALUES ({', '.join('?' * 10)})"
_INSERT_SET_ASIDE: Final = (
    f"INSERT INTO set_aside ({SET_ASIDE_COLUMNS}) VALUES ({', '.join('?' * 8)})"
)
_PUT_CURSOR: Final = "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?)"
_INSERT_RUN: Final = f"INSERT INTO runs ({RUN_COLUMNS}, crc) VALUES ({', '.join('?' * 11)})"
_INSERT_COMMAND: Final = (
    f"INSERT INTO commands ({COMMAND_COLUMNS}, crc) VALUES ({', '.join('?' * 11)})"
)
_PUT_META: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"


def append_entries(write: Connection, entries: Iterable[Entry], last_seq: int) -> list[int]:
    """Write entries in order, within the open transaction.

    Args:
        write: the journal's connection.
        entries: what to record.
        last_seq: the last sequence number given out.

    Returns:
        For each entry the last sequence number given out when it was recorded.
    """
    seqs, seq = [], last_seq
    for entry in entries:
        if entry.inputs:
            write.executemany(_INSERT_INPUT, input_rows(entry, seq))
            seq += len(entry.inputs)
        if entry.decisions:
            write.executemany(INSERT_DECISION, decision_rows(entry.decisions, seq))
            seq += len(entry.decisions)
        if entry.outcomes:
            write.executemany(INSERT_OUTCOME, outcome_rows(entry.outcomes, seq))
            seq += len(entry.outcomes)
        if entry.set_aside:
            write.executemany(_INSERT_SET_ASIDE, set_aside_rows(entry.set_aside, seq))
            seq += len(entry.set_aside)
        for adapter, cursor in entry.cursors.items():
            position = (adapter, encode_json(cursor), seq)
            write.execute(_PUT_CURSOR, (*position, row_crc(position)))
        for key, value in entry.meta.items():
            fact = (key, encode_json(value))
            write.execute(_PUT_META, (*fact, row_crc(fact)))
        if entry.runs:
            write.executemany(_INSERT_RUN, map(_run_row, entry.runs))
        for command in entry.commands:
            write.execute(_INSERT_COMMAND, _command_row(command, seq))
        seqs.append(seq)
    sum_up(write, last_seq, seq)
    write.execute("UPDATE counter SET last_seq = ?", (seq,))
    return seqs


def _run_row(run: RunRecord) -> Row:
    # as the columns return them: an integer in a column of real numbers would be another value
    values = (
        run.job, run.vo, run.job_class, run.machine, run.cpus,
        None if run.submit_s is None else float(run.submit_s),
        float(run.start_s), float(run.end_s), float(run.run_s), run.reason,
    )  # fmt: skip
    return (*values, row_crc(values))


def _command_row(command: CommandRecord, seq: int) -> Row:
    values = (
        seq, float(command.at_s), command.command, command.uid, command.user, command.from_mode,
        command.to_mode, command.outcome, command.why, command.detail,
    )  # fmt: skip
    return (*values, row_crc(values))
