"""Records of the journal, and their table rows."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from outrider.engine.ingest.set_aside import SetAside
from outrider.journal.extras import decode_json, encode_extra, encode_json
from outrider.model.decisions import DecisionRow
from outrider.model.events import KIND_NAMES, NamedEvent

TIMEZONE_KEY: Final = "timezone"
"""Name of the meta entry with the site's time zone, in which times are shown to people."""

Row = tuple[Any, ...]
"""One row of a table, its sequence number first."""


class AlikeDecision(DecisionRow, gc=False):
    """One decision for several jobs that look alike; `job` is the first of `jobs`.

    Attributes:
        jobs: all of them, in the order in which they were decided.
    """

    jobs: tuple[str, ...] = ()


class OutcomeRecord(msgspec.Struct, gc=False):
    """How a run ended, by names, and the reward that one policy computed.

    Attributes:
        time_s: event time of the end, in seconds.
        job: the job.
        machine: its machine, or None if the job left the queue without a start.
        ending: ``completed``, ``evicted`` or ``removed``.
        reason: one of `outrider.model.events.EVICTION_REASONS`, or empty when completed.
        run_s: seconds of work in the run.
        policy: the policy that observed it; empty for an evicted run that no policy observes.
        reward: the reward of that policy, or None.
        on_policy: whether the run was as that policy decided.
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
    """An event that could not be applied, by names, and why.

    Attributes:
        adapter: its source; empty for a tick.
        time_s: event time in seconds.
        kind: its kind, by name.
        subject: the job or machine.
        extra: its extra as JSON text, or None.
        reason: one of `outrider.engine.ingest.set_aside.REASONS`.
        detail: the error, where Outrider itself failed on it; else empty.
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
        """The record of an event that was set aside."""
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
        cpus: how many CPUs it had.
        submit_s: when it was submitted, in seconds; None if that was not seen.
        start_s: when the run began.
        end_s: when it ended.
        run_s: seconds of work in it.
        reason: why it was thrown away; empty: it completed its job.
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
    """A command that was given to the daemon, or a change of its mode that nobody commanded.

    Attributes:
        at_s: when, Unix seconds by the clock of the daemon's host.
        command: ``mode``, ``promote``, ``release``; ``fall_back``: a guard broke;
            ``configuration``: what is in force follows the file, after a start or a reload;
            ``trial``: a step of a canary trial.
        uid: number of the user who gave it; None: nobody did.
        user: that user's name; empty where it is not known.
        from_mode: the mode in force before; empty: there was none.
        to_mode: the mode in force after.
        outcome: ``done``, ``refused`` or ``failed``.
        why: what was given as the reason.
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
    """Rows recorded together: all of them, or none.

    Attributes:
        inputs: (adapter, event) in order of arrival. An event of kind ``tick`` whose subject is
            the adapter says: everything of this adapter up to `time_s` has been seen.
        decisions: the decisions that followed, in order.
        outcomes: runs that ended, in order.
        cursors: adapter to the cursor from which it resumes after these inputs, as JSON types.
        meta: values by name, as JSON types; a later value replaces an earlier one.
        set_aside: events that could not be applied, in order. They are among the inputs too, of
            this entry or of one before, and are set aside again when those are fed again; but
            those of reason ``implausible_time`` were set aside before they became inputs.
        runs: runs that ended, in order. They have no sequence numbers.
        commands: what was commanded, in order. They have none either, but keep the last one that
            was given out before them.
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
        """Number of rows, each with its sequence number."""
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
    """The inputs of an entry as rows numbered after `seq`."""
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
    """Decisions as rows numbered after `seq`."""
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
    """The sequence number and the decision of a row of `DECISION_COLUMNS`."""
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
    """Outcomes as rows numbered after `seq`."""
    return [
        (number, *msgspec.structs.astuple(outcome))
        for number, outcome in enumerate(outcomes, seq + 1)
    ]


def outcome_from(row: Row) -> tuple[int, OutcomeRecord]:
    """The sequence number and the outcome of a row of `OUTCOME_COLUMNS`."""
    (seq, time_s, job, machine, ending, reason, run_s, policy, reward, on_policy) = row
    return seq, OutcomeRecord(
        time_s, job, machine, ending, reason, run_s, policy, reward, bool(on_policy)
    )


def set_aside_rows(events: Sequence[SetAsideRecord], seq: int) -> list[Row]:
    """Events set aside as rows numbered after `seq`."""
    return [
        (number, *msgspec.structs.astuple(event)) for number, event in enumerate(events, seq + 1)
    ]
