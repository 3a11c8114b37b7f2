"""Reasons why a job waits in HTCondor: its hold, machines that do not match, the negotiator."""

import datetime as dt
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from outrider.api import Clause, WaitingReason, removing_most
from outrider_adapters.htcondor.eligibility.matching import START, AtMost, Matching
from outrider_adapters.htcondor.job_steps import HELD, IDLE, ON_A_MACHINE, is_disconnected
from outrider_adapters.htcondor.lease_edits import HOLD, OWN_HOLD, UNTIL
from outrider_adapters.htcondor.pool_calls import (
    Ad,
    PoolCalls,
    job_name,
    number,
    short_id,
)
from outrider_adapters.readers.htcondor.event_mapping import hold_reason


class Turn(NamedTuple):
    """Idle jobs before a job in the negotiator's order of users and jobs.

    Attributes:
        priority: effective priority of its user; a smaller one is better.
        users: number of users with better priority and idle jobs.
        theirs: number of their idle jobs.
        own: idle jobs of its own user that come before it.
    """

    priority: float
    users: int
    theirs: int
    own: int

    @property
    def ahead(self) -> int:
        """Number of idle jobs that come before it."""
        return self.theirs + self.own


# -- reasons ---------------------------------------------------------------------------------------

REASON_ATTRIBUTES: Final = (
    "JobStatus", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "LastRejMatchReason",
    "RequestMemory", "MemoryUsage", "ResidentSetSize", "RequestCpus", "JobUniverse", "GridResource",
    "GridResourceUnavailableTime", "Scheduler", "MaxHosts", "DeferralTime", "DeferralPrepTime",
    "CronMinute", "CronHour", "CronDayOfMonth", "CronMonth", "CronDayOfWeek", UNTIL, HOLD,
    "RemoteHost", "JobCurrentStartDate", "JobCurrentReconnectAttempt", "JobDisconnectedDate",
    "JobLeaseDuration", "LastJobLeaseRenewal",
)  # fmt: skip
"""Attributes of a job ad that are read here."""
_MAX_CLAUSES: Final = 3
"""Number of unmet conditions named in the sentence; all are among the clauses."""
_MAX_CLAUSE_CHARS: Final = 100
"""Maximum length of a condition in a sentence."""
_UNITS: Final = {"memory": " MB of memory", "disk": " KB of disk", "cpus": " CPUs", "gpus": " GPUs"}
_SPELLINGS: Final = {"memory": "Memory", "disk": "Disk", "cpus": "Cpus", "gpus": "GPUs"}
_LIMIT: Final = "concurrency limit "
"""Prefix of the negotiator's reason when a concurrency limit is reached."""
_OUT_OF_RESOURCES: Final = 34
LEASE_ENDS: Final = "wait: it is released when its policy decides otherwise, or its lease ends"
_RELEASE: Final = "release it: condor_release {job}"
_FIX: Final = "fix what the reason names, then condor_release {job}"
_REMEDIES: Final[Mapping[int, str]] = {
    1: _RELEASE,  # by its user or an administrator
    3: "change what its own policy reads, then condor_release {job}",
    5: "fix its own policy, which cannot be evaluated, then condor_release {job}",
    15: _RELEASE,  # submitted on hold
    16: "wait: its input files are still being sent",
    26: "change what the site's policy reads, then condor_release {job}",
    _OUT_OF_RESOURCES: "ask for more than it used, then condor_release {job}",
    46: "let it take longer (AllowedJobDuration), then condor_release {job}",
    47: "let it run longer (AllowedExecuteDuration), then condor_release {job}",
}
"""Fixes by ``HoldReasonCode``, which HTCondor's manual lists."""


class Now(NamedTuple):
    """Current state of the machines that match a job.

    Attributes:
        free: number with an unclaimed slot that is large enough, and that are open to jobs.
        owned: number used by their owners.
        drained: number that an administrator empties.
        drain_reasons: why, as far as the administrators said.
        closed: number whose START is false for every job now, though no owner is there.
        asleep: number that sleep.
        starts: the expressions of these STARTs, a few at most.
    """

    free: int
    owned: int
    drained: int = 0
    drain_reasons: tuple[str, ...] = ()
    closed: int = 0
    asleep: int = 0
    starts: tuple[str, ...] = ()


class Obstacle(NamedTuple):
    """Cause other than the machines, for which a job is not matched now.

    Attributes:
        sentence: the cause.
        remedy: what would change it.
        is_alone: True if the machines do not matter.
    """

    sentence: str
    remedy: str
    is_alone: bool = False


def waiting_reason(
    ad: Ad,
    schedd: str,
    matching: Matching | None,
    now: Now,
    turn: Turn | None = None,
    obstacle: Obstacle | None = None,
) -> WaitingReason | None:
    """Return why a job is not running, or that it runs by now; None if it is over.

    Args:
        ad: ad of the job, with `REASON_ATTRIBUTES`.
        schedd: name of the job's schedd.
        matching: match of the job with the machines; None: unknown.
        now: current state of the machines that match.
        turn: jobs that come before it; None: unknown.
        obstacle: a cause other than the machines; None: none is known.
    """
    status = int(number(ad, "JobStatus"))
    job = short_id(job_name(ad, schedd))
    if status == HELD:
        return _held(ad, job)
    if status != IDLE:
        return _running(ad) if status in ON_A_MACHINE else None
    rejected = str(ad.get("LastRejMatchReason") or "").strip()
    if obstacle is not None and (obstacle.is_alone or matching is None):
        return WaitingReason(code="Idle", sentence=obstacle.sentence, remedies=(obstacle.remedy,))
    if matching is None:
        message = f": {rejected}" if rejected else ""
        return WaitingReason(
            code="Idle", sentence=f"the negotiator has given it no machine{message}"
        )
    can_start = bool(matching.machines)
    sentence = _matched(matching, now, rejected, turn) if can_start else _unmatched(matching)
    remedies = _remedies(job, matching, now, rejected)
    if obstacle is not None and can_start:
        sentence = f"{obstacle.sentence}; {_may_run(matching)}"
        remedies = [obstacle.remedy, *remedies[1:]]
    return WaitingReason(
        code="Idle",
        sentence=sentence,
        never=not can_start,
        remedies=tuple(remedies),
        machines=len(matching.machines),
        clauses=matching.clauses,
        removes_most=most.text if (most := _most(matching)) is not None else None,
        ahead=turn.ahead if turn is not None and can_start else None,
    )


def _held(ad: Ad, job: str) -> WaitingReason:
    code, subcode = int(number(ad, "HoldReasonCode")), int(number(ad, "HoldReasonSubCode"))
    message = hold_reason(str(ad.get("HoldReason") or "")) or "HTCondor gives no reason"
    if message == OWN_HOLD:
        sentence = "Outrider keeps it in the queue, and HTCondor shows it as held"
        return WaitingReason(code=f"{code}.{subcode}", sentence=sentence, remedies=(LEASE_ENDS,))
    asked, used = number(ad, "RequestMemory"), number(ad, "MemoryUsage")
    if code == _OUT_OF_RESOURCES and used > asked > 0.0:
        message += f"; it asked for {asked:,.0f} MB of memory and used {used:,.0f} MB"
    return WaitingReason(
        code=f"{code}.{subcode}" if subcode else f"{code}",
        sentence=f"it is held: {message}",
        remedies=(_REMEDIES.get(code, _FIX).format(job=job),),
    )


def _running(ad: Ad) -> WaitingReason:
    """Return where a job runs that did not at the last look, or whose run was given up."""
    host = str(ad.get("RemoteHost") or "")
    where = f" on {host}" if host else ""
    if is_disconnected(ad):
        lost_s = number(ad, "JobDisconnectedDate")
        until_s = number(ad, "LastJobLeaseRenewal") + number(ad, "JobLeaseDuration")
        sentence = (
            f"ran{where}, and may do so still: its access point lost the connection to it at "
            f"{utc(lost_s)} UTC, and tries to reconnect until {utc(until_s)} UTC"
        )
        return WaitingReason(code="Running", sentence=sentence, is_over=True)
    since = f" since {utc(began_s)} UTC" if (began_s := number(ad, "JobCurrentStartDate")) else ""
    return WaitingReason(code="Running", sentence=f"runs{where}{since}", is_over=True)


def utc(time_s: float) -> str:
    """Return a time of an ad in words; users may write any number."""
    try:
        return dt.datetime.fromtimestamp(time_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"second {time_s:.0f}"


def _matched(matching: Matching, now: Now, rejected: str, turn: Turn | None) -> str:
    may = _may_run(matching)
    if now.free:
        message = f"; HTCondor says: {rejected}" if rejected else ""
        free = f"{now.free:,} have room for it now, and the negotiator has given it none{message}"
        return f"{may}, {free}{_jobs_ahead(turn)}{_what_removes_most(matching)}"
    kept = [
        f"{n:,} of them {what}"
        for n, what in (
            (now.owned, "used by their owners"),
            (now.drained, f"drained by an administrator{_in_brackets(now.drain_reasons)}"),
            (now.closed, f"closed to all jobs now by their START{_in_brackets(now.starts)}"),
            (now.asleep, "asleep"),
        )
        if n
    ]
    full = ", ".join(["and none of them has room for it now", *kept])
    return f"{may}, {full}{_jobs_ahead(turn)}{_what_removes_most(matching)}"


def _may_run(matching: Matching) -> str:
    return f"{len(matching.machines):,} of the pool's {matching.pool:,} machines may run it"


def _in_brackets(texts: Sequence[str]) -> str:
    return f" ({', '.join(map(_shortened, texts))})" if texts else ""


def _jobs_ahead(turn: Turn | None) -> str:
    """Return the jobs ahead; users also have a share, so the order is not strict."""
    if turn is None or not turn.ahead:
        return ""
    users = "1 user" if turn.users == 1 else f"{turn.users:,} users"
    theirs = [f"{turn.theirs:,} idle jobs of {users} of better priority"] if turn.theirs else []
    own = [f"{turn.own:,} idle jobs of its own user"] if turn.own else []
    priority = f"its user's priority is {turn.priority:,.2f}"
    return f"; {' and '.join(theirs + own)} come before it ({priority})"


def _unmatched(matching: Matching) -> str:
    if not matching.pool:
        return "the pool has no machine now"
    pool = matching.pool
    never = f"none of the pool's {pool:,} machines may run it"
    met_by_none = [
        _short_text(clause, matching) for clause in matching.clauses if not clause.machines
    ]
    refused = [clause.without_it for clause in matching.clauses if clause.text == START]
    if not met_by_none and any(refused):
        n = refused[0]
        meet = (
            "1 machine meets its own conditions, and its"
            if n == 1
            else (f"{n:,} machines meet its own conditions, and their")
        )
        return f"{never}: {meet} START refuses it{_in_brackets(matching.refusals)}"
    if not met_by_none:
        unmet = "no machine meets all of its conditions together"
        return f"{never}: {unmet}{_what_removes_most(matching)}"
    return f"{never}: no machine meets {' and '.join(met_by_none[:_MAX_CLAUSES])}"


def _most(matching: Matching) -> Clause | None:
    return removing_most(matching.clauses, matching.pool)


def _what_removes_most(matching: Matching) -> str:
    most, pool = _most(matching), matching.pool
    if most is None:
        return ""
    text, removed = _short_text(most, matching), pool - most.machines
    return f"; {text} removes most machines: {removed:,} of {pool:,}"


def _short_text(clause: Clause, matching: Matching) -> str:
    """Return a clause for a sentence, truncated; START with what it requires of the job."""
    refusals = _in_brackets(matching.refusals) if clause.text == START else ""
    return f"{_shortened(clause.text)}{refusals}"


def _shortened(text: str) -> str:
    """Return a text of bounded length: users may write long ones."""
    return text if len(text) <= _MAX_CLAUSE_CHARS else f"{text[:_MAX_CLAUSE_CHARS]}..."


def _remedies(job: str, matching: Matching, now: Now, rejected: str) -> list[str]:
    """Return what would let it run: to wait, if it can run, then ways to match more machines."""
    helps = [one for one in matching.at_most if one.machines > len(matching.machines)]
    remedies = [_ask_less(job, one) for one in helps]
    if matching.machines:
        return [_wait(now, rejected, len(matching.machines)), *remedies]
    without = sorted(matching.clauses, key=lambda clause: -clause.without_it)
    least = [_ask_less(job, one) for one in matching.at_most if not one.machines]
    return remedies + [_drop(clause, matching) for clause in without if clause.without_it] + least


def _wait(now: Now, rejected: str, machines: int) -> str:
    if now.drained == machines:
        why = _in_brackets(now.drain_reasons)
        return f"wait until an administrator opens them again{why}: condor_drain"
    if now.closed + now.drained == machines:
        return "wait until their START takes jobs again, or ask their administrators"
    if not now.free:
        return "wait for a machine to get free"
    if rejected.startswith(_LIMIT):
        return "wait until jobs that count against this limit have ended, or have it raised"
    return "wait for the negotiator's next cycles"


def _ask_less(job: str, one: AtMost) -> str:
    edit = f"condor_qedit {job} Request{_SPELLINGS[one.attribute]} {one.amount:.0f}"
    if not one.machines:
        return f"no machine has more than {one.amount:,.0f}{_UNITS[one.attribute]}: {edit}"
    most = f"{one.amount:,.0f}{_UNITS[one.attribute]}"
    return f"ask for at most {most}: {one.machines:,} machines match then: {edit}"


def _drop(clause: Clause, matching: Matching) -> str:
    n = clause.without_it
    if clause.text == START:
        return f"{n:,} machines would match if their START took it: ask their administrators"
    return f"{n:,} machines would match without {_short_text(clause, matching)}"


def is_idle(ad: Ad) -> bool:
    """Return whether a job waits for a machine."""
    return int(number(ad, "JobStatus")) == IDLE


# -- negotiator ------------------------------------------------------------------------------------
# The negotiator, without which no waiting job starts.

_CYCLE_S: Final = 60.0
_MIN_MISSING_S: Final = 5.0
_SHORTEST_CYCLE_S: Final = 30.0
_LONGEST_CYCLE_S: Final = 3_600.0
_MAX_GAPS: Final = 5
_NEGOTIATOR_ATTRIBUTES: Final = (
    "Name", "LastHeardFrom", "LastNegotiationCyclePeriod0", "LastNegotiationCycleDuration0",
)  # fmt: skip
_GROUPS: Final = "IsAccountingGroup =?= true"
"""Constraint for the ads that a negotiator publishes after each cycle; its own is older."""
STOPPED: Final = (
    "the pool's negotiator does not run: the collector knows none, and no waiting job starts; "
    "use condor_on -negotiator on the central manager"
)
HANGS: Final = (
    "the pool's negotiator has ended no cycle for more than {after_s:.0f} s, and no waiting job "
    "starts; see NegotiatorLog on the central manager, and condor_restart -negotiator"
)
SILENT: Final = (
    "the pool's negotiator is silent: the collector has not heard from it for more than "
    "{after_s:g} s; see NegotiatorLog on the central manager"
)


class NegotiatorWatch:
    """Watch on the negotiator of a pool, by its ads.

    Its own ad is renewed every five minutes. Those of the accounting groups, if it publishes any,
    are renewed after each cycle: two cycles without that are a problem.

    Args:
        calls: calls to the pool.
        silent_after_s: age in seconds from which its newest ad is too old.

    Attributes:
        problem: why no waiting job starts; empty: the negotiator runs, or that is unknown.
        was_seen: True if it ran once; a pool may be run without any.
    """

    def __init__(self, calls: PoolCalls, silent_after_s: float) -> None:
        self._calls = calls
        self._silent_after_s = silent_after_s
        self._cycle_s = _CYCLE_S
        self._missing_since_s: float | None = None
        self._ended_s = self._ended_seen_s = self._looked_s = 0.0
        self._gaps: deque[float] = deque(maxlen=_MAX_GAPS)
        self.problem = ""
        self.was_seen = False

    def look(self, now_s: float) -> None:
        """Query the collector for the negotiator's ads. Raises `PoolCalls.failure`: no answer."""
        calls = self._calls
        if calls.negotiator_ads is None:
            return
        ads = calls.collector.query(calls.negotiator_ads, "true", list(_NEGOTIATOR_ATTRIBUTES))
        if ads:
            self.was_seen, self._missing_since_s = True, None
            cycle_s = max(number(ad, "LastNegotiationCyclePeriod0") for ad in ads) or _CYCLE_S
            self._cycle_s = min(max(cycle_s, _MIN_MISSING_S), _CYCLE_S)
            heard_s = max(number(ad, "LastHeardFrom") for ad in ads)
            is_old = now_s - heard_s > self._silent_after_s
            silent = SILENT.format(after_s=self._silent_after_s) if is_old else ""
            took_s = max(number(ad, "LastNegotiationCycleDuration0") for ad in ads)
            self.problem = self._hangs(max(cycle_s, took_s), now_s) or silent
            return
        self._ended_s = 0.0
        since_s = min(now_s if self._missing_since_s is None else self._missing_since_s, now_s)
        self._missing_since_s = since_s
        # a restarted one is back within a cycle
        self.problem = STOPPED if self.was_seen and now_s - since_s >= self._cycle_s else ""

    def _hangs(self, cycle_s: float, now_s: float) -> str:
        """Return the problem of a negotiator that ends no cycles; empty: it does, or unknown.

        The time of the last end is compared with itself only: the clocks may differ.

        Args:
            cycle_s: seconds of a cycle, by its ad.
            now_s: time of this look.
        """
        calls = self._calls
        if calls.accounting_ads is None:
            return ""
        ads = calls.collector.query(calls.accounting_ads, _GROUPS, ["LastHeardFrom"])
        ended_s = max((number(ad, "LastHeardFrom") for ad in ads), default=0.0)
        if ended_s != self._ended_s:
            is_regular = 0.0 <= now_s - self._looked_s <= _CYCLE_S and not self.problem
            if self._ended_s and is_regular:
                self._gaps.append(ended_s - self._ended_s)
            self._ended_s, self._ended_seen_s = ended_s, now_s
        self._looked_s, self._ended_seen_s = now_s, min(self._ended_seen_s, now_s)
        longest_s = max(cycle_s, _SHORTEST_CYCLE_S, *self._gaps)
        after_s = 2.0 * min(longest_s, _LONGEST_CYCLE_S)
        is_over = bool(ended_s) and now_s - self._ended_seen_s > after_s
        return HANGS.format(after_s=after_s) if is_over else ""
