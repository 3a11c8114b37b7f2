"""Evaluate candidates on a journal: fidelity of the twin, past estimates, forecasts, refusals."""

import datetime as dt
from collections.abc import Callable, Sequence
from math import inf, log
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.policy import Policy
from outrider.journal import TIMEZONE_KEY, Journal
from outrider.model.localtime import time_zone
from outrider.twin.answer import Answer, Ratios
from outrider.twin.fidelity import fidelity
from outrider.twin.measures import (
    MEASURES,
    Stretch,
    blocks,
    completed_only,
    log_ratios,
    next_estimate,
    past_estimate,
    seen_stretch,
    whole,
)
from outrider.twin.observed import Observed, observe
from outrider.twin.replicates import Outcome, Pairs, PolicyMaker, simulate, simulate_pairs
from outrider.twin.twin_site import ROUNDING_S, Built, TwinSite, build_site

MAX_CLOCK_SHIFT: Final = 0.5
"""Maximal shift of a log ratio by the clock of users' patience; beyond it there is no answer."""
_EXPECTED_STARTS: Final = 12
"""Expected starts from which a machine without any start is taken to be dead."""
_NEEDS_TRUTH: Final = "it needs true run times, which are not known before a run ends"
_NO_INCUMBENT: Final = (
    "no adapter of this journal names a policy that represents the batch system; expected a "
    "journal from HTCondor, Slurm, PBS or a simulated campus"
)


def ask_twin(
    path: Path,
    candidates: Sequence[str],
    make: PolicyMaker,
    *,
    replicates: int = 20,
    next_weeks: float | None = None,
    seed: int = 0,
    longest_deferral_s: float = inf,
    progress: Callable[[float], None] | None = None,
) -> Answer:
    """Estimate what candidates would have cost, and will cost, compared with the incumbent.

    Args:
        path: a journal.
        candidates: policies by name; none twice.
        make: makes a policy of a name and a seed.
        replicates: how often the past is simulated under each policy; at least 2.
        next_weeks: length of the window that is forecast; None: no forecast.
        seed: of all random draws.
        longest_deferral_s: for how long a candidate may keep a job in the queue, as `[acting]`
            bounds it; then the incumbent starts it. Infinite: without a bound.
        progress: called with the ratio that is done.

    Raises:
        LedgerError: the journal cannot be read.
        PluginError: a policy cannot be made.
        TraceError: the journal holds no events of a site.
    """
    seen = observe(path)
    name = seen.facts.incumbent.policy if seen.facts and seen.facts.incumbent else None
    about: dict[str, Any] = {
        "begin_s": seen.record.first_s, "end_s": seen.record.last_s, "incumbent": name,
        "longest_deferral_s": longest_deferral_s,
    }  # fmt: skip
    if name is None:
        return Answer(**about, refused=_NO_INCUMBENT)
    built = build_site(seen, _zone(path))
    site, dead = _without_dead(built, make(name, seed), seed)
    names = [site.campus.machine_names[machine] for machine in dead]
    about |= {
        "kill_clock": seen.kill_clock,
        "fitted": {"dead_machines": names, **built.fitted._asdict()},
    }
    refused = unfit_record(seen, site, built.unplaced, len(dead))
    if refused is not None:
        return Answer(**about, refused=refused)
    fair = [policy for policy in candidates if not make(policy, seed).needs_oracle]
    about["candidates_refused"] = dict.fromkeys(set(candidates) - set(fair), _NEEDS_TRUTH)
    policies = list(dict.fromkeys([name, *fair]))
    pairs = simulate_pairs(
        site, policies, make, replicates, seed, longest_deferral_s, progress
    )  # fmt: skip
    return _judged(about, candidates, seen, built, site, pairs, next_weeks)


def _judged(
    about: dict[str, Any], candidates: Sequence[str], seen: Observed, built: Built, site: TwinSite,
    pairs: Pairs, next_weeks: float | None,
) -> Answer:  # fmt: skip
    """Compare the incumbent's twin with the record; if it agrees, compare candidates with it."""
    name, happened = about["incumbent"], seen_stretch(seen.tally)
    theirs = pairs.fixed[name]
    found = fidelity(
        happened, built.work_s, seen.tally.mean_start_delay_s, theirs,
        [completed_only(outcome) for outcome in theirs],
    )  # fmt: skip
    about |= {"fidelity": found, "basis": _basis(happened, seen.span_s)}
    if found.failed:
        return Answer(**about, refused=found.complaint())
    refused: dict[str, str] = about["candidates_refused"] | pairs.failed
    simulated = [policy for policy in candidates if policy in pairs.fixed]
    past = {policy: _past(pairs.fixed[policy], theirs) for policy in simulated}
    by_clock: dict[str, Ratios] = {}
    if pairs.by_clock is not None:
        also = pairs.by_clock
        by_clock = {policy: _past(also[policy], also[name]) for policy in simulated}
    for policy in simulated:
        why = unsupported(site, pairs.fixed[policy], theirs)
        if why is None and policy in by_clock:
            why = _unknown_by_clock(past[policy], by_clock[policy])
        if why is not None:
            refused[policy] = why
    answered = [policy for policy in candidates if policy not in refused]
    about |= {"candidates_refused": refused, "past_by_clock": by_clock}
    if refused and not answered:
        why = "; ".join(f"{policy}: {reason}" for policy, reason in refused.items())
        return Answer(**about, refused=why)
    short, coming = None, None
    if next_weeks is not None:
        short = short_for_forecast(seen, len(site.block_ends()))
        if short is None:
            coming = {policy: _next(pairs.fixed[policy], theirs, next_weeks) for policy in answered}
    for policy in by_clock.keys() & set(answered):
        more = _moved(past[policy], by_clock[policy])
        past[policy] = _widened(past[policy], more)
        if coming is not None:
            coming[policy] = _widened(coming[policy], more)
    return Answer(
        **about, past={policy: past[policy] for policy in answered}, next=coming, next_refused=short
    )


def _past(candidate: Sequence[Outcome], incumbent: Sequence[Outcome]) -> Ratios:
    ours, theirs = [*map(whole, candidate)], [*map(whole, incumbent)]
    return {
        measure.name: past_estimate(log_ratios(measure, ours, theirs), measure.floor)
        for measure in MEASURES
    }


def _next(
    candidate: Sequence[Outcome], incumbent: Sequence[Outcome], next_weeks: float
) -> Ratios:  # fmt: skip
    ours, theirs = [*map(whole, candidate)], [*map(whole, incumbent)]
    of_blocks = [(blocks(a), blocks(b)) for a, b in zip(candidate, incumbent, strict=True)]
    found: Ratios = {}
    for measure in MEASURES:
        by_block = np.stack([log_ratios(measure, a, b) for a, b in of_blocks])
        found[measure.name] = next_estimate(log_ratios(measure, ours, theirs), by_block, next_weeks)
    return found


def _moved(past: Ratios, by_clock: Ratios) -> dict[str, float]:
    """Return the absolute shift of each log ratio by the clock; 0 where there is no ratio."""
    moved = {}
    for name, fixed in past.items():
        other = by_clock[name]
        if fixed is None or other is None:
            moved[name] = 0.0
        else:
            moved[name] = abs(log(other.estimate / fixed.estimate))
    return moved


def _widened(ratios: Ratios, more: dict[str, float]) -> Ratios:
    return {
        name: None if ratio is None else ratio.widened(more[name]) for name, ratio in ratios.items()
    }


def _unknown_by_clock(past: Ratios, by_clock: Ratios) -> str | None:
    """Return why users' patience leaves a candidate unknown; None if it does not."""
    worst, name = max((by, name) for name, by in _moved(past, by_clock).items())
    if worst <= MAX_CLOCK_SHIFT:
        return None
    return (
        "users kill jobs at other times while these wait, which would shift the logarithm of "
        f"{name} by {worst:.2f}, more than {MAX_CLOCK_SHIFT:g}"
    )


def _basis(happened: Stretch, span_s: float) -> dict[str, float | None]:
    work_s = happened.goodput_s + happened.badput_s
    return {
        "load_cpus": work_s / span_s if span_s else None,
        "waste_share": happened.badput_s / work_s if work_s else None,
    }


def _without_dead(built: Built, incumbent: Policy, seed: int) -> tuple[TwinSite, list[int]]:
    """Return the site without dead machines (jobs expected, none started), and these machines."""
    site = built.site
    tried = simulate(site, site.drawn(np.random.default_rng(seed)), incumbent)
    dead = np.flatnonzero((built.starts == 0) & (tried.starts >= _EXPECTED_STARTS)).tolist()
    return (site.without(dead) if dead else site), dead


def _zone(path: Path) -> dt.tzinfo:
    """Return the time zone of the site's wall clock, as the daemon was configured."""
    with Journal(path, read_only=True) as journal:
        return time_zone(journal.meta(TIMEZONE_KEY, "UTC"))


# -- refusals --------------------------------------------------------------------------------------
# Reasons for which the twin refuses to answer, because it cannot know.

Floats = NDArray[np.float64]

WEEK_S: Final = 7 * 86_400.0
PAST_WEEKS: Final = 2
"""Minimal length of the past for an answer, weeks."""
NEXT_WEEKS: Final = 8
"""Minimal length of the past for a forecast of the next window, weeks."""
MAX_PENDING: Final = 0.05
"""Maximal share of jobs whose run times have to be drawn, in a past shorter than that."""
MAX_UNEXPLAINED: Final = 0.03
"""Maximal share of owners' evictions without a log-in on record."""
MAX_UNPLACED: Final = 0.02
"""Maximal share of jobs whose conditions a simulated site cannot express."""
MAX_DEAD: Final = 0.25
"""Maximal share of machines that are taken out because nothing ever starts there."""
MUCH_WORK: Final = 0.1
LITTLE_WORK: Final = 0.01
"""No support: more than `MUCH_WORK` goes where less than `LITTLE_WORK` was done (shares)."""


def unfit_record(seen: Observed, site: TwinSite, unplaced: int, dead: int) -> str | None:
    """Return why a record does not allow an answer for any candidate; None if it does.

    Args:
        seen: the past.
        site: its simulated site.
        unplaced: number of jobs whose conditions the site cannot express.
        dead: number of machines that were taken out.
    """
    span_s = seen.span_s + ROUNDING_S
    if span_s < PAST_WEEKS * WEEK_S:
        return (
            f"the journal holds {seen.span_s / 86_400:.1f} days; expected "
            f"{PAST_WEEKS} weeks or more"
        )
    jobs, machines = max(1, len(site.campus.run_s)), max(1, len(site.campus.machine_names))
    pending = len(site.pending.at) / jobs
    if span_s < NEXT_WEEKS * WEEK_S and pending > MAX_PENDING:
        return (
            f"{pending:.0%} of the jobs had not ended when the record did, so their run times are "
            f"not known; expected at most {MAX_PENDING:.0%}, or {NEXT_WEEKS} weeks"
        )
    evicted, unexplained = seen.owner_evictions.evictions, seen.owner_evictions.unexplained
    if evicted and unexplained / evicted > MAX_UNEXPLAINED:
        return (
            f"{unexplained} of {evicted} evictions by owners have no log-in on record; expected "
            "a source that reports every owner's session"
        )
    if unplaced / jobs > MAX_UNPLACED:
        return (
            f"{unplaced} of {jobs} jobs ask for machines that are not whole groups, which the "
            "simulated site cannot express"
        )
    if dead / machines > MAX_DEAD:
        return (
            f"on {dead} of {machines} machines nothing ever started; expected a pool without them"
        )
    return None


def short_for_forecast(seen: Observed, whole_blocks: int) -> str | None:
    """Return why a past is too short for a forecast; None if it is long enough."""
    if seen.span_s + ROUNDING_S >= NEXT_WEEKS * WEEK_S and whole_blocks >= NEXT_WEEKS // 2:
        return None
    return f"the journal holds {seen.span_s / 86_400:.1f} days; expected {NEXT_WEEKS} weeks or more"


def unsupported(
    site: TwinSite, candidate: Sequence[Outcome], incumbent: Sequence[Outcome]
) -> str | None:
    """Return why the record does not support a candidate; None if it does."""
    groups = site.campus.machine_cluster
    ours, theirs = _by_group(candidate, groups), _by_group(incumbent, groups)
    for number in np.flatnonzero((ours > MUCH_WORK) & (theirs < LITTLE_WORK)):
        return (
            f"it would send {ours[number]:.0%} of the work to the machines of "
            f"{site.campus.clusters[number].name}, where {theirs[number]:.1%} was done: what "
            "happens there is not on record"
        )
    return None


def _by_group(outcomes: Sequence[Outcome], groups: NDArray[np.int32]) -> Floats:
    """Return the share of the work of each group, mean over replicates: (groups,)."""
    work_s = np.mean([outcome.work_s for outcome in outcomes], axis=0)
    by_group = np.bincount(groups, weights=work_s)
    return np.asarray(by_group / max(1.0, float(work_s.sum())), dtype=np.float64)
