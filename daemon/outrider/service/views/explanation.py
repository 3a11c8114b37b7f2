"""Explanation of a job's state: why it waits, what would change it, what policies would do."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec

from outrider.engine.scheduling.placement import fits, fits_when_empty
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.journal.job_lookup import JobEnd, names_meant
from outrider.model.decisions import DEFER, NOWHERE
from outrider.model.jobs import HELD_STATE, JOB_STATE_NAMES, QUEUED, Job, stands_for, system_of
from outrider.model.localtime import WEEK_S
from outrider.service.config.declarations import Config
from outrider.service.core.core import Core
from outrider.service.shapes.jobs import BatchSystem
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.views.job_runs import end_row, how_it_left
from outrider.service.views.sentences import (
    decision_text,
    lease_in_words,
    no_data,
    policy_lines,
    policy_text,
    start_lines,
)
from outrider.service.views.status import moment
from outrider.service.views.waiting_reasons import NO_ANSWER, SystemAnswer

_MAX_NEWER: Final = 1_000
_MAX_MEANT: Final = 20_000


def jobs_meant(core: Core, short: str, index: "JobIndex | None" = None) -> list[str]:
    """Return the names of the jobs here that a short form can mean.

    Args:
        core: the daemon's.
        short: the short form.
        index: names in their order, kept from the last question; None: a new one.
    """
    if not short or not (short[0].isdigit() or system_of(short)):
        return []  # a short form begins with an id, or is an id after the name of a system
    return (index or JobIndex()).meant(core, short)


class JobIndex:
    """Names of the jobs of one core in their order, brought up to date by each look-up."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._last = -1

    def meant(self, core: Core, short: str) -> list[str]:
        """Return the names of the jobs here that a short form can mean."""
        normaliser = core.merger.normaliser
        names = normaliser.job_names
        newer = self._newer(names)
        found = names_meant(short, _MAX_MEANT, self._first_after, self._between)
        found += (name for name in newer if stands_for(short, name))
        return [name for name in found if normaliser.known_by(name) is not None]

    def _newer(self, names: dict[int, str]) -> list[str]:
        """Return the names that are not in the index, and rebuild it if they are too many."""
        newer: list[str] = []
        for number in reversed(names):
            if number <= self._last:
                return newer[::-1]
            if len(newer) == _MAX_NEWER:
                self._names, self._last = sorted(names.values()), max(names)
                return []
            newer.append(names[number])
        return newer[::-1]

    def _first_after(self, text: str) -> str | None:
        place = bisect_right(self._names, text)
        return self._names[place] if place < len(self._names) else None

    def _between(self, low: str, high: str, most: int) -> list[str]:
        begin = bisect_left(self._names, low)
        return self._names[begin : min(bisect_right(self._names, high), begin + most)]


def states_of(core: Core, names: Iterable[str]) -> dict[str, int]:
    """Return how many of these jobs are in each state, most first; `left`: not here."""
    counts = Counter(_state_of(core, name) for name in names)
    return dict(counts.most_common())


def _state_of(core: Core, name: str) -> str:
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    return "left" if job is None else JOB_STATE_NAMES[job.state]


def is_waiting(core: Core, name: str) -> bool:
    """Return whether a job is queued or held now."""
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    return job is not None and job.state in (QUEUED, HELD_STATE)


def explain(
    core: Core,
    name: str,
    rows: list[dict[str, Any]],
    answer: SystemAnswer = NO_ANSWER,
    runs: Sequence[Mapping[str, Any]] = (),
    lease: dict[str, Any] | None = None,
    starts: ExpectedStarts | None = None,
    withheld: bool = False,
) -> dict[str, Any] | None:
    """Return the object of ``/api/v1/explain/JOB``; None for a job that is not at the site now.

    Args:
        core: the daemon's.
        name: the job.
        rows: its rows of the journal, oldest first, with scores, propensities, sequence numbers.
        answer: answers of the batch systems, a moment old at most.
        runs: its runs that have ended, oldest first.
        lease: the lease that is active for it in the batch system (`lease_of`).
        starts: expected starts of waiting jobs, as known now.
        withheld: the client may not read the batch system's words, and it was not asked.
    """
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    if job is None:
        return None
    latest = {row["policy"]: row for row in rows}
    is_kept = lease is not None and lease["action"] == DEFER
    most_s = starts.kept_until_s(name) if is_kept and starts else None
    policies = [
        _pending_decision(core, runner, job, latest.get(runner.name, {}), is_kept, most_s)
        for runner in core.runners
        if not runner.broken
    ]
    cause = _cause(core, name, job, answer, withheld)
    batch_system = _batch_system(answer)
    start = starts.explained(name) if starts and job.state == QUEUED else None
    return {
        "job": name,
        "mode": core.config.mode,
        "now_s": core.now_s,
        "source": "daemon",
        "state": JOB_STATE_NAMES[job.state],
        "sentence": _sentence(core, cause, job, policies, lease),
        "cause": cause,
        "held_because": None if withheld else job.held_because or None,
        "batch_system": msgspec.to_builtins(batch_system),
        "batch_system_errors": list(answer.unanswered),
        "expected_start": msgspec.to_builtins(start),
        "start_lines": list(start_lines(start, batch_system, core.now_s, core.config.timezone)),
        "remedies": owner_hours_that_end(core, job) if job.state == QUEUED else [],
        "lease": lease,
        "timezone": core.config.timezone,
        "alike": _alike(core, job) if job.state == QUEUED else None,
        "waiting_s": job.wait_s(core.site.now) if job.state == QUEUED else None,
        "since_s": job.submit_s,
        "runs": list(runs),
        "left": None,
        "policies": policies,
        "policy_lines": policy_lines(policies),
        "no_data": msgspec.to_builtins(no_data(core)),
        "decisions": rows,
    }


def explain_from_rows(
    config: Config,
    name: str,
    rows: list[dict[str, Any]],
    runs: Sequence[Mapping[str, Any]] = (),
    end: JobEnd | None = None,
) -> dict[str, Any]:
    """Return the same for a job that has left, from its journal rows, runs and end.

    Args:
        config: the daemon's.
        name: the job.
        rows: its rows of the journal, oldest first.
        runs: its runs, oldest first.
        end: how it left; None: not known.
    """
    left = how_it_left(runs, end, config.timezone)
    cause = f"{name} is not in the queue any more{f': {left}' if left else ''}."
    if rows:
        cause += f" When last asked, {decision_text(rows[-1])}."
    return {
        "job": name,
        "mode": config.mode,
        "timezone": config.timezone,
        "source": "ledger",
        "state": None,
        "sentence": cause,
        "cause": cause,
        "held_because": None,
        "batch_system": None,
        "batch_system_errors": [],
        "expected_start": None,
        "start_lines": [],
        "remedies": [],
        "lease": None,
        "alike": None,
        "waiting_s": None,
        "since_s": None,
        "runs": list(runs),
        "left": end_row(end),
        "policies": [],
        "policy_lines": [],
        "decisions": rows,
    }


def _alike(core: Core, job: Job) -> dict[str, int]:
    """Return how many waiting jobs have the same request, and how many came before.

    The same user and VO, as many CPUs, the same machines and the same resources.
    """

    def asked_for(one: Job) -> tuple[Any, ...]:
        spec = one.spec
        return spec.user, spec.vo, spec.cpus, spec.eligible, spec.resources

    asked = asked_for(job)
    waiting = [
        one for one in core.site.jobs.values() if one.state == QUEUED and asked_for(one) == asked
    ]

    def place_of(one: Job) -> tuple[float, int]:
        return -inf if one.submit_s is None else one.submit_s, one.number

    place = place_of(job)
    return {"total": len(waiting), "ahead": sum(1 for one in waiting if place_of(one) < place)}


def _batch_system(answer: SystemAnswer) -> BatchSystem | None:
    reason = answer.reason
    if reason is None:
        return None
    return BatchSystem(
        adapter=answer.adapter,
        code=reason.code,
        sentence=reason.sentence,
        never=reason.never,
        remedies=list(reason.remedies),
        machines=reason.machines,
        clauses=list(reason.clauses),
        expected_start_s=reason.expected_start_s,
        ahead=reason.ahead,
        removes_most=reason.removes_most,
    )


def _pending_decision(
    core: Core,
    runner: PolicyRunner,
    job: Job,
    row: dict[str, Any],
    is_kept: bool,
    most_s: float | None,
) -> dict[str, Any]:
    pending = runner.queue.waiting.get(job.number)
    place = NOWHERE if pending is None else pending.cluster
    view = {
        "name": runner.name,
        "action": None if pending is None else pending.action or None,
        "reason": None if pending is None else pending.reason or None,
        "cluster": None if place == NOWHERE else core.site.cluster_names[place],
        "until_s": _first(runner.next_look_s(job.number), most_s),
        "latest_s": _first(runner.latest_start_s(job.number), most_s),
        "decided_s": row.get("time_s"),
        "seq": row.get("seq"),
        "scores": row.get("scores") or {},
        "propensity": row.get("propensity"),
        "explanation": runner.explain(job, core.site),
    }
    return {**view, "text": policy_text(view, core.config.timezone, is_kept)}


def _first(at_s: float | None, most_s: float | None) -> float | None:
    """Return a time, at most another; None stays unknown."""
    return at_s if at_s is None or most_s is None else min(at_s, most_s)


# -- owner hours -----------------------------------------------------------------------------------
# Owners of the machines that a job may use, and when their hours end.

_MOST_CLUSTERS: Final = 3


def owner_hours_that_end(core: Core, job: Job) -> list[str]:
    """Return the ends of owner hours that a waiting job can wait for, the soonest first.

    Only for machine groups whose opening hours are configured, are open now, and end. Empty if a
    machine that the job may use is free: then owners are not what it waits for.

    Args:
        core: the daemon's.
        job: the waiting job.
    """
    site = core.site
    machines = list(_may_use(core, job))
    if any(site.is_free(machine) for machine in machines):
        return []
    owned = Counter(site.cluster_of(machine) for machine in machines if site.owner[machine])
    ends = [(at_s, cluster) for cluster in owned if (at_s := _closes_s(core, cluster)) is not None]
    return [
        f"wait for the owner hours of {site.cluster_names[cluster]} to end, "
        f"{moment(core, at_s):%d %b %H:%M}: owners use {_machines(owned[cluster])} there"
        for at_s, cluster in sorted(ends)[:_MOST_CLUSTERS]
    ]


def _may_use(core: Core, job: Job) -> Iterable[int]:
    """Return the machines that a job may use, as far as known."""
    site, eligible = core.site, job.spec.eligible
    return site.classes.get(eligible, set()) if eligible else range(len(site.specs))


def _machines(n: int) -> str:
    return "1 machine that it may use" if n == 1 else f"{n:,} machines that it may use"


def _closes_s(core: Core, cluster: int) -> float | None:
    """Return when a cluster that is open closes next; None: it is closed, or never closes."""
    site = core.site
    minutes = site.cluster_specs[cluster].hours.minutes
    second = site.week_second()
    now = int(second) // 60
    after = (minutes[now:] + minutes[:now]).find(0)
    if after <= 0:
        return None
    closes = (now + after) * 60.0
    at_s = site.now - second + closes
    # where the clocks are changed before, the wall shows another time by then
    off_s = (site.local_time.week_second(at_s) - closes + WEEK_S / 2) % WEEK_S - WEEK_S / 2
    return at_s - off_s


# -- why it waits ----------------------------------------------------------------------------------
# The batch system's own reason first; without one, what follows from the site's state.


_DISCONNECTED: Final = ", or was: the connection to it is lost"


def _cause(core: Core, name: str, job: Job, answer: SystemAnswer, withheld: bool) -> str:
    """Return why a job is where it is, as a sentence."""
    state = JOB_STATE_NAMES[job.state]
    if state == "held":
        reason = "" if withheld else job.held_because
        if answer.reason is not None:
            reason = answer.reason.sentence.removeprefix("it is held: ")
        if reason:
            return f"{name} is held: {reason.removesuffix('.')}."
        return f"{name} is held; {_no_reason(answer, withheld)}."
    if state != "queued":
        normaliser, where = core.merger.normaliser, ""
        if job.machine >= 0:
            where = f" on {normaliser.machine_names[job.machine]}"
        is_away = normaliser.is_disconnected(name)
        return f"{name} is {state}{where}{_DISCONNECTED if is_away else ''}."
    if answer.reason is not None and answer.reason.is_over:
        return f"{name} {answer.reason.sentence}."
    if answer.reason is not None:
        sentence = answer.reason.sentence
        if sentence.startswith("it waits "):  # else it would wait twice
            return f"{name} {sentence.removeprefix('it ')}."
        return f"{name} waits: {sentence}."
    return f"{name} waits: {_room_for(core, job)}; {_no_reason(answer, withheld)}."


def _no_reason(answer: SystemAnswer, withheld: bool) -> str:
    """Return why there is no reason of the batch system."""
    if withheld:
        return "the batch system's own reason is withheld"
    if answer.unanswered:
        return "the batch system did not answer"
    return "no reason of the batch system is known"


def _room_for(core: Core, job: Job) -> str:
    """Return how many machines have room for a job, of those that it may use."""
    site, spec = core.site, job.spec
    machines = [machine for machine in _may_use(core, job) if site.specs[machine] is not None]
    if not machines:
        return "Outrider knows no machine that it may use"
    free = sum(1 for machine in machines if fits(site, spec, machine))
    if free:
        return f"{_machines(free)} {'has' if free == 1 else 'have'} room for it"
    if any(fits_when_empty(site, spec, machine) for machine in machines):
        return "no machine that it may use has room for it now"
    if len(machines) == 1:
        return "the 1 machine that it may use is not large enough for it"
    return f"none of the {_machines(len(machines))} is large enough for it"


def _sentence(
    core: Core, cause: str, job: Job, policies: list[dict[str, Any]], lease: dict[str, Any] | None
) -> str:
    """Return the cause, what each policy would do, and what Outrider did, in one text."""
    if job.state != QUEUED:
        return cause
    texts = policy_lines(policy for policy in policies if policy["action"] is not None)
    would = f" In {core.config.mode}: {'; '.join(texts)}." if texts else ""
    done = f" {lease_in_words(lease)}" if lease is not None else ""
    return f"{cause}{would}{done}"
