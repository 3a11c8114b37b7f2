"""From a record of a job, in Slurm's words, to what happened."""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import JobSpec, NamedEvent, ReaderOptions, events
from outrider_adapters.readers.end_records import life_of
from outrider_adapters.readers.slurm import states
from outrider_adapters.readers.slurm.hosts import NO_HOSTS, first_host
from outrider_adapters.readers.slurm.times import Clock, limit_s, span_s

_MOST_DIGITS: Final = 9
_HALF_A_REPETITION_S: Final = 900.0  # half an hour is the least that a clock is set back
_MOST_NAME_CHARACTERS: Final = 300  # of a job with its cluster


class UnreadableRecordError(ValueError):
    """A record that cannot be read; its text is the reason under which it is counted."""


class Record(NamedTuple):
    """What a record says, each in Slurm's own words, empty where it does not say.

    Attributes:
        job: the job's id, never a step's.
        allocated, requested: CPUs.
        elapsed: span of the run; only looked at where `start` is empty.
        restarts: how often the job was queued again before.
    """

    job: str
    state: str
    submit: str
    eligible: str
    start: str
    end: str
    elapsed: str
    allocated: str
    requested: str
    user: str
    account: str
    group: str
    limit: str
    nodes: str
    restarts: str


class Lives:
    """Tells what happened to jobs, record by record, the older of a job before the later.

    Attributes:
        lost_runs: jobs of which the next record tells whether they went on.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._clock = Clock(options)
        self.lost_runs = LostRuns()

    def tell(self, record: Record) -> list[NamedEvent]:
        """The events of a record: at least one.

        Raises:
            UnreadableRecordError: it makes no sense.
        """
        if len(record.job) > _MOST_NAME_CHARACTERS:
            raise UnreadableRecordError("too_long")
        state = record.state.partition(" ")[0]
        if state not in states.KNOWN:
            raise UnreadableRecordError("state")
        submit_s, eligible_s, start_s, end_s = self._times(record)
        ended = state not in states.UNENDED
        if ended and end_s is None:
            raise UnreadableRecordError("no_end")
        if start_s is not None and end_s is not None and end_s < start_s:
            raise UnreadableRecordError("ends_before_it_starts")
        since_s = next((s for s in (submit_s, start_s, end_s) if s is not None), None)
        if since_s is None:
            raise UnreadableRecordError("no_time")
        spec = _spec(record, since_s, eligible_s)
        seen = submit_s is not None and record.restarts in ("", "0")
        last_s = since_s if end_s is None else end_s
        *beginning, ending = life_of(
            record.job, spec, submit_s if seen else None, start_s, last_s,
            first_host(record.nodes), _whole(record.allocated) or spec.cpus,
            _removed_for(state, start_s is not None),
        )  # fmt: skip
        if not seen:
            spec = msgspec.structs.replace(spec, seen_submit=False, recalled=True)
            beginning.insert(0, (since_s, events.SUBMITTED, record.job, spec))
        self.lost_runs.heard_of(record.job, last_s if ended else None)
        if not ended:
            return beginning
        if state in states.EVICTED_FOR:
            return beginning + self._lost(record.job, state, start_s is not None, last_s)
        return [*beginning, ending]

    def _times(
        self, record: Record
    ) -> tuple[float | None, float | None, float | None, float | None]:
        """Submission, eligibility, start of a run (None if there was none) and end."""
        at = self._clock.at
        try:
            submit_s = at(record.submit)
            eligible_s = None if record.eligible == record.submit else at(record.eligible, submit_s)
            start_s = at(record.start, submit_s)
            end_s = at(record.end, submit_s if start_s is None else start_s)
            if record.nodes not in NO_HOSTS and start_s is not None and end_s is not None:
                run_s = span_s(record.elapsed)
                if run_s is not None and run_s - (end_s - start_s) > _HALF_A_REPETITION_S:
                    end_s = at(record.end, end_s + 1)
        except ValueError:
            raise UnreadableRecordError("date") from None
        if record.nodes in NO_HOSTS:  # a job that never ran may have its end for a start
            start_s = None
        elif not record.start and end_s is not None:
            run_s = span_s(record.elapsed)
            start_s = end_s - run_s if run_s else None
        return submit_s, eligible_s, start_s, end_s

    def _lost(self, job: str, state: str, ran: bool, end_s: float) -> list[NamedEvent]:
        """A run was thrown away; its job may be queued again."""
        reason = states.EVICTED_FOR[state]
        told: list[NamedEvent] = [(end_s, events.EVICTED, job, reason)] if ran else []
        if state in states.LOST_RUNS:
            told += self.lost_runs.lost(job, end_s, reason)
        return told


def _removed_for(state: str, ran: bool) -> str:
    """Why a job left undone; empty if it was done."""
    if state == "FAILED" and not ran:
        return "failed_start"
    return states.REMOVED_FOR.get(state, "")


def _spec(record: Record, since_s: float, eligible_s: float | None) -> JobSpec:
    """What the user said. The VO is the account, else the user's group.

    Slurm's records do not say whether a job was interactive, so that its class is ``batch``.
    """
    return JobSpec(
        user=record.user,
        vo=record.account or record.group or "all",
        cpus=_whole(record.requested) or _whole(record.allocated) or 1,
        estimate_s=limit_s(record.limit),
        eligible_s=eligible_s if eligible_s is not None and eligible_s > since_s else None,
    )


def _whole(digits: str) -> int:
    """The number, or 0 if it is none."""
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(digits) if plain else 0


# -- lost runs -------------------------------------------------------------------------------------
# Jobs whose run was lost, and of which nobody said whether Slurm queued them again.

MOST_OPEN: Final = 10_000
"""Of more than these, the job that waits the longest is taken to be gone."""


class LostRuns:
    """Remembers them until a later record of the job says that it went on.

    Those of which no more is heard until the end of the file are taken to have left with their
    run. In a log that goes on growing they stay in the queue.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def lost(self, job: str, end_s: float, reason: str) -> list[NamedEvent]:
        """A run was lost.

        Returns:
            the removal of another job, if there are too many now.
        """
        known = self._open.get(job)
        if known is None or end_s > known[0]:  # else it is a run that was told of before
            self._open[job] = end_s, reason
        if len(self._open) <= MOST_OPEN:
            return []
        other, (other_end_s, why) = self._open.popitem(last=False)
        return [(other_end_s, events.REMOVED, other, why)]

    def heard_of(self, job: str, end_s: float | None) -> None:
        """A record of the job came; one of a later end, or of none yet, says that it went on."""
        lost = self._open.get(job)
        if lost is not None and (end_s is None or end_s > lost[0]):
            del self._open[job]

    def settle(self) -> list[NamedEvent]:
        """Nothing more will come: the removals of all that are left."""
        removals: list[NamedEvent] = [
            (end_s, events.REMOVED, job, reason) for job, (end_s, reason) in self._open.items()
        ]
        self._open.clear()
        return removals

    def save(self) -> Any:
        """What is remembered, as JSON types."""
        return [[job, end_s, reason] for job, (end_s, reason) in self._open.items()]

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._open = OrderedDict((job, (end_s, reason)) for job, end_s, reason in saved)
