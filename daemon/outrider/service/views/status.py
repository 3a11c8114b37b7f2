"""View of the whole site: jobs, machines, energy, fairness, policies."""

import datetime as dt
import time
from collections import Counter
from collections.abc import Mapping
from math import inf, nan
from typing import Any, Final, NamedTuple, get_args

import msgspec

from outrider import __version__
from outrider.acting.gate import ACT, ACTING_MODES, BUDGET, STALE
from outrider.acting.lever_runner import LeverRunner
from outrider.acting.lever_thread import OUTCOMES
from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.accounting.report import report
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.engine.state.machines import SHUT
from outrider.journal import CommandRecord
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, RUNNING
from outrider.model.localtime import time_zone
from outrider.model.quantities import duration
from outrider.service.commands.command import CommandPort
from outrider.service.core.core import Core
from outrider.service.shapes.site import SiteUtility, Utility
from outrider.service.shapes.status import Energy, LeverStatus
from outrider.service.shapes.values import MachineState
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.views.sentences import no_data
from outrider.service.views.twin import NOT_ESTIMATED

_ALL_MEASURED = 1.0 - 1e-9


def status(core: Core, extra: dict[str, Any], saving: str = NOT_ESTIMATED) -> dict[str, Any]:
    """Return the object of ``/api/v1/status``.

    Args:
        core: what it shows.
        extra: fields of what the core does not know.
        saving: what the twin says, in words.
    """
    accounting, site = core.accounting, core.site
    figures = report(site, accounting)
    buckets = [0] * (len(WAIT_BOUNDS_S) + 1)
    for waits in accounting.waits.values():
        buckets = [a + b for a, b in zip(buckets, waits.buckets, strict=True)]
    jobs, counts = job_counts(core), machine_counts(core)
    machines: Counter[str] = Counter()
    for (state, _), n in counts.items():
        machines[state] += n
    shown = {
        "version": __version__,
        "mode": core.config.mode,
        "timezone": core.config.timezone,
        "since_s": accounting.begin_s,
        "now_s": core.now_s,
        "jobs": {
            **jobs,
            "submitted": accounting.submitted,
            "completed": accounting.completed,
            "removed": accounting.removed,
        },
        "wait_s": figures["wait_s"],
        "wait_buckets_s": [
            [bound, n] for bound, n in zip((*WAIT_BOUNDS_S, None), buckets, strict=True)
        ],
        "machines": {s: machines[s] for s in get_args(MachineState)},
        "clusters": _clusters(core, counts),
        "energy_wh": figures["energy_wh"],
        "energy_measured_wh": figures["energy_measured_wh"],
        "energy_measured_ratio": measured_ratio(figures),
        "power_source": _power_source(figures),
        **{
            k: figures[k]
            for k in ("goodput_s", "badput_s", "utility", "starts", "evictions", "fairness")
        },
        "discipline": {
            "name": core.discipline.name,
            "source": core.discipline.source,
            "why": core.discipline.why,
        },
        "policies": [
            *(_policy(core, runner) for runner in core.runners),
            *(_policy_without_runner(*lost) for lost in core.policies_without_runner.items()),
        ],
        "saving": {"text": saving, "wh": None},
        "adapters": [_source(core, label, jobs["running"]) for label in core.sources],
        "no_data": msgspec.to_builtins(no_data(core)),
        "repairs": dict(core.merger.normaliser.repairs),
        "late": core.merger.late,
        "set_aside": dict(core.merger.set_aside),
        "names": {
            kind: {"named": len(names), "most": names.most, "folded": names.folded}
            for kind, names in core.names.by_kind.items()
        },
        "gate": _gate(core.decision_log.verdicts()),
    }
    return {**shown, "sentence": sentence(core, figures, saving), **extra}


def _power_source(figures: dict[str, Any]) -> str:
    """Return the source of energy figures: ``table``, ``measured``, ``mixed``, ``unknown``."""
    if figures["energy_wh"]["goodput"] is None:
        return "unknown"
    ratio = measured_ratio(figures)
    if not ratio:
        return "table"
    return "measured" if ratio > _ALL_MEASURED else "mixed"


def _clusters(core: Core, counts: Mapping[tuple[str, int], int]) -> list[dict[str, Any]]:
    site = core.site
    return [
        {
            "name": name,
            "machines": len(site.members[c]),
            "free": counts.get(("free", c), 0),
            "busy": counts.get(("busy", c), 0),
            "owner": counts.get(("owner", c), 0),
            "active_w": site.active_w[c],
        }
        for c, name in enumerate(site.cluster_names)
    ]


def _policy(core: Core, runner: PolicyRunner) -> dict[str, Any]:
    asked = runner.agreed + runner.disagreed
    return {
        "name": runner.name,
        "role": "acting" if runner.acting or core.config.mode in ACTING_MODES else "shadow",
        "description": runner.policy.description,
        "discipline": runner.discipline,
        "decisions": runner.decisions,
        "by_action": {"start": runner.starts, "defer": runner.decisions - runner.starts},
        "agreed": runner.agreed,
        "disagreed": runner.disagreed,
        "agreement_ratio": runner.agreed / asked if asked else None,
        "reward_mean": runner.reward_sum / runner.reward_n if runner.reward_n else None,
        "reward_n": runner.reward_n,
        "longest_deferral_s": runner.longest_ended_deferral_s,
        "reconsider_s": runner.reconsider_s,
        "broken": runner.broken or None,
        "refused": dict(runner.refused),
        "learned": runner.learned(core.site),
        "calibration": runner.calibration(core.now_s),
        "deferred": runner.deferrals.report(),
        "gate": _gate(core.decision_log.gates[runner.name].verdicts),
    }


def _policy_without_runner(name: str, why: str) -> dict[str, Any]:
    """Return the row of a policy that could not be loaded; it has decided nothing."""
    return {
        "name": name,
        "role": "shadow",
        "description": "",
        "discipline": None,
        "decisions": 0,
        "by_action": {"start": 0, "defer": 0},
        "agreed": 0,
        "disagreed": 0,
        "agreement_ratio": None,
        "reward_mean": None,
        "reward_n": 0,
        "longest_deferral_s": None,
        "reconsider_s": None,
        "broken": why,
        "refused": {},
        "learned": None,
        "calibration": None,
        "deferred": None,
        "gate": _gate({}),
    }


def _source(core: Core, label: str, running: int) -> dict[str, Any]:
    source = core.sources[label]
    return {
        "label": label,
        "type": source.kind,
        "up": source.up,
        "input_age_s": source.age_s,
        "events": dict(core.merger.counts[label]),
        "duplicates": core.merger.duplicates[label],
        "rejected": dict(source.rejected),
        "ignored": dict(source.ignored),
        "note": source.note,
        "problem": source.down_because,
        "silent": source.silent(time.time()) if running else {},
        "inferred": source.inferred,
    }


def _gate(verdicts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "would_act": verdicts.get(ACT, 0),
        "would_refuse": {cause: verdicts.get(cause, 0) for cause in (STALE, BUDGET)},
    }


# -- sentence --------------------------------------------------------------------------------------
# What the daemon saw and thinks, in one sentence, and how times are written in it.


def sentence(core: Core, figures: dict[str, Any], saving: str = NOT_ESTIMATED) -> str:
    """Return the status in one sentence; `saving` is the twin's estimate."""
    accounting, gaps = core.accounting, "; ".join(gap.text for gap in no_data(core))
    if core.knows_nothing:
        return f"{core.config.mode}: {gaps}"
    begin_s = accounting.begin_s
    since = "now" if begin_s is None else f"{moment(core, begin_s):%d %b %Y %H:%M}"
    wait_s = figures["wait_s"]["all"]["mean"]
    wait = "no job started yet" if wait_s is None else f"mean wait {duration(wait_s)}"
    energy = figures["energy_wh"]
    if energy["goodput"] is None or energy["badput"] is None:
        power = "energy unknown (no watts configured)"
    else:
        power = (
            f"{energy['goodput'] / 1000:,.1f} kWh useful and "
            f"{energy['badput'] / 1000:,.1f} kWh wasted"
        )
        if measured := measured_ratio(figures):
            power += f" (of it measured: {measured:.0%})"
    of_policies = [*map(_agreement, core.runners), *core.policies_without_runner.values()]
    views = "; ".join(of_policies) or "no policy is asked"
    head = f"{gaps}. {core.config.mode}" if gaps else core.config.mode
    return (
        f"{head} since {since}: {accounting.submitted:,} jobs seen, {wait}, {power}; "
        f"{views}; saving: {saving}"
    )


def _agreement(runner: PolicyRunner) -> str:
    if runner.broken:
        return runner.broken
    asked = runner.agreed + runner.disagreed
    if not asked:
        return f"{runner.name} has not been compared with a start yet"
    return (
        f"{runner.name} would have chosen the same cluster in {runner.agreed / asked:.0%} of "
        f"{asked:,} starts"
    )


def measured_ratio(figures: dict[str, Any]) -> float | None:
    """Return the ratio of known energy that meters measured; None if none is known."""
    known_wh = {p: wh for p, wh in figures["energy_wh"].items() if wh is not None}
    total_wh = sum(known_wh.values())
    if not total_wh:
        return None
    return float(sum(figures["energy_measured_wh"][p] for p in known_wh) / total_wh)


def moment(core: Core, time_s: float) -> dt.datetime:
    """Return an event time on the site's wall clock."""
    return dt.datetime.fromtimestamp(time_s, time_zone(core.config.timezone))


# -- counts ----------------------------------------------------------------------------------------
# Jobs and machines now, by state.

NO_QUEUE: Final = ([0] * len(JOB_STATE_NAMES), 0.0)
"""Value of `vo_queues` for a VO without a job."""


def vo_queues(core: Core) -> dict[str, tuple[list[int], float]]:
    """Return jobs by state and the longest wait for a first start, by VO with jobs.

    The wait is in seconds, of queued jobs whose submission was seen; 0: there is none.
    """
    jobs, now = core.site.jobs.values(), core.site.now
    by_vo = core.site.job_counts.by_vo.items()
    found = {vo: (list(states), 0.0) for vo, states in by_vo}
    since_s: dict[str, float] = {}
    for job in jobs:
        if job.state == QUEUED and job.first_start_s is None and job.submit_s is not None:
            spec = job.spec
            at_s = job.submit_s if spec.eligible_s is None else max(job.submit_s, spec.eligible_s)
            if at_s < since_s.get(spec.vo, inf):
                since_s[spec.vo] = at_s
    for vo, at_s in since_s.items():
        found[vo] = found[vo][0], max(0.0, now - at_s)
    return found


def job_counts(core: Core) -> dict[str, int]:
    """Return the number of jobs known now, by state."""
    return dict(zip(JOB_STATE_NAMES, core.site.job_counts.by_state, strict=True))


def machine_counts(core: Core) -> dict[tuple[str, int], int]:
    """Return the number of machines known now, by state and cluster number."""
    site = core.site
    return Counter(
        (machine_state(core, m), site.machine_cluster[m])
        for m, spec in enumerate(site.specs)
        if spec is not None
    )


def machine_state(core: Core, m: int) -> MachineState:
    """Return the state in which a machine is shown: busy, owner, free, asleep or closed.

    A machine whose owner is logged in is `owner` even while a job still runs; one that sleeps may
    be free to jobs all the same (it wakes for them), and is shown as `asleep`.
    """
    site = core.site
    if site.owner[m]:
        return "owner"
    if site.busy[m]:
        return "busy"
    if core.accounting.energy.is_asleep(m, site.now):
        return "asleep"
    return "free" if site.state[m] else "closed"


def is_draining(core: Core, m: int) -> bool:
    """Return whether a machine runs jobs, but accepts no more."""
    return core.site.busy[m] > 0 and core.site.state[m] == SHUT


# -- power -----------------------------------------------------------------------------------------
# Watts of all machines now.


class Power(NamedTuple):
    """Watts in two parts that add up, and the declared watts of the measured part.

    Attributes:
        table_w: by the table, of machines without a reading that holds; nan where one is unknown.
        measured_w: of the others, by their meters.
        metered_n: how many others.
        metered_table_w: by the table, of those; nan where one is unknown.
    """

    table_w: float
    measured_w: float
    metered_n: float
    metered_table_w: float


NO_POWER: Final = Power(nan, nan, nan, nan)
"""Value where a source has no data now."""


def power_w(core: Core) -> Power:
    """Return the watts of all machines now."""
    energy, site = core.accounting.energy, core.site
    working = [0] * len(site.specs)
    for job in site.with_run:
        if job.state == RUNNING:
            working[job.machine] += job.cpus
    table_w = measured_w = metered_table_w = 0.0
    metered_n = 0
    for m, spec in enumerate(site.specs):
        if spec is None:
            continue
        power = energy.machine(m)
        watts, by_table_w = power.measured_w(site.now), power.table_w(working[m], site.now)
        if watts is None:
            table_w += by_table_w
        else:
            measured_w += watts
            metered_n += 1
            metered_table_w += by_table_w
    return Power(table_w, measured_w, metered_n, metered_table_w)


# -- utility ---------------------------------------------------------------------------------------
# For grid brokers: the utility of the site for one more job now.


def utility(core: Core, starts: ExpectedStarts | None = None) -> Utility:
    """Return the utility of the site for one more job now.

    Args:
        core: the daemon's.
        starts: what is said of jobs' starts; None: that is not asked.
    """
    figures = report(core.site, core.accounting)
    gaps = no_data(core)
    return Utility(
        mode=core.config.mode,
        now_s=core.now_s,
        site_utility=SiteUtility(
            # a program decides by these: old values would look like new ones
            free_machines=None if gaps else core.site.free_total,
            queued_jobs=None if gaps else job_counts(core)["queued"],
            mean_wait_s=figures["wait_s"]["all"]["mean"],
            fairness=figures["fairness"]["windowed"],
            energy_wh=Energy(**figures["energy_wh"]),
            energy_measured_wh=Energy(**figures["energy_measured_wh"]),
        ),
        one_more_job=None if starts is None else starts.one_more(),
        no_data=gaps,
    )


# -- commands --------------------------------------------------------------------------------------
# The mode, and recorded commands.

_LAST_COMMANDS: Final = 5


def command_rows(commands: CommandPort | None, most: int) -> list[dict[str, Any]]:
    """Return the last commands and mode changes, the newest first."""
    records = [] if commands is None else commands.history.records
    return [_command_row(record) for record in reversed(records[-most:])]


def _command_row(record: CommandRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(record)


def mode_shown(mode: str, configured: str, commands: CommandPort | None) -> dict[str, Any]:
    """Return the part of the status about the mode; only `commands` has user names."""
    return {
        "configured_mode": configured,
        "mode_since_s": None if commands is None else commands.history.since_s(mode),
        "commands": command_rows(commands, _LAST_COMMANDS),
    }


# -- acting ----------------------------------------------------------------------------------------
# Levers, their active leases, and the outcome of their changes.


def levers_shown(runner: LeverRunner | None) -> list[LeverStatus]:
    """Return the changes and active leases of each lever; empty in a mode that never acts."""
    if runner is None:
        return []
    shown = []
    for thread in runner.threads:
        counts, standing = thread.counts, thread.standing
        by_action = Counter(decision.action for decision in standing.values())
        shown.append(
            LeverStatus(
                adapter=thread.adapter,
                name=thread.lever.name,
                actions=list(thread.lever.actions),
                lease_s=thread.lever.lease_s,
                standing={action: by_action[action] for action in thread.lever.actions},
                changes={outcome: counts[outcome] for outcome in OUTCOMES},
                problem=thread.failure,
            )
        )
    return shown


def lease_of(runner: LeverRunner | None, job: str) -> dict[str, Any] | None:
    """Return a job's active lease, or why it was refused; None: neither."""
    for thread in runner.threads if runner is not None else ():
        decision, refusal = thread.standing.get(job), thread.refusals.get(job)
        if decision is None and refusal is None:
            continue
        machine = None if decision is None else decision.machine
        return {
            "lever": thread.lever.name,
            "action": None if decision is None else decision.action,
            "machine": machine if thread.lever.places else None,
            "decided_s": None if decision is None else decision.time_s,
            "refused_because": refusal,
        }
    return None
